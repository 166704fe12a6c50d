/* The tree of RFC 6962 §2.1 over leaf hashes that arrive one by one, and its
 * proofs (§2.1.1, §2.1.2). A tree keeps one hash per set bit of the count, so
 * any number of leaves fits.
 *
 * A proof is planned first: which spans of leaves its nodes stand for. The
 * spans are disjoint, so one pass over the leaves fills them in:
 *
 *   merkle_plan_… → merkle_pass_begin → merkle_pass_leaf (0, 1, … of the
 *   whole tree) → merkle_pass_end
 *
 * or merkle_table answers for many proofs at once. */
#ifndef ARCHIVE_MERKLE_H
#define ARCHIVE_MERKLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "archive/format/leaf.h"

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

/* --- proofs --- */

#define MERKLE_MAX_PATH 65 /* of 2^64 leaves */

struct merkle_node {
	uint64_t from, to; /* the leaves below it; unknown when only checked */
	uint8_t hash[LEAF_HASH_BYTES];
};
struct merkle_path {
	size_t count;
	struct merkle_node nodes[MERKLE_MAX_PATH]; /* as the RFC orders them */
};

/* Which nodes prove that leaf number `leaf` is in the tree of `size` leaves.
 * RES_INVALID: it is not. */
HN_CHECK enum res merkle_plan_inclusion(
    uint64_t leaf, uint64_t size, struct merkle_path *out);
/* Which nodes prove that the tree of `size` leaves begins with that of the
 * first `old`. RES_INVALID: old is 0 or above size. */
HN_CHECK enum res merkle_plan_consistency(
    uint64_t old, uint64_t size, struct merkle_path *out);

/* One pass over the leaves that fills in the hashes of a plan. */
struct merkle_pass {
	struct merkle_path *path;
	size_t order[MERKLE_MAX_PATH], at; /* nodes, sorted by leaves */
	uint64_t leaf;
	struct merkle part;
};
void merkle_pass_begin(struct merkle_pass *p, struct merkle_path *path);
HN_CHECK enum res merkle_pass_leaf(
    struct merkle_pass *p, const uint8_t leaf[LEAF_HASH_BYTES]);
/* RES_CORRUPT: leaves are missing. */
HN_CHECK enum res merkle_pass_end(const struct merkle_pass *p);

/* Does the path lead from the leaf to the root (RFC 9162 §2.1.3.2)? RES_OK,
 * RES_CORRUPT: no; RES_IO when libcrypto fails. */
HN_CHECK enum res merkle_check_inclusion(const struct merkle_path *path,
    uint64_t leaf, uint64_t size, const uint8_t leaf_hash[LEAF_HASH_BYTES],
    const uint8_t root[LEAF_HASH_BYTES]);
/* The same for two tree heads (RFC 9162 §2.1.4.2). */
HN_CHECK enum res merkle_check_consistency(const struct merkle_path *path,
    uint64_t old, uint64_t size, const uint8_t old_root[LEAF_HASH_BYTES],
    const uint8_t root[LEAF_HASH_BYTES]);

/* --- many proofs --- */

/* All leaves and the full subtrees above them: 64 bytes a leaf. */
#define MERKLE_TABLE_MAX ((uint64_t)1 << 23)

struct merkle_table {
	uint64_t count;
	size_t cap;
	uint8_t (*leaves)[LEAF_HASH_BYTES];
	/* levels[i][j]: of the leaves j·2^i … (j+1)·2^i − 1 */
	uint8_t (*levels[24])[LEAF_HASH_BYTES];
};
void merkle_table_init(struct merkle_table *t);
void merkle_table_done(struct merkle_table *t);
/* RES_LIMIT beyond MERKLE_TABLE_MAX. */
HN_CHECK enum res merkle_table_add(
    struct merkle_table *t, const uint8_t leaf[LEAF_HASH_BYTES]);
/* No more leaves: make the levels. */
HN_CHECK enum res merkle_table_build(struct merkle_table *t);
/* Fill in a plan. RES_INVALID: it reaches behind the last leaf. */
HN_CHECK enum res merkle_table_fill(
    const struct merkle_table *t, struct merkle_path *path);

#endif
