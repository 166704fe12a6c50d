#include "archive/merkle.h"

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
