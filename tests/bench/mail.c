#include "mail.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/codec.h"

#define VOCABULARY  10000
#define WORD_MAX    16
#define SENDERS     400
#define DOMAINS     90
#define LINE        70
#define LARGE_TEXT  4000
#define BASE64_LINE 76

/* The most frequent ones, so that sentences look like sentences. */
static const char *const usual[] = { "the", "to", "and", "of", "a", "in", "is",
	"for", "we", "you", "that", "on", "this", "with", "be", "it", "are",
	"have", "not", "will", "as", "at", "from", "please", "by", "your",
	"our", "or", "an", "if", "can", "was", "has", "all", "there", "but",
	"they", "which", "one", "do", "any", "about", "would", "me", "my",
	"know", "when", "more", "no", "so", "what", "been", "their", "new",
	"time", "out", "up", "also", "should", "meeting", "let", "other",
	"get", "need", "just", "some", "were", "see", "than", "them", "had",
	"who", "like", "order", "into", "only", "now", "could", "week",
	"attached", "email", "report", "make", "good", "work", "today",
	"thanks", "call", "its", "next", "how", "use", "after", "two",
	"invoice", "date", "customer", "office", "contract", "project",
	"price", "number", "first", "best", "regards", "send", "team" };

/* Turns that all letters share. */
static const char *const turns[] = { "please let me know if you have any "
	"questions", "thank you for your message of last week", "I will get "
	"back to you as soon as I have heard from them", "we look forward to "
	"hearing from you", "could you please send me the latest version",
	"as we discussed on the phone this morning", "the meeting has been "
	"moved to next week", "please find attached the report you asked for",
	"I am writing to confirm the date of", "we have received your order "
	"and will ship it within two days", "if you need anything else do not "
	"hesitate to contact me", "would it be possible to have a short call "
	"about", "the invoice is due at the end of the month", "thanks again "
	"for your help with", "I have added a few comments to the document",
	"in the meantime you can reach me at the office", "sorry for the late "
	"reply", "just a quick reminder that", "we would like to invite you "
	"to", "there is one more thing I would like to mention", "the "
	"contract has been signed by both parties", "at the moment we are "
	"still waiting for", "it turned out that the numbers in the table were "
	"not up to date", "let us know which of the dates would suit you best",
	"this has to be done before the end of the week", "as far as I know "
	"nobody has answered yet", "I agree with what you wrote about",
	"the attached file contains all the details", "on behalf of the whole "
	"team", "to be on the safe side we should" };

struct mail_maker {
	unsigned long long total;
	char words[VOCABULARY][WORD_MAX];
	double upto[VOCABULARY]; /* cumulated weights */
};

static uint64_t
next(uint64_t *x)
{
	*x = *x * 6364136223846793005u + 1442695040888963407u;
	return *x >> 24;
}

static size_t
below(uint64_t *x, size_t n)
{
	return (size_t)(next(x) % n);
}

/* Rarer words are longer. */
static void
make_word(uint64_t *x, size_t rank, char out[WORD_MAX])
{
	static const char *const starts[] = { "b", "c", "d", "f", "g", "h",
		"l", "m", "n", "p", "r", "s", "t", "v", "w", "st", "tr", "pl" };
	static const char *const middles[] = { "a", "e", "i", "o", "u", "ea",
		"ou", "ai" };
	static const char *const ends[] = { "t", "n", "s", "d", "l", "r", "m",
		"ck", "nt", "st", "ng", "ted", "tion", "ly", "", "" };
	size_t parts = 1 + (rank > 400) + (rank > 5000 && below(x, 2) == 0);
	size_t len = 0;
	for (size_t i = 0; i <= 2 * parts; i++) {
		const char *piece = i == 2 * parts ?
		    ends[below(x, sizeof ends / sizeof *ends)] :
		    i % 2 == 0 ?
		    starts[below(x, sizeof starts / sizeof *starts)] :
		    middles[below(x, sizeof middles / sizeof *middles)];
		while (*piece != '\0' && len + 1 < WORD_MAX)
			out[len++] = *piece++;
	}
	out[len] = '\0';
}

struct mail_maker *
mail_maker_new(unsigned long long total)
{
	struct mail_maker *m = calloc(1, sizeof *m);
	uint64_t x = 20261130;
	double sum = 0;
	if (m == NULL)
		return NULL;
	m->total = total < 10 ? 10 : total;
	for (size_t i = 0; i < VOCABULARY; i++) {
		if (i < sizeof usual / sizeof *usual)
			memcpy(m->words[i], usual[i], strlen(usual[i]) + 1);
		else
			make_word(&x, i, m->words[i]);
		sum += 1 / pow((double)i + 2.7, 1.1);
		m->upto[i] = sum;
	}
	return m;
}

void
mail_maker_free(struct mail_maker **m)
{
	free(*m);
	*m = NULL;
}

static const char *
pick(const struct mail_maker *m, uint64_t *x)
{
	double at = (double)(next(x) & 0xffffffffff) / (double)(1ll << 40) *
	    m->upto[VOCABULARY - 1];
	size_t low = 0, high = VOCABULARY - 1;
	while (low < high) {
		size_t middle = (low + high) / 2;
		if (m->upto[middle] < at)
			low = middle + 1;
		else
			high = middle;
	}
	return m->words[low];
}

/* --- who --- */

struct person {
	const char *first, *last, *domain;
};

/* The same person for the same number, always. */
static struct person
person(const struct mail_maker *m, size_t number)
{
	uint64_t x = number * 7919 + 13, d = number % DOMAINS * 104729 + 7;
	const size_t rare = VOCABULARY / 4;
	return (struct person){ m->words[rare + below(&x, rare)],
		m->words[2 * rare + below(&x, rare)],
		m->words[3 * rare + below(&d, rare)] };
}

static struct person
sender(const struct mail_maker *m, unsigned long long number)
{
	uint64_t x = number + 1;
	(void)next(&x);
	return person(m, below(&x, SENDERS));
}

static void
add_address(struct buf *out, struct person p)
{
	buf_addf(out, "%s.%s@%s.example", p.first, p.last, p.domain);
}

/* --- text --- */

struct writing {
	struct buf *out;
	size_t line; /* where the line began */
};

static void
add_word(struct writing *w, struct str word)
{
	struct buf *out = w->out;
	bool first = out->len == 0 || out->ptr[out->len - 1] == '\n';
	if (!first && out->len - w->line + word.len > LINE) {
		buf_add_c(out, "\r\n");
		w->line = out->len;
	} else if (!first) {
		buf_add_char(out, ' ');
	}
	buf_add_str(out, word);
}

/* A turn, then words of Zipf's, or only those. */
static void
add_sentence(const struct mail_maker *m, uint64_t *x, struct writing *w)
{
	size_t words = 4 + below(x, 9), begin = w->out->len;
	if (below(x, 5) < 4) {
		struct str turn =
		    str_c(turns[below(x, sizeof turns / sizeof *turns)]);
		struct str word;
		while (str_split(&turn, ' ', &word))
			add_word(w, word);
		words = 1 + below(x, 5);
	}
	for (size_t i = 0; i < words; i++) {
		add_word(w, str_c(pick(m, x)));
		if (i + 1 < words && below(x, 11) == 0)
			buf_add_char(w->out, ',');
	}
	buf_add_char(w->out, '.');
	while (w->out->ptr[begin] <= ' ')
		begin++;
	w->out->ptr[begin] = (char)(w->out->ptr[begin] & ~0x20);
}

/* Sentences in lines and paragraphs, until `bytes` are there. */
static void
add_text(const struct mail_maker *m, unsigned long long number, uint64_t *x,
    size_t bytes, struct buf *out)
{
	struct writing w = { out, out->len };
	size_t begin = out->len;
	unsigned long long step = m->total / 10;
	if (number % 2 == 0)
		add_word(&w, STR(MAIL_HALF));
	add_word(&w, STR(MAIL_COMMON));
	if (number % step == 0 && number / step < 10)
		add_word(&w, STR(MAIL_RARE));
	while (out->len - begin < bytes) {
		add_sentence(m, x, &w);
		if (below(x, 4) == 0) {
			buf_add_c(out, "\r\n\r\n");
			w.line = out->len;
		}
	}
	buf_add_c(out, "\r\n");
}

static void
add_html(struct str text, struct buf *out)
{
	buf_add_c(out, "<html><head><meta charset=\"utf-8\"><style>p { "
	    "font-family: Arial, sans-serif; }</style></head><body><p>");
	for (size_t i = 0; i < text.len; i++) {
		if (i + 3 < text.len && memcmp(text.ptr + i, "\r\n\r\n", 4) == 0)
			buf_add_c(out, "</p>\r\n<p>");
		else
			buf_add_char(out, text.ptr[i]);
	}
	buf_add_c(out, "</p></body></html>\r\n");
}

static void
add_attachment(uint64_t *x, size_t bytes, struct buf *out)
{
	static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "abcdefghijklmnopqrstuvwxyz0123456789+/";
	size_t begin = out->len;
	while (out->len - begin < bytes) {
		char line[BASE64_LINE + 2];
		for (size_t i = 0; i < BASE64_LINE; i += 4) {
			uint64_t r = next(x);
			for (size_t k = 0; k < 4; k++, r >>= 6)
				line[i + k] = letters[r & 63];
		}
		line[BASE64_LINE] = '\r';
		line[BASE64_LINE + 1] = '\n';
		buf_add(out, line, sizeof line);
	}
}

static void
add_header(const struct mail_maker *m, unsigned long long number, uint64_t *x,
    const char *type, struct buf *out)
{
	struct person from = sender(m, number);
	unsigned day = (unsigned)(1 + number / 86400 % 28);
	unsigned s = (unsigned)(number % 86400);
	unsigned long long id = next(x);
	buf_addf(out, "Received: from mail.%s.example (mail.%s.example "
	    "[192.0.2.%u])\r\n\tby mx.example.org (Postfix) with ESMTPS id "
	    "%010llX\r\n\tfor <user%u@example.org>; Mon, %02u Nov 2026 "
	    "%02u:%02u:%02u +0000 (UTC)\r\n", from.domain, from.domain,
	    (unsigned)(number % SENDERS % 250), id & 0xffffffffff,
	    (unsigned)below(x, 500), day, s / 3600, s / 60 % 60, s % 60);
	buf_addf(out, "From: %s %s <", from.first, from.last);
	add_address(out, from);
	buf_addf(out, ">\r\nTo: user%u@example.org\r\nSubject:",
	    (unsigned)below(x, 500));
	for (size_t i = 0; i < 3 + id % 5; i++)
		buf_addf(out, " %s", pick(m, x));
	buf_addf(out, "\r\nDate: Mon, %02u Nov 2026 %02u:%02u:%02u +0000\r\n"
	    "Message-ID: <%016llx@%s.example>\r\nMIME-Version: 1.0\r\n"
	    "Content-Type: multipart/%s; boundary=\"=_%010llx\"\r\n\r\n", day,
	    s / 3600, s / 60 % 60, s % 60,
	    (unsigned long long)(next(x) << 24 | id % 0xffffff),
	    from.domain, type, id & 0xffffffffff);
}

void
mail_make(const struct mail_maker *m, unsigned long long number, size_t bytes,
    struct buf *out)
{
	bool large = bytes > 4 * LARGE_TEXT;
	uint64_t x = number * 2654435761u + 88172645463325252u;
	uint64_t again = x;
	struct person from = sender(m, number);
	struct buf text;
	buf_reset(out);
	add_header(m, number, &x, large ? "mixed" : "alternative", out);
	unsigned long long boundary = next(&again) & 0xffffffffff;
	buf_init(&text, MAIL_MAX);
	size_t frame = out->len + 410;
	add_text(m, number, &x, large ? LARGE_TEXT :
	    bytes > frame ? (bytes - frame) / 2 : 200, &text);
	buf_addf(&text, "-- \r\n%s %s\r\nwww.%s.example\r\n", from.first,
	    from.last, from.domain);
	buf_addf(out, "--=_%010llx\r\nContent-Type: text/plain; "
	    "charset=utf-8\r\n\r\n", boundary);
	buf_add_str(out, buf_str(&text));
	buf_addf(out, "--=_%010llx\r\n", boundary);
	if (large) {
		buf_addf(out, "Content-Type: application/pdf; "
		    "name=%s.pdf\r\nContent-Transfer-Encoding: base64\r\n"
		    "Content-Disposition: attachment; filename=%s.pdf\r\n\r\n",
		    pick(m, &x), pick(m, &x));
		add_attachment(&x, bytes - out->len - 40, out);
	} else {
		buf_add_c(out, "Content-Type: text/html; charset=utf-8\r\n\r\n");
		add_html(buf_str(&text), out);
	}
	buf_addf(out, "--=_%010llx--\r\n", boundary);
	buf_done(&text);
}

void
mail_meta(const struct mail_maker *m, unsigned long long number,
    struct record *out)
{
	struct person from = sender(m, number);
	uint64_t x = number ^ 0x5bd1e995;
	struct buf b;
	buf_init(&b, 1024);
#define ADD(tag, ...)                                                         \
	(buf_reset(&b), buf_addf(&b, __VA_ARGS__),                            \
	    record_add(out, tag, buf_str(&b)))
	record_add(out, META_DIRECTION, STR("in"));
	ADD(META_QUEUE_ID, "4%012llX", (unsigned long long)next(&x));
	buf_reset(&b);
	add_address(&b, from);
	record_add(out, META_MAIL_FROM, buf_str(&b));
	ADD(META_RCPT, "user%u@example.org", (unsigned)below(&x, 500));
	ADD(META_CLIENT_IP, "192.0.2.%u", (unsigned)(number % SENDERS % 250));
	ADD(META_CLIENT_NAME, "mail.%s.example", from.domain);
	ADD(META_HELO, "mail.%s.example", from.domain);
	record_add(out, META_TLS, STR("TLSv1.3 TLS_AES_256_GCM_SHA384"));
	record_add(out, META_AUTHSERV_ID, STR("mx.example.org"));
	ADD(META_RESULTS, "iprev=pass policy.iprev=192.0.2.%u; spf=pass "
	    "smtp.mailfrom=%s.example; dkim=none; dmarc=pass "
	    "header.from=%s.example", (unsigned)(number % SENDERS % 250),
	    from.domain, from.domain);
	record_add(out, META_FACT, STR("dkim=none"));
	record_add(out, META_FACT, STR("spf=pass"));
	record_add(out, META_FACT, STR("dmarc=pass"));
	record_add(out, META_DISPOSITION, STR("accept"));
	ADD(META_DECISION_ID, "%016llx", (unsigned long long)next(&x));
#undef ADD
	buf_done(&b);
}
