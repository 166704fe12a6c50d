#include "archive/store/train.h"

#include <stdlib.h>
#include <string.h>

#include "archive/format/compress.h"
#include "base/codec.h"
#include "base/hash.h"

#define MAX_OF_SENDER (TRAIN_MAX_SAMPLES / 10)
/* A string's occurrences are looked through only so far for other senders:
 * beyond, it counts as not shared. */
#define MAX_WINDOW 128
/* What a string saves each time is its length less about this. */
#define MATCH_COST 3
/* Strings counted; what comes later is left out. */
#define MAX_CHOICES ((size_t)1 << 17)
#define PAIRS       65536
/* Samples begin at multiples of this: so a table of their senders is small. */
#define BLOCK 32
/* Behind each sample and each string: a byte no text has. */
#define END '\xff'

struct train {
	struct buf text; /* the samples, an END or more behind each */
	size_t count, sender_count;
	size_t at[TRAIN_MAX_SAMPLES], sizes[TRAIN_MAX_SAMPLES];
	uint16_t sender_of_block[TRAIN_MAX_BYTES / BLOCK];
	struct {
		uint64_t hash;
		size_t samples;
	} senders[TRAIN_MAX_SAMPLES];
};

struct train *
train_new(void)
{
	struct train *t = calloc(1, sizeof *t);
	if (t != NULL)
		buf_init(&t->text, TRAIN_MAX_BYTES + TRAIN_MAX_STRING);
	return t;
}

void
train_free(struct train **t)
{
	if (*t == NULL)
		return;
	buf_done(&(*t)->text);
	free(*t);
	*t = NULL;
}

size_t
train_samples(const struct train *t)
{
	return t->count;
}

/* --- samples --- */

/* Two senders of one hash would only count as one. */
static size_t
find_sender(struct train *t, struct str sender)
{
	uint64_t hash = hash_bytes(sender);
	size_t i = 0;
	while (i < t->sender_count && t->senders[i].hash != hash)
		i++;
	if (i == t->sender_count)
		t->senders[t->sender_count++].hash = hash;
	return i;
}

bool
train_add(struct train *t, struct str sender, struct str text)
{
	size_t room = TRAIN_MAX_BYTES - t->text.len;
	text = str_sub(text, 0, TRAIN_MAX_SAMPLE);
	size_t padded = (text.len + BLOCK) / BLOCK * BLOCK;
	if (t->count == TRAIN_MAX_SAMPLES || padded > room)
		return false;
	size_t from = find_sender(t, sender);
	if (t->senders[from].samples == MAX_OF_SENDER)
		return false;
	char *to = buf_reserve(&t->text, padded);
	if (to == NULL)
		return false;
	size_t len = 0;
	for (size_t i = 0; i < text.len; i++)
		if (text.ptr[i] != END)
			to[len++] = text.ptr[i];
	memset(to + len, END, padded - len);
	for (size_t i = 0; i < padded; i += BLOCK)
		t->sender_of_block[(t->text.len + i) / BLOCK] = (uint16_t)from;
	t->at[t->count] = t->text.len;
	t->sizes[t->count++] = len;
	t->text.len += padded;
	t->senders[from].samples++;
	return true;
}

/* --- what is shared --- */

static bool
is_word(char c)
{
	return ascii_is_alpha(c) || ascii_is_digit(c) || (uint8_t)c >= 0x80;
}

/* Does a new piece, the marks before a word and the word, begin here? */
static bool
begins(const char *text, size_t at)
{
	return at == 0 || text[at] == END || text[at - 1] == END ||
	    (!is_word(text[at]) && is_word(text[at - 1]));
}

/* The suffixes at which a piece begins, sorted by their first
 * TRAIN_MAX_STRING bytes. */
struct suffixes {
	const char *text; /* a whole string of ENDs behind it */
	size_t count;
	uint32_t *at;
	const uint16_t *sender_of_block;
	uint8_t *shared; /* of each byte: length of the longest shared string */
};

static int
compare_suffixes(const void *a, const void *b, void *context)
{
	const char *text = context;
	return memcmp(text + *(const uint32_t *)a, text + *(const uint32_t *)b,
	    TRAIN_MAX_STRING);
}

static bool
is_suffix(const char *text, size_t at)
{
	return text[at] != END && begins(text, at);
}

static size_t
pair_at(const char *p)
{
	return (size_t)(uint8_t)p[0] << 8 | (uint8_t)p[1];
}

/* Into buckets by their first two bytes, then each bucket by the rest. */
static enum res
sort_suffixes(struct suffixes *s, size_t len)
{
	uint32_t *begin = calloc(PAIRS + 1, sizeof *begin);
	if (begin == NULL)
		return RES_NOMEM;
	for (size_t i = 0; i < len; i++)
		if (is_suffix(s->text, i))
			begin[pair_at(s->text + i) + 1]++;
	for (size_t i = 0; i < PAIRS; i++)
		begin[i + 1] += begin[i];
	s->count = begin[PAIRS];
	s->at = malloc((s->count + 1) * sizeof *s->at);
	if (s->at == NULL) {
		free(begin);
		return RES_NOMEM;
	}
	for (size_t i = 0; i < len; i++)
		if (is_suffix(s->text, i))
			s->at[begin[pair_at(s->text + i)]++] = (uint32_t)i;
	/* each begin[i] now stands where its bucket ends */
	for (size_t i = 0, from = 0; i < PAIRS; from = begin[i++])
		if (begin[i] - from > 1)
			qsort_r(s->at + from, begin[i] - from, sizeof *s->at,
			    compare_suffixes, (void *)(uintptr_t)s->text);
	free(begin);
	return RES_OK;
}

/* Bytes two suffixes have in common, within their samples. */
static uint8_t
common(const char *a, const char *b)
{
	uint8_t n = 0;
	while (n < TRAIN_MAX_STRING && a[n] == b[n] && a[n] != END)
		n++;
	return n;
}

/* A run of suffixes with enough senders shares what its first and its last
 * one have in common. */
static void
mark_run(struct suffixes *s, size_t from, size_t to)
{
	uint8_t n = common(s->text + s->at[from], s->text + s->at[to]);
	if (n < TRAIN_MIN_STRING)
		return;
	for (size_t i = from; i <= to; i++)
		if (s->shared[s->at[i]] < n)
			s->shared[s->at[i]] = n;
}

static uint16_t
sender_of(const struct suffixes *s, size_t i)
{
	return s->sender_of_block[s->at[i] / BLOCK];
}

/* Every suffix gets marked as the first and as the last of the shortest run
 * that has enough senders, and in what stands between. */
static void
find_shared(struct suffixes *s)
{
	size_t from = 0, distinct = 0, last = SIZE_MAX;
	uint16_t seen[TRAIN_MAX_SAMPLES] = { 0 };
	for (size_t to = 0; to < s->count; to++) {
		distinct += seen[sender_of(s, to)]++ == 0;
		while (
		    distinct == TRAIN_MIN_SENDERS || to - from > MAX_WINDOW) {
			if (distinct == TRAIN_MIN_SENDERS) {
				mark_run(s, from, to);
				last = from;
			}
			distinct -= --seen[sender_of(s, from++)] == 0;
		}
		if (last != SIZE_MAX && to - last <= MAX_WINDOW)
			mark_run(s, last, to);
	}
}

/* --- which of it is worth its place --- */

struct choice {
	uint32_t at, uses;
	uint8_t len, pieces;
	bool dropped;
};

struct choices {
	const char *text;
	size_t count, cap;
	struct choice *slots; /* by hash; len 0 = free */
};

/* Where this string is, or would be. */
static struct choice *
slot_of(const struct choices *c, size_t at, size_t len)
{
	struct str s = str_of(c->text + at, len);
	size_t i = (size_t)hash_bytes(s) & (c->cap - 1);
	while (c->slots[i].len != 0 &&
	    !str_eq(str_of(c->text + c->slots[i].at, c->slots[i].len), s))
		i = (i + 1) & (c->cap - 1);
	return &c->slots[i];
}

/* Every shared string of whole pieces, wherever a piece begins. */
static void
collect(const struct suffixes *s, size_t len, struct choices *c)
{
	for (size_t at = 0; at < len; at++) {
		if (s->shared[at] < TRAIN_MIN_STRING || !begins(s->text, at))
			continue;
		unsigned pieces = 0;
		for (size_t n = 1; n <= s->shared[at]; n++) {
			if (!begins(s->text, at + n))
				continue;
			pieces++;
			if (n < TRAIN_MIN_STRING || c->count == MAX_CHOICES)
				continue;
			struct choice *o = slot_of(c, at, n);
			c->count += o->len == 0;
			if (o->len == 0)
				*o = (struct choice){ .at = (uint32_t)at,
					.len = (uint8_t)n,
					.pieces = (uint8_t)pieces };
		}
	}
}

/* The longest string left that stands at `at`; NULL: none. */
static struct choice *
longest(const struct suffixes *s, const struct choices *c, size_t at)
{
	if (!begins(s->text, at))
		return NULL;
	for (size_t n = s->shared[at]; n >= TRAIN_MIN_STRING; n--) {
		if (!begins(s->text, at + n))
			continue;
		struct choice *o = slot_of(c, at, n);
		if (o->len != 0 && !o->dropped)
			return o;
	}
	return NULL;
}

/* How often each is used when the samples are taken apart into them. */
static void
count_uses(const struct suffixes *s, size_t len, struct choices *c)
{
	for (size_t i = 0; i < c->cap; i++)
		c->slots[i].uses = 0;
	for (size_t at = 0; at < len;) {
		struct choice *o = longest(s, c, at);
		if (o != NULL)
			o->uses++;
		at += o != NULL ? o->len : 1;
	}
}

/* Bytes saved in the samples for each byte of the dictionary. A string of
 * several pieces, which can stand there alone as well, only makes one match
 * of many. */
static double
worth(const struct choice *c)
{
	int saved =
	    c->pieces == 1 ? c->len - MATCH_COST : MATCH_COST * (c->pieces - 1);
	return (double)c->uses * saved / (c->len + 1);
}

static void
drop_below(struct choices *c, double least)
{
	for (size_t i = 0; i < c->cap; i++)
		if (c->slots[i].pieces > 1 && worth(&c->slots[i]) < least)
			c->slots[i].dropped = true;
}

static int
better_first(const void *a, const void *b)
{
	const struct choice *x = a, *y = b;
	double wx = worth(x), wy = worth(y);
	if (wx != wy)
		return wx < wy ? 1 : -1;
	return (x->at > y->at) - (x->at < y->at);
}

/* The best ones, the very best at the end, where zstd reaches them with the
 * fewest bits. */
static enum res
write_choices(const struct choices *c, struct buf *out)
{
	struct buf taken;
	enum res r = RES_OK;
	size_t count = 0;
	buf_init(&taken, TRAIN_MAX_CONTENT);
	for (size_t i = 0; i < c->count; i++) {
		const struct choice *o = &c->slots[i];
		if (o->len + 1u > TRAIN_MAX_CONTENT - taken.len)
			continue;
		struct str text = str_of(c->text + o->at, o->len);
		if (str_find(buf_str(&taken), text) != SIZE_MAX)
			continue;
		buf_add(&taken, c->text + o->at, o->len);
		buf_add_char(&taken, END);
		c->slots[count++] = *o;
	}
	r = taken.error;
	buf_done(&taken);
	for (size_t i = count; i-- > 0;) {
		buf_add(out, c->text + c->slots[i].at, c->slots[i].len);
		buf_add_char(out, END);
	}
	return r == RES_OK ? out->error : r;
}

static enum res
pick(const struct suffixes *s, size_t len, struct buf *out)
{
	/* dropping a string lets shorter ones be used instead */
	static const double least_worth[] = { 0.2, 0.4, 0.7, 1 };
	struct choices c = { .text = s->text, .cap = 2 * MAX_CHOICES };
	c.slots = calloc(c.cap, sizeof *c.slots);
	if (c.slots == NULL)
		return RES_NOMEM;
	collect(s, len, &c);
	for (size_t i = 0; i < sizeof least_worth / sizeof *least_worth; i++) {
		count_uses(s, len, &c);
		drop_below(&c, least_worth[i]);
	}
	count_uses(s, len, &c);
	c.count = 0;
	for (size_t i = 0; i < c.cap; i++)
		if (c.slots[i].uses > 0)
			c.slots[c.count++] = c.slots[i];
	qsort(c.slots, c.count, sizeof *c.slots, better_first);
	enum res r = write_choices(&c, out);
	free(c.slots);
	return r;
}

enum res
train_strings(struct train *t, struct buf *out)
{
	size_t len = t->text.len;
	char *end = buf_reserve(&t->text, TRAIN_MAX_STRING);
	if (end == NULL)
		return t->text.error;
	memset(end, END, TRAIN_MAX_STRING);
	struct suffixes s = { .text = t->text.ptr,
		.sender_of_block = t->sender_of_block };
	s.shared = calloc(len + 1, 1);
	enum res r = s.shared != NULL ? RES_OK : RES_NOMEM;
	if (r == RES_OK)
		r = sort_suffixes(&s, len);
	if (r == RES_OK)
		find_shared(&s);
	free(s.at);
	if (r == RES_OK)
		r = pick(&s, len, out);
	free(s.shared);
	return r;
}

/* The samples side by side, as zstd wants them. */
static void
close_gaps(struct train *t)
{
	size_t to = 0;
	for (size_t i = 0; i < t->count; i++) {
		memmove(t->text.ptr + to, t->text.ptr + t->at[i], t->sizes[i]);
		to += t->sizes[i];
	}
	t->text.len = to;
}

enum res
train_finish(struct train *t, struct buf *out)
{
	struct buf strings;
	if (t->count < TRAIN_MIN_SAMPLES)
		return RES_NOTFOUND;
	buf_init(&strings, TRAIN_MAX_CONTENT + 1);
	enum res r = train_strings(t, &strings);
	if (r == RES_OK && strings.len < TRAIN_MIN_CONTENT)
		r = RES_NOTFOUND;
	if (r == RES_OK) {
		close_gaps(t);
		r = dictionary_make(
		    buf_str(&strings), t->text.ptr, t->sizes, t->count, out);
	}
	buf_done(&strings);
	return r;
}
