/* The tree head of RFC 6962 §2.1 over leaf hashes that arrive one by one.
 * Keeps one hash per set bit of the count, so any number of leaves fits. */
#ifndef ARCHIVE_MERKLE_H
#define ARCHIVE_MERKLE_H

#include <stdint.h>

#include "archive/leaf.h"

struct merkle {
	uint64_t count;
	/* peaks[i]: root of a full subtree of 2^i leaves, when bit i of
	 * count is set */
	uint8_t peaks[64][LEAF_HASH_BYTES];
};

void merkle_init(struct merkle *m);
/* RES_IO when libcrypto fails; the tree is then unchanged. */
HN_CHECK enum res merkle_add(
    struct merkle *m, const uint8_t leaf[LEAF_HASH_BYTES]);
/* The tree head; of no leaves it is SHA-256 of nothing. */
HN_CHECK enum res merkle_root(
    const struct merkle *m, uint8_t out[LEAF_HASH_BYTES]);

#endif
