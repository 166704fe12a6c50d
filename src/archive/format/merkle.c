#include "archive/format/merkle.h"

#include <stdlib.h>
#include <string.h>

#include "keys/digest.h"

void
merkle_init(struct merkle *m)
{
	m->count = 0;
}

static enum res
node(const uint8_t *left, const uint8_t *right, uint8_t out[LEAF_HASH_BYTES])
{
	const struct str parts[] = { STR("\1"), str_of(left, LEAF_HASH_BYTES),
		str_of(right, LEAF_HASH_BYTES) };
	return digest_sha256_parts(parts, 3, out);
}

enum res
merkle_add(struct merkle *m, const uint8_t leaf[LEAF_HASH_BYTES])
{
	uint8_t hash[LEAF_HASH_BYTES];
	memcpy(hash, leaf, sizeof hash);
	unsigned i = 0;
	/* like a carry: full subtrees of one size join to the next */
	for (; m->count >> i & 1; i++) {
		enum res r = node(m->peaks[i], hash, hash);
		if (r != RES_OK)
			return r;
	}
	memcpy(m->peaks[i], hash, sizeof hash);
	m->count++;
	return RES_OK;
}

enum res
merkle_root(const struct merkle *m, uint8_t out[LEAF_HASH_BYTES])
{
	if (m->count == 0)
		return digest_sha256("", 0, out);
	uint8_t hash[LEAF_HASH_BYTES];
	bool started = false;
	for (unsigned i = 0; i < 64; i++) {
		if (!(m->count >> i & 1))
			continue;
		if (!started) {
			memcpy(hash, m->peaks[i], sizeof hash);
			started = true;
			continue;
		}
		enum res r = node(m->peaks[i], hash, hash);
		if (r != RES_OK)
			return r;
	}
	memcpy(out, hash, sizeof hash);
	return RES_OK;
}

/* --- plans --- */

/* The largest power of two below n (n > 1). */
static uint64_t
split(uint64_t n)
{
	uint64_t k = 1;
	while (k < n - k)
		k *= 2;
	return k;
}

static void
plan_add(struct merkle_path *p, uint64_t from, uint64_t to)
{
	p->nodes[p->count++] = (struct merkle_node){ .from = from, .to = to };
}

/* Found from the top, wanted from the bottom. */
static void
plan_turn(struct merkle_path *p)
{
	for (size_t i = 0; i < p->count / 2; i++) {
		struct merkle_node n = p->nodes[i];
		p->nodes[i] = p->nodes[p->count - 1 - i];
		p->nodes[p->count - 1 - i] = n;
	}
}

enum res
merkle_plan_inclusion(uint64_t leaf, uint64_t size, struct merkle_path *out)
{
	uint64_t from = 0, to = size;
	if (leaf >= size)
		return RES_INVALID;
	out->count = 0;
	while (to - from > 1) {
		uint64_t middle = from + split(to - from);
		if (leaf < middle) {
			plan_add(out, middle, to);
			to = middle;
		} else {
			plan_add(out, from, middle);
			from = middle;
		}
	}
	plan_turn(out);
	return RES_OK;
}

enum res
merkle_plan_consistency(uint64_t old, uint64_t size, struct merkle_path *out)
{
	uint64_t from = 0, to = size;
	if (old == 0 || old > size)
		return RES_INVALID;
	out->count = 0;
	while (to != old) {
		uint64_t middle = from + split(to - from);
		if (old <= middle) {
			plan_add(out, middle, to);
			to = middle;
		} else {
			plan_add(out, from, middle);
			from = middle;
		}
	}
	if (from != 0) /* else it is the old tree itself */
		plan_add(out, from, to);
	plan_turn(out);
	return RES_OK;
}

void
merkle_pass_begin(struct merkle_pass *p, struct merkle_path *path)
{
	*p = (struct merkle_pass){ .path = path };
	for (size_t i = 0; i < path->count; i++) {
		size_t j = i;
		for (; j > 0 && path->nodes[p->order[j - 1]].from >
		     path->nodes[i].from; j--)
			p->order[j] = p->order[j - 1];
		p->order[j] = i;
	}
	merkle_init(&p->part);
}

enum res
merkle_pass_leaf(struct merkle_pass *p, const uint8_t leaf[LEAF_HASH_BYTES])
{
	uint64_t number = p->leaf++;
	if (p->at == p->path->count)
		return RES_OK;
	struct merkle_node *n = &p->path->nodes[p->order[p->at]];
	if (number < n->from)
		return RES_OK;
	enum res r = merkle_add(&p->part, leaf);
	if (r == RES_OK && number + 1 == n->to) {
		r = merkle_root(&p->part, n->hash);
		merkle_init(&p->part);
		p->at++;
	}
	return r;
}

enum res
merkle_pass_end(const struct merkle_pass *p)
{
	return p->at == p->path->count ? RES_OK : RES_CORRUPT;
}

/* --- checks --- */

/* Up to the next level where leaf number `*at` is a right child. */
static void
climb(uint64_t *at, uint64_t *last)
{
	while (!(*at & 1) && *at != 0) {
		*at >>= 1;
		*last >>= 1;
	}
}

enum res
merkle_check_inclusion(const struct merkle_path *path, uint64_t leaf,
    uint64_t size, const uint8_t leaf_hash[LEAF_HASH_BYTES],
    const uint8_t root[LEAF_HASH_BYTES])
{
	uint8_t hash[LEAF_HASH_BYTES];
	if (leaf >= size)
		return RES_CORRUPT;
	uint64_t at = leaf, last = size - 1;
	memcpy(hash, leaf_hash, sizeof hash);
	for (size_t i = 0; i < path->count; i++) {
		const uint8_t *other = path->nodes[i].hash;
		enum res r;
		if (last == 0)
			return RES_CORRUPT;
		if ((at & 1) || at == last) {
			r = node(other, hash, hash);
			climb(&at, &last);
		} else {
			r = node(hash, other, hash);
		}
		if (r != RES_OK)
			return r;
		at >>= 1;
		last >>= 1;
	}
	return last == 0 && memcmp(hash, root, sizeof hash) == 0 ?
	    RES_OK : RES_CORRUPT;
}

enum res
merkle_check_consistency(const struct merkle_path *path, uint64_t old,
    uint64_t size, const uint8_t old_root[LEAF_HASH_BYTES],
    const uint8_t root[LEAF_HASH_BYTES])
{
	uint8_t was[LEAF_HASH_BYTES], is[LEAF_HASH_BYTES];
	size_t i = 0;
	if (old == 0 || old > size)
		return RES_CORRUPT;
	if (old == size)
		return path->count == 0 &&
			memcmp(old_root, root, sizeof was) == 0 ?
		    RES_OK : RES_CORRUPT;
	if (path->count == 0)
		return RES_CORRUPT;
	const uint8_t *first = old_root;
	if ((old & (old - 1)) != 0)
		first = path->nodes[i++].hash;
	memcpy(was, first, sizeof was);
	memcpy(is, first, sizeof is);
	uint64_t at = old - 1, last = size - 1;
	while (at & 1) {
		at >>= 1;
		last >>= 1;
	}
	for (; i < path->count; i++) {
		const uint8_t *other = path->nodes[i].hash;
		enum res r;
		if (last == 0)
			return RES_CORRUPT;
		if ((at & 1) || at == last) {
			r = node(other, was, was);
			if (r == RES_OK)
				r = node(other, is, is);
			climb(&at, &last);
		} else {
			r = node(is, other, is);
		}
		if (r != RES_OK)
			return r;
		at >>= 1;
		last >>= 1;
	}
	return last == 0 && memcmp(was, old_root, sizeof was) == 0 &&
		memcmp(is, root, sizeof is) == 0 ?
	    RES_OK : RES_CORRUPT;
}

/* --- many proofs --- */

void
merkle_table_init(struct merkle_table *t)
{
	*t = (struct merkle_table){ .count = 0 };
}

void
merkle_table_done(struct merkle_table *t)
{
	for (size_t i = 1; i < sizeof t->levels / sizeof t->levels[0]; i++)
		free(t->levels[i]);
	free(t->leaves);
	merkle_table_init(t);
}

enum res
merkle_table_add(
    struct merkle_table *t, const uint8_t leaf[LEAF_HASH_BYTES])
{
	if (t->count == MERKLE_TABLE_MAX)
		return RES_LIMIT;
	if (t->count == t->cap) {
		size_t cap = t->cap == 0 ? 1024 : t->cap * 2;
		void *more = realloc(t->leaves, cap * LEAF_HASH_BYTES);
		if (more == NULL)
			return RES_NOMEM;
		t->leaves = more;
		t->cap = cap;
	}
	memcpy(t->leaves[t->count++], leaf, LEAF_HASH_BYTES);
	return RES_OK;
}

enum res
merkle_table_build(struct merkle_table *t)
{
	t->levels[0] = t->leaves;
	for (size_t i = 1; t->count >> i != 0; i++) {
		size_t n = (size_t)(t->count >> i);
		uint8_t(*up)[LEAF_HASH_BYTES] = malloc(n * sizeof *up);
		t->levels[i] = up;
		if (up == NULL)
			return RES_NOMEM;
		for (size_t j = 0; j < n; j++) {
			enum res r = node(t->levels[i - 1][2 * j],
			    t->levels[i - 1][2 * j + 1], up[j]);
			if (r != RES_OK)
				return r;
		}
	}
	return RES_OK;
}

/* RFC 6962's spans begin at a multiple of their size, rounded up to a power
 * of two: the largest full subtree comes first, then the rest. Joined from
 * the right. */
static enum res
span_hash(const struct merkle_table *t, uint64_t from, uint64_t to,
    uint8_t out[LEAF_HASH_BYTES])
{
	const uint8_t *parts[64];
	size_t count = 0;
	while (from < to) {
		unsigned level = 0;
		while (level + 1 < sizeof t->levels / sizeof t->levels[0] &&
		    (from >> level & 1) == 0 &&
		    (uint64_t)2 << level <= to - from)
			level++;
		parts[count++] = t->levels[level][from >> level];
		from += (uint64_t)1 << level;
	}
	memcpy(out, parts[count - 1], LEAF_HASH_BYTES);
	for (size_t i = count - 1; i-- > 0;) {
		enum res r = node(parts[i], out, out);
		if (r != RES_OK)
			return r;
	}
	return RES_OK;
}

enum res
merkle_table_fill(const struct merkle_table *t, struct merkle_path *path)
{
	enum res r = RES_OK;
	for (size_t i = 0; i < path->count && r == RES_OK; i++) {
		struct merkle_node *n = &path->nodes[i];
		if (n->from >= n->to || n->to > t->count)
			return RES_INVALID;
		r = span_hash(t, n->from, n->to, n->hash);
	}
	return r;
}
