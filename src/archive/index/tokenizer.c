#include "archive/index/tokenizer.h"

#include <stdlib.h>
#include <string.h>

#include "base/codec.h"

typedef int (*token_fn)(void *, int, const char *, int, int, int);

struct tokenizer {
	fts5_tokenizer unicode; /* unicode61's methods … */
	Fts5Tokenizer *base;    /* … and its instance */
	struct buf folded;
};

/* One call of xTokenize. `rc` is sticky: SQLITE_OK or what the callback
 * said. */
struct scan {
	struct tokenizer *t;
	token_fn emit;
	void *context;
	int rc;
	bool query;
	bool whole;     /* query: the text is one word */
	size_t offset;  /* of the run being split, in the text */
};

/* --- characters --- */

#define ALNUM     1
#define CONNECTOR 2 /* holds addresses and domain names together */

/* clang-format off */
static const uint8_t classes[256] = {
	['0'] = 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
	['A'] = 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
		1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
	['a'] = 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
		1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
	['.'] = 2, ['-'] = 2, ['_'] = 2, ['@'] = 2, ['+'] = 2, ['='] = 2,
};

/* Letters and digits in lower case, else 0. */
static const uint8_t lower_word[256] = {
	['0'] = '0', '1', '2', '3', '4', '5', '6', '7', '8', '9',
	['A'] = 'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j', 'k', 'l', 'm',
		'n', 'o', 'p', 'q', 'r', 's', 't', 'u', 'v', 'w', 'x', 'y', 'z',
	['a'] = 'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j', 'k', 'l', 'm',
		'n', 'o', 'p', 'q', 'r', 's', 't', 'u', 'v', 'w', 'x', 'y', 'z',
};
/* clang-format on */

static bool
is_alnum(unsigned char c)
{
	return classes[c] == ALNUM;
}

static bool
is_connector(unsigned char c)
{
	return classes[c] == CONNECTOR;
}

static bool
is_cjk(uint32_t cp)
{
	return (cp >= 0x3041 && cp <= 0x30ff && cp != 0x30fb) ||
	    (cp >= 0x3105 && cp <= 0x312f) || (cp >= 0x31a0 && cp <= 0x31bf) ||
	    (cp >= 0x31f0 && cp <= 0x31ff) || (cp >= 0x3400 && cp <= 0x4dbf) ||
	    (cp >= 0x4e00 && cp <= 0x9fff) || (cp >= 0xac00 && cp <= 0xd7a3) ||
	    (cp >= 0xf900 && cp <= 0xfaff) || (cp >= 0x20000 && cp <= 0x3134f) ||
	    cp == 0x3005 || cp == 0x3007;
}

/* U+FF66 … U+FF9D. */
static const uint16_t half_katakana[] = { 0x30f2, 0x30a1, 0x30a3, 0x30a5,
	0x30a7, 0x30a9, 0x30e3, 0x30e5, 0x30e7, 0x30c3, 0x30fc, 0x30a2, 0x30a4,
	0x30a6, 0x30a8, 0x30aa, 0x30ab, 0x30ad, 0x30af, 0x30b1, 0x30b3, 0x30b5,
	0x30b7, 0x30b9, 0x30bb, 0x30bd, 0x30bf, 0x30c1, 0x30c4, 0x30c6, 0x30c8,
	0x30ca, 0x30cb, 0x30cc, 0x30cd, 0x30ce, 0x30cf, 0x30d2, 0x30d5, 0x30d8,
	0x30db, 0x30de, 0x30df, 0x30e0, 0x30e1, 0x30e2, 0x30e4, 0x30e6, 0x30e8,
	0x30e9, 0x30ea, 0x30eb, 0x30ec, 0x30ed, 0x30ef, 0x30f3 };

/* `kana` with a (half-)voiced sound mark behind it; 0: takes none. */
static uint32_t
voiced(uint32_t kana, bool half)
{
	bool ha = kana >= 0x30cf && kana <= 0x30db && (kana - 0x30cf) % 3 == 0;
	if (half)
		return ha ? kana + 2 : 0;
	bool ka = kana >= 0x30ab && kana <= 0x30c1 && (kana - 0x30ab) % 2 == 0;
	bool tsu = kana == 0x30c4 || kana == 0x30c6 || kana == 0x30c8;
	if (ka || tsu || ha)
		return kana + 1;
	return kana == 0x30a6 ? 0x30f4 : 0;
}

/* `run` with width forms folded, into t->folded. */
static void
fold_width(struct tokenizer *t, struct str run)
{
	uint32_t held = 0; /* a kana that may get a sound mark */
	buf_reset(&t->folded);
	while (run.len > 0) {
		uint32_t cp;
		size_t n = utf8_decode(run, &cp);
		if (n == 0) {
			n = 1;
			cp = ' ';
		}
		run = str_skip(run, n);
		if (held != 0 && (cp == 0xff9e || cp == 0xff9f)) {
			uint32_t both = voiced(held, cp == 0xff9f);
			utf8_encode(&t->folded, both != 0 ? both : held);
			held = 0;
			continue;
		}
		if (held != 0)
			utf8_encode(&t->folded, held);
		held = 0;
		if (cp >= 0xff01 && cp <= 0xff5e)
			utf8_encode(&t->folded, cp - 0xfee0);
		else if (cp >= 0xff66 && cp <= 0xff9d)
			held = half_katakana[cp - 0xff66];
		else
			utf8_encode(&t->folded, cp);
	}
	if (held != 0)
		utf8_encode(&t->folded, held);
}

/* --- emitting --- */

static void
emit(struct scan *s, struct str token, bool colocated)
{
	if (s->rc != SQLITE_OK || token.len == 0)
		return;
	s->rc = s->emit(s->context, colocated ? FTS5_TOKEN_COLOCATED : 0,
	    token.ptr, (int)token.len, (int)s->offset,
	    (int)(s->offset + token.len));
}

/* ASCII, lower case, cut. */
static void
emit_ascii(struct scan *s, struct str token, bool colocated)
{
	char lower[TOKENIZER_MAX_TOKEN];
	size_t len = token.len < sizeof lower ? token.len : sizeof lower;
	for (size_t i = 0; i < len; i++)
		lower[i] = ascii_lower(token.ptr[i]);
	emit(s, str_of(lower, len), colocated);
}

/* --- ASCII runs --- */

/* The letters and digits of `run`, one token each. False: there were none. */
static bool
emit_parts(struct scan *s, struct str run)
{
	bool any = false;
	for (size_t i = 0; i < run.len;) {
		size_t from = i;
		while (i < run.len && is_alnum((unsigned char)run.ptr[i]))
			i++;
		if (i > from)
			emit_ascii(s, str_sub(run, from, i - from), false);
		any = any || i > from;
		if (i == from)
			i++;
	}
	return any;
}

/* Labels of letters, digits and inner hyphens, two or more, the last of
 * letters (or of an IDN's ASCII form). */
static bool
is_domain(struct str s)
{
	size_t labels = 0;
	struct str label = STR_EMPTY;
	while (str_split(&s, '.', &label)) {
		if (label.len == 0 || label.ptr[0] == '-' ||
		    label.ptr[label.len - 1] == '-')
			return false;
		for (size_t i = 0; i < label.len; i++)
			if (!is_alnum((unsigned char)label.ptr[i]) &&
			    label.ptr[i] != '-')
				return false;
		labels++;
	}
	if (labels < 2 || labels > TOKENIZER_MAX_LABELS || label.len < 2)
		return false;
	return ascii_is_alpha(label.ptr[0]);
}

/* The name's parts; beside the first one the name and its parents. */
static void
emit_domain(struct scan *s, struct str name)
{
	size_t dot = str_chr(name, '.');
	bool any = emit_parts(s, str_sub(name, 0, dot));
	for (struct str parent = name;;) {
		size_t next = str_chr(parent, '.');
		if (next == SIZE_MAX)
			break;
		emit_ascii(s, parent, any);
		any = true;
		parent = str_skip(parent, next + 1);
	}
	emit_parts(s, str_skip(name, dot));
}

static bool
is_address(struct str run, size_t *out_at)
{
	size_t at = str_chr(run, '@');
	if (at == SIZE_MAX || at == 0)
		return false;
	*out_at = at;
	return is_domain(str_skip(run, at + 1));
}

/* A run of ASCII letters, digits and inner connectors. */
static void
split_ascii(struct scan *s, struct str run, bool alone)
{
	size_t at;
	bool address = is_address(run, &at);
	if (s->query && s->whole && alone && (address || is_domain(run))) {
		emit_ascii(s, run, false);
		return;
	}
	if (s->query) {
		emit_parts(s, run);
		return;
	}
	if (address) {
		bool any = emit_parts(s, str_sub(run, 0, at));
		emit_ascii(s, run, any);
		emit_domain(s, str_skip(run, at + 1));
		return;
	}
	/* "x=example.org", "_dmarc.example.org": names between other marks */
	for (size_t i = 0; i < run.len;) {
		size_t from = i;
		while (i < run.len && run.ptr[i] != '@' && run.ptr[i] != '_' &&
		    run.ptr[i] != '+' && run.ptr[i] != '=')
			i++;
		struct str piece = str_sub(run, from, i - from);
		while (piece.len > 0 && (piece.ptr[0] == '.' ||
		    piece.ptr[0] == '-'))
			piece = str_skip(piece, 1);
		if (is_domain(piece))
			emit_domain(s, piece);
		else
			emit_parts(s, piece);
		i++;
	}
}

/* --- other runs --- */

static int
from_unicode(void *context, int flags, const char *token, int len, int start,
    int end)
{
	struct scan *s = context;
	(void)start;
	(void)end;
	if (len > TOKENIZER_MAX_TOKEN) {
		len = TOKENIZER_MAX_TOKEN;
		while (len > 0 && ((unsigned char)token[len] & 0xc0) == 0x80)
			len--;
	}
	emit(s, str_of(token, (size_t)len), flags & FTS5_TOKEN_COLOCATED);
	return s->rc;
}

static void
split_unicode(struct scan *s, struct str text)
{
	if (s->rc == SQLITE_OK && text.len > 0)
		s->rc = s->t->unicode.xTokenize(s->t->base, s, 0, text.ptr,
		    (int)text.len, from_unicode);
}

/* `text` is CJK characters only. In a query the last one alone is only
 * wanted when something follows, else the text may go on where it is found. */
static void
split_cjk(struct scan *s, struct str text, bool more)
{
	uint32_t cp;
	for (;;) {
		size_t one = utf8_decode(text, &cp);
		size_t two = utf8_decode(str_skip(text, one), &cp);
		if (two == 0)
			break;
		emit(s, str_sub(text, 0, one + two), false);
		text = str_skip(text, one);
		if (text.len == two && s->query && !more)
			return;
	}
	emit(s, text, false);
}

static void
split_mixed(struct scan *s, struct str run, bool more)
{
	while (run.len > 0) {
		size_t len = 0;
		uint32_t cp;
		size_t n = utf8_decode(run, &cp);
		bool cjk = is_cjk(cp);
		while (n > 0 && is_cjk(cp) == cjk) {
			len += n;
			n = utf8_decode(str_skip(run, len), &cp);
		}
		struct str part = str_sub(run, 0, len);
		run = str_skip(run, len);
		if (len == 0)
			return;
		if (cjk)
			split_cjk(s, part, more || run.len > 0);
		else
			split_unicode(s, part);
	}
}

/* --- runs of a text --- */

/* Letters of base64 from here on; also whether they look like it. */
static size_t
base64_span(struct str s, bool *out_looks)
{
	size_t n = 0;
	bool upper = false, lower = false, digit = false;
	for (; n < s.len; n++) {
		char c = s.ptr[n];
		if (c >= 'A' && c <= 'Z')
			upper = true;
		else if (c >= 'a' && c <= 'z')
			lower = true;
		else if (ascii_is_digit(c))
			digit = true;
		else if (c != '+' && c != '/' && c != '=')
			break;
	}
	*out_looks = n >= TOKENIZER_BASE64_RUN && upper && lower && digit;
	return n;
}

/* Word characters from here on, connectors only between them. */
static size_t
run_length(struct str s, bool *out_ascii)
{
	size_t n = 0, end = 0;
	*out_ascii = true;
	while (n < s.len && n < TOKENIZER_MAX_RUN) {
		unsigned char c = (unsigned char)s.ptr[n];
		if (c < 0x80 && !is_alnum(c) && !is_connector(c))
			break;
		n++;
		if (c >= 0x80)
			*out_ascii = false;
		if (!is_connector(c))
			end = n;
	}
	/* not inside a character */
	while (end > 0 && end < s.len &&
	    ((unsigned char)s.ptr[end] & 0xc0) == 0x80)
		end--;
	return end > 0 ? end : n;
}

static bool
all_ascii(struct str s)
{
	for (size_t i = 0; i < s.len; i++)
		if ((unsigned char)s.ptr[i] >= 0x80)
			return false;
	return true;
}

static void
split_run(struct scan *s, struct str run, bool ascii, bool alone, bool more)
{
	if (!ascii) {
		fold_width(s->t, run);
		run = buf_str(&s->t->folded);
		if (s->t->folded.error == RES_NOMEM)
			s->rc = SQLITE_NOMEM;
		ascii = all_ascii(run);
	}
	if (ascii)
		split_ascii(s, run, alone);
	else
		split_mixed(s, run, more);
}

/* A word of ASCII letters and digits with a blank or the like behind it, as
 * nearly all are: lower case, emitted, its length returned. 0: it takes more
 * than this to tell. */
static size_t
simple_word(struct scan *s, struct str rest)
{
	char lower[TOKENIZER_BASE64_RUN];
	size_t n = 0;
	size_t max = rest.len < sizeof lower ? rest.len : sizeof lower;
	for (char c; n < max &&
	     (c = (char)lower_word[(unsigned char)rest.ptr[n]]) != 0; n++)
		lower[n] = c;
	if (n == 0 || n == sizeof lower)
		return 0;
	if (n < rest.len) {
		unsigned char c = (unsigned char)rest.ptr[n];
		if (c >= 0x80 || c == '+' || c == '=' || c == '/')
			return 0;
		/* a connector only counts between two others */
		if (is_connector(c) && n + 1 < rest.len) {
			c = (unsigned char)rest.ptr[n + 1];
			if (c >= 0x80 || is_alnum(c) || is_connector(c))
				return 0;
		}
	}
	emit(s, str_of(lower, n), false);
	return n;
}

static size_t
split_marked(struct scan *s, struct str text)
{
	size_t n = 0;
	while (n < text.len && (unsigned char)text.ptr[n] > ' ')
		n++;
	emit(s, str_sub(text, 0,
	    n < TOKENIZER_MAX_MARKED ? n : TOKENIZER_MAX_MARKED), false);
	return n;
}

static void
split_text(struct scan *s, struct str text)
{
	size_t at = 0, checked = 0;
	while (at < text.len && s->rc == SQLITE_OK) {
		struct str rest = str_skip(text, at);
		unsigned char c = (unsigned char)rest.ptr[0];
		s->offset = at;
		if (c < 0x80 && !is_alnum(c)) {
			at++;
			continue;
		}
		size_t simple = simple_word(s, rest);
		if (simple > 0) {
			at += simple;
			continue;
		}
		if (str_starts(rest, STR(TOKENIZER_FACT_MARK))) {
			at += split_marked(s, rest);
			continue;
		}
		if (at >= checked && c < 0x80) {
			bool looks;
			size_t n = base64_span(rest, &looks);
			checked = at + n;
			if (looks) {
				at = checked;
				continue;
			}
		}
		bool ascii;
		size_t n = run_length(rest, &ascii);
		split_run(s, str_sub(rest, 0, n), ascii,
		    at == 0 && n == text.len, at + n < text.len);
		at += n;
	}
}

/* --- FTS5 --- */

static int
x_create(void *context, const char **args, int count, Fts5Tokenizer **out)
{
	static const char *options[] = { "remove_diacritics", "2" };
	fts5_api *api = context;
	void *base_context;
	(void)args;
	(void)count;
	struct tokenizer *t = calloc(1, sizeof *t);
	if (t == NULL)
		return SQLITE_NOMEM;
	buf_init(&t->folded, TOKENIZER_MAX_RUN * 2);
	int rc = api->xFindTokenizer(
	    api, "unicode61", &base_context, &t->unicode);
	if (rc == SQLITE_OK)
		rc = t->unicode.xCreate(base_context, options, 2, &t->base);
	if (rc != SQLITE_OK) {
		free(t);
		return rc;
	}
	*out = (Fts5Tokenizer *)t;
	return SQLITE_OK;
}

static void
x_delete(Fts5Tokenizer *tokenizer)
{
	struct tokenizer *t = (struct tokenizer *)tokenizer;
	if (t == NULL)
		return;
	t->unicode.xDelete(t->base);
	buf_done(&t->folded);
	free(t);
}

static int
x_tokenize(Fts5Tokenizer *tokenizer, void *context, int flags,
    const char *text, int len, token_fn token)
{
	struct scan s = { .t = (struct tokenizer *)tokenizer,
		.emit = token,
		.context = context,
		.query = flags & FTS5_TOKENIZE_QUERY };
	struct str t = str_of(text, len > 0 ? (size_t)len : 0);
	if (s.query && str_starts(t, STR(TOKENIZER_WORD_MARK))) {
		s.whole = true;
		t = str_skip(t, sizeof TOKENIZER_WORD_MARK - 1);
	}
	split_text(&s, t);
	return s.rc;
}

enum res
tokenizer_register(sqlite3 *db)
{
	fts5_api *api = NULL;
	sqlite3_stmt *st = NULL;
	if (sqlite3_prepare_v2(db, "SELECT fts5(?1)", -1, &st, NULL) ==
	    SQLITE_OK) {
		sqlite3_bind_pointer(st, 1, &api, "fts5_api_ptr", NULL);
		(void)sqlite3_step(st);
	}
	sqlite3_finalize(st);
	if (api == NULL)
		return RES_UNSUPPORTED;
	fts5_tokenizer methods = { x_create, x_delete, x_tokenize };
	if (api->xCreateTokenizer(api, TOKENIZER_NAME, api, &methods, NULL) !=
	    SQLITE_OK)
		return RES_NOMEM;
	return RES_OK;
}

/* --- for queries --- */

static int
count_token(void *context, int flags, const char *token, int len, int start,
    int end)
{
	(void)flags;
	(void)token;
	(void)len;
	(void)start;
	(void)end;
	++*(size_t *)context;
	return SQLITE_OK;
}

bool
tokenizer_has_token(struct str text)
{
	for (size_t i = 0; i < text.len; i++)
		if (is_alnum((unsigned char)text.ptr[i]))
			return true;
	if (all_ascii(text))
		return false;
	/* only unicode61 knows; without it the word is kept */
	size_t count = 1;
	sqlite3 *db = NULL;
	fts5_tokenizer methods;
	void *context;
	Fts5Tokenizer *instance = NULL;
	if (sqlite3_open(":memory:", &db) == SQLITE_OK &&
	    tokenizer_register(db) == RES_OK) {
		fts5_api *api = NULL;
		sqlite3_stmt *st = NULL;
		if (sqlite3_prepare_v2(db, "SELECT fts5(?1)", -1, &st, NULL) ==
		    SQLITE_OK) {
			sqlite3_bind_pointer(
			    st, 1, &api, "fts5_api_ptr", NULL);
			(void)sqlite3_step(st);
		}
		sqlite3_finalize(st);
		if (api != NULL &&
		    api->xFindTokenizer(
			api, TOKENIZER_NAME, &context, &methods) == SQLITE_OK &&
		    methods.xCreate(context, NULL, 0, &instance) == SQLITE_OK) {
			count = 0;
			(void)methods.xTokenize(instance, &count,
			    FTS5_TOKENIZE_QUERY, text.ptr, (int)text.len,
			    count_token);
			methods.xDelete(instance);
		}
	}
	sqlite3_close(db);
	return count > 0;
}

bool
tokenizer_is_single_cjk(struct str text)
{
	uint32_t cp;
	size_t n = utf8_decode(text, &cp);
	return n > 0 && n == text.len && is_cjk(cp);
}

void
tokenizer_fact(struct buf *out, struct str key, struct str value)
{
	size_t from = out->len;
	buf_add_c(out, TOKENIZER_FACT_MARK);
	buf_add_str(out, key);
	buf_add_char(out, '=');
	size_t used = out->len - from, room = 0;
	if (used < TOKENIZER_MAX_MARKED)
		room = TOKENIZER_MAX_MARKED - used;
	value = str_sub(value, 0, room);
	char *to = buf_reserve(out, value.len);
	if (to == NULL)
		return;
	for (size_t i = 0; i < value.len; i++) {
		unsigned char c = (unsigned char)value.ptr[i];
		to[i] = c <= ' ' || c == 0x7f ? '_' : ascii_lower((char)c);
	}
	out->len += value.len;
}

static bool
is_word_byte(char c)
{
	return ascii_is_alpha(c) || ascii_is_digit(c) || (c & 0x80) != 0;
}

void
tokenizer_fact_words(struct buf *out, struct str key, struct str value)
{
	bool first = true;
	for (size_t at = 0, end; at < value.len; at = end + 1) {
		for (end = at; end < value.len && is_word_byte(value.ptr[end]);)
			end++;
		if (end == at)
			continue;
		if (!first)
			buf_add_char(out, ' ');
		first = false;
		tokenizer_fact(out, key, str_sub(value, at, end - at));
	}
}
