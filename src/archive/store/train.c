#include "archive/store/train.h"

#include <stdlib.h>
#include <string.h>

#include "archive/format/compress.h"
#include "archive/store/train_inside.h"
#include "base/codec.h"
#include "base/hash.h"

#define MAX_OF_SENDER (TRAIN_MAX_SAMPLES / 10)
#define PAIRS       65536
/* Enough for zstd's entropy tables, which take long. */
#define ENTROPY_SAMPLES 200
_Static_assert(ENTROPY_SAMPLES <= TRAIN_MIN_SAMPLES, "there are so many");
/* Repeated bytes of a sample that are left out, if so many. */
#define REPEAT_MIN   32
#define REPEAT_SLOTS 4096
/* Samples begin at multiples of this: so a table of their senders is small. */
#define BLOCK 32
#define END TRAIN_END

struct train {
	struct buf text;  /* the samples, an END or more behind each */
	struct buf whole; /* the first ones side by side, as zstd wants them */
	size_t sizes[ENTROPY_SAMPLES];
	size_t max_bytes, count, sender_count;
	uint16_t sender_of_block[TRAIN_MAX_BYTES / BLOCK];
	struct {
		uint64_t hash;
		size_t samples;
	} senders[TRAIN_MAX_SAMPLES];
};

struct train *
train_new(size_t max_bytes)
{
	struct train *t = calloc(1, sizeof *t);
	if (t == NULL)
		return NULL;
	t->max_bytes = max_bytes;
	buf_init(&t->text, max_bytes + TRAIN_MAX_STRING);
	buf_init(&t->whole, ENTROPY_SAMPLES * TRAIN_MAX_SAMPLE);
	return t;
}

void
train_free(struct train **t)
{
	if (*t == NULL)
		return;
	buf_done(&(*t)->text);
	buf_done(&(*t)->whole);
	free(*t);
	*t = NULL;
}

size_t
train_samples(const struct train *t)
{
	return t->count;
}

bool
train_full(const struct train *t)
{
	return t->count == TRAIN_MAX_SAMPLES ||
	    t->max_bytes - t->text.len < TRAIN_MAX_SAMPLE + BLOCK;
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

/* Bytes at `at` that stood in the text before; `seen` says where, by the hash
 * of eight bytes. */
static size_t
repeated(struct str text, size_t at, uint16_t seen[REPEAT_SLOTS])
{
	if (text.len - at < REPEAT_MIN)
		return 0;
	const uint8_t *p = (const uint8_t *)text.ptr + at;
	uint64_t hash = get_le64(p) * 0x9e3779b97f4a7c15u;
	uint16_t *slot = &seen[hash >> 32 & (REPEAT_SLOTS - 1)];
	size_t n = 0;
	if (*slot != 0) {
		const char *before = text.ptr + *slot - 1;
		while (at + n < text.len && before[n] == text.ptr[at + n])
			n++;
	}
	*slot = (uint16_t)(at + 1);
	return n;
}

/* What a message says twice, such as its text as HTML, zstd finds in the
 * message itself: here it would only take time, and room of others. */
static size_t
copy_once(struct str text, char *to)
{
	uint16_t seen[REPEAT_SLOTS] = { 0 };
	size_t len = 0;
	for (size_t i = 0; i < text.len;) {
		size_t n = repeated(text, i, seen);
		if (n >= REPEAT_MIN) {
			to[len++] = END;
			i += n;
		} else {
			to[len++] = text.ptr[i++];
		}
	}
	return len;
}

bool
train_add(struct train *t, struct str sender, struct str text)
{
	text = str_sub(text, 0, TRAIN_MAX_SAMPLE);
	if (train_full(t))
		return false;
	size_t from = find_sender(t, sender);
	if (t->senders[from].samples == MAX_OF_SENDER)
		return false;
	char *to = buf_reserve(&t->text, text.len + BLOCK);
	if (to == NULL)
		return false;
	if (t->count < ENTROPY_SAMPLES) {
		buf_add_str(&t->whole, text);
		t->sizes[t->count] = text.len;
		if (t->whole.error != RES_OK)
			return false;
	}
	size_t len = copy_once(text, to);
	size_t padded = (len + BLOCK) / BLOCK * BLOCK;
	memset(to + len, END, padded - len);
	for (size_t i = 0; i < padded; i += BLOCK)
		t->sender_of_block[(t->text.len + i) / BLOCK] = (uint16_t)from;
	t->text.len += padded;
	t->count++;
	t->senders[from].samples++;
	return true;
}

/* --- what is shared --- */

/* The suffixes at which a piece begins, sorted by their first
 * TRAIN_MAX_STRING bytes. */
struct suffixes {
	const char *text; /* a whole string of ENDs behind it */
	size_t count;
	uint32_t *at;
	const uint16_t *sender_of_block;
	uint8_t *shared; /* of each byte: length of the longest shared string */
};

/* Most differ in the eight bytes behind the two that put them into one
 * bucket. */
static int
compare_suffixes(const void *a, const void *b, void *context)
{
	const uint8_t *text = context;
	const uint8_t *p = text + *(const uint32_t *)a + 2;
	const uint8_t *q = text + *(const uint32_t *)b + 2;
	uint64_t x = get_be64(p), y = get_be64(q);
	if (x != y)
		return x < y ? -1 : 1;
	return memcmp(p + 8, q + 8, TRAIN_MAX_STRING - 10);
}

static bool
is_suffix(const char *text, size_t at)
{
	return text[at] != END && train_begins(text, at);
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

/* Runs of suffixes with enough senders, in the order in which they begin and
 * end, that hold a place: only those that share less than the ones before, as
 * a longer one that begins later and ends later does for both. */
struct runs {
	struct {
		size_t last;
		uint8_t shared;
	} queue[256]; /* a ring: `shared` is at most TRAIN_MAX_STRING */
	uint8_t first;
	size_t count;
};

static void
add_run(struct runs *r, size_t last, uint8_t shared)
{
	while (r->count > 0 &&
	    r->queue[(r->first + r->count - 1) & 255].shared <= shared)
		r->count--;
	size_t i = (r->first + r->count++) & 255;
	r->queue[i].last = last;
	r->queue[i].shared = shared;
}

/* What the best of them that holds `i` shares; later places only follow. */
static uint8_t
best_run(struct runs *r, size_t i)
{
	while (r->count > 0 && r->queue[r->first].last < i) {
		r->first++;
		r->count--;
	}
	return r->count > 0 ? r->queue[r->first].shared : 0;
}

static void
mark(struct suffixes *s, size_t i, uint8_t shared)
{
	if (shared >= TRAIN_MIN_STRING && s->shared[s->at[i]] < shared)
		s->shared[s->at[i]] = shared;
}

static uint8_t
shared_by_run(const struct suffixes *s, size_t first, size_t last)
{
	return common(s->text + s->at[first], s->text + s->at[last]);
}

static uint16_t
sender_of(const struct suffixes *s, size_t i)
{
	return s->sender_of_block[s->at[i] / BLOCK];
}

/* A run of suffixes with enough senders shares what its first and its last
 * one have in common. For each suffix the shortest run that begins with it,
 * the shortest one that ends with it, and the shortest ones around it. */
static void
find_shared(struct suffixes *s)
{
	size_t from = 0, distinct = 0;
	uint16_t seen[TRAIN_MAX_SAMPLES] = { 0 };
	struct runs runs = { .count = 0 };
	for (size_t to = 0; to < s->count; to++) {
		distinct += seen[sender_of(s, to)]++ == 0;
		while (distinct == TRAIN_MIN_SENDERS) {
			add_run(&runs, to, shared_by_run(s, from, to));
			mark(s, from, best_run(&runs, from));
			distinct -= --seen[sender_of(s, from++)] == 0;
		}
		if (from > 0)
			mark(s, to, shared_by_run(s, from - 1, to));
	}
	for (; from < s->count; from++)
		mark(s, from, best_run(&runs, from));
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
	struct train_shared shared = { s.text, len, s.shared };
	if (r == RES_OK)
		r = train_pick(&shared, out);
	free(s.shared);
	if (r == RES_OK)
		r = train_order(str_of(t->text.ptr, len), out);
	return r;
}

enum res
train_finish(struct train *t, uint32_t id, struct buf *out)
{
	struct buf strings;
	if (t->count < TRAIN_MIN_SAMPLES)
		return RES_NOTFOUND;
	buf_init(&strings, TRAIN_MAX_CONTENT + 1);
	enum res r = train_strings(t, &strings);
	if (r == RES_OK && strings.len < TRAIN_MIN_CONTENT)
		r = RES_NOTFOUND;
	if (r == RES_OK) {
		r = dictionary_make(id, buf_str(&strings), t->whole.ptr,
		    t->sizes, ENTROPY_SAMPLES, out);
	}
	buf_done(&strings);
	return r;
}
