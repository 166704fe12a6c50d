/* Which of the shared strings are worth their place, and where in it. */
#include <stdlib.h>

#include "archive/store/train.h"
#include "archive/store/train_inside.h"
#include "base/hash.h"

/* What a string saves each time is its length less about this. */
#define MATCH_COST 3
/* Strings counted; what comes later is left out. */
#define MAX_CHOICES ((size_t)1 << 17)

struct choice {
	uint32_t at, uses;
	uint8_t len, pieces;
	bool dropped;
};

struct choices {
	const char *text;
	uint64_t key; /* of the hash, odd */
	size_t count, cap;
	struct choice *slots; /* by hash; len 0 = free */
};

/* A polynomial, so that it grows with the string; strings are too short to
 * make two collide for every key. */
static uint64_t
hash_more(const struct choices *c, uint64_t hash, const char *p, size_t len)
{
	for (size_t i = 0; i < len; i++)
		hash = (hash + (uint8_t)p[i] + 1) * c->key;
	return hash;
}

/* Where this string is, or would be. */
static struct choice *
slot_of(const struct choices *c, size_t at, size_t len, uint64_t hash)
{
	struct str s = str_of(c->text + at, len);
	size_t i = (size_t)((hash ^ hash >> 29) * c->key >> 40) & (c->cap - 1);
	while (c->slots[i].len != 0 &&
	    !str_eq(str_of(c->text + c->slots[i].at, c->slots[i].len), s))
		i = (i + 1) & (c->cap - 1);
	return &c->slots[i];
}

static void
collect_at(const struct train_shared *s, size_t at, struct choices *c)
{
	unsigned pieces = 0;
	size_t begin = 0;
	uint64_t hash = 0;
	for (size_t n = 1; n <= s->longest[at]; n++) {
		if (!train_begins(s->text, at + n))
			continue;
		hash = hash_more(c, hash, s->text + at + begin, n - begin);
		begin = n;
		pieces++;
		if (n < TRAIN_MIN_STRING || c->count == MAX_CHOICES)
			continue;
		struct choice *o = slot_of(c, at, n, hash);
		c->count += o->len == 0;
		if (o->len == 0)
			*o = (struct choice){ .at = (uint32_t)at,
				.len = (uint8_t)n,
				.pieces = (uint8_t)pieces };
	}
}

/* Every shared string of whole pieces, wherever a piece begins. */
static void
collect(const struct train_shared *s, struct choices *c)
{
	for (size_t at = 0; at < s->len; at++)
		if (s->longest[at] >= TRAIN_MIN_STRING)
			collect_at(s, at, c);
}

/* The longest string left that stands at `at`; NULL: none. What is dropped
 * never comes back, so the next time begins with what was found. */
static struct choice *
longest(const struct train_shared *s, const struct choices *c, size_t at)
{
	for (size_t n = s->longest[at]; n >= TRAIN_MIN_STRING; n--) {
		if (!train_begins(s->text, at + n))
			continue;
		struct choice *o =
		    slot_of(c, at, n, hash_more(c, 0, s->text + at, n));
		if (o->len != 0 && !o->dropped) {
			s->longest[at] = (uint8_t)n;
			return o;
		}
	}
	s->longest[at] = 0;
	return NULL;
}

/* How often each is used when the samples are taken apart into them. */
static void
count_uses(const struct train_shared *s, struct choices *c)
{
	for (size_t i = 0; i < c->cap; i++)
		c->slots[i].uses = 0;
	for (size_t at = 0; at < s->len;) {
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

/* The best ones, the very best at the end. */
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
		buf_add_char(&taken, TRAIN_END);
		c->slots[count++] = *o;
	}
	r = taken.error;
	buf_done(&taken);
	for (size_t i = count; i-- > 0;) {
		buf_add(out, c->text + c->slots[i].at, c->slots[i].len);
		buf_add_char(out, TRAIN_END);
	}
	return r == RES_OK ? out->error : r;
}

enum res
train_pick(const struct train_shared *s, struct buf *out)
{
	/* dropping a string lets shorter ones be used instead */
	static const double least_worth[] = { 0.2, 0.4, 0.7, 1 };
	struct choices c = { .text = s->text,
		.key = hash_bytes(STR("train")) | 1,
		.cap = 2 * MAX_CHOICES };
	c.slots = calloc(c.cap, sizeof *c.slots);
	if (c.slots == NULL)
		return RES_NOMEM;
	collect(s, &c);
	for (size_t i = 0; i < sizeof least_worth / sizeof *least_worth; i++) {
		count_uses(s, &c);
		drop_below(&c, least_worth[i]);
	}
	count_uses(s, &c);
	c.count = 0;
	for (size_t i = 0; i < c.cap; i++)
		if (c.slots[i].uses > 0)
			c.slots[c.count++] = c.slots[i];
	qsort(c.slots, c.count, sizeof *c.slots, better_first);
	enum res r = write_choices(&c, out);
	free(c.slots);
	return r;
}
