#include "archive/format/merkle.h"

#include <string.h>

#include "base/codec.h"
#include "hn_test.h"
#include "keys/digest.h"

#define MOST 70

static uint8_t leaves[MOST][LEAF_HASH_BYTES];

static int
setup(void **state)
{
	for (size_t i = 0; i < MOST; i++) {
		uint8_t text[2] = { 0, (uint8_t)i };
		assert_ok(digest_sha256(text, sizeof text, leaves[i]));
	}
	return 0;
}

/* RFC 6962 §2.1, word by word. */
static void
root_of(size_t from, size_t to, uint8_t out[LEAF_HASH_BYTES])
{
	uint8_t both[1 + 2 * LEAF_HASH_BYTES] = { 1 };
	size_t k = 1;
	if (from == to) {
		assert_ok(digest_sha256("", 0, out));
		return;
	}
	if (to - from == 1) {
		memcpy(out, leaves[from], LEAF_HASH_BYTES);
		return;
	}
	while (k * 2 < to - from)
		k *= 2;
	root_of(from, from + k, both + 1);
	root_of(from + k, to, both + 1 + LEAF_HASH_BYTES);
	assert_ok(digest_sha256(both, sizeof both, out));
}

static void
test_root(void **state)
{
	struct merkle m;
	merkle_init(&m);
	for (size_t n = 0; n <= MOST; n++) {
		uint8_t want[LEAF_HASH_BYTES], got[LEAF_HASH_BYTES];
		root_of(0, n, want);
		assert_ok(merkle_root(&m, got));
		assert_memory_equal(want, got, sizeof want);
		if (n < MOST)
			assert_ok(merkle_add(&m, leaves[n]));
	}
}

/* Both ways of filling in a plan give the hashes of its spans. */
static void
fill(struct merkle_path *path, size_t size)
{
	struct merkle_path other = *path;
	struct merkle_table t;
	struct merkle_pass pass;
	merkle_pass_begin(&pass, path);
	merkle_table_init(&t);
	for (size_t i = 0; i < size; i++) {
		assert_ok(merkle_pass_leaf(&pass, leaves[i]));
		assert_ok(merkle_table_add(&t, leaves[i]));
	}
	assert_ok(merkle_pass_end(&pass));
	assert_ok(merkle_table_build(&t));
	assert_ok(merkle_table_fill(&t, &other));
	for (size_t i = 0; i < path->count; i++) {
		uint8_t want[LEAF_HASH_BYTES];
		const struct merkle_node *n = &path->nodes[i];
		root_of((size_t)n->from, (size_t)n->to, want);
		assert_memory_equal(want, n->hash, sizeof want);
		assert_memory_equal(want, other.nodes[i].hash, sizeof want);
	}
	merkle_table_done(&t);
}

static void
test_inclusion(void **state)
{
	for (size_t size = 1; size <= MOST; size++)
		for (size_t leaf = 0; leaf < size; leaf++) {
			struct merkle_path p;
			uint8_t root[LEAF_HASH_BYTES];
			root_of(0, size, root);
			assert_ok(merkle_plan_inclusion(leaf, size, &p));
			fill(&p, size);
			assert_ok(merkle_check_inclusion(
			    &p, leaf, size, leaves[leaf], root));
			/* of another leaf, at another place, of another tree */
			assert_int_equal(merkle_check_inclusion(&p, leaf, size,
			    leaves[(leaf + 1) % MOST], root), RES_CORRUPT);
			assert_int_equal(merkle_check_inclusion(&p, leaf,
			    size, leaves[leaf], leaves[0]),
			    size == 1 && leaf == 0 ? RES_OK : RES_CORRUPT);
			if (size > 1)
				assert_int_equal(merkle_check_inclusion(&p,
				    (leaf + 1) % size, size, leaves[leaf],
				    root), RES_CORRUPT);
			if (p.count > 0) {
				p.nodes[p.count - 1].hash[7] ^= 1;
				assert_int_equal(merkle_check_inclusion(&p,
				    leaf, size, leaves[leaf], root),
				    RES_CORRUPT);
				p.nodes[p.count - 1].hash[7] ^= 1;
				p.count--;
				assert_int_equal(merkle_check_inclusion(&p,
				    leaf, size, leaves[leaf], root),
				    RES_CORRUPT);
			}
		}
}

static void
test_consistency(void **state)
{
	for (size_t size = 1; size <= MOST; size++)
		for (size_t old = 1; old <= size; old++) {
			struct merkle_path p;
			uint8_t was[LEAF_HASH_BYTES], is[LEAF_HASH_BYTES];
			root_of(0, old, was);
			root_of(0, size, is);
			assert_ok(merkle_plan_consistency(old, size, &p));
			fill(&p, size);
			assert_ok(merkle_check_consistency(
			    &p, old, size, was, is));
			was[0] ^= 1;
			assert_int_equal(merkle_check_consistency(
			    &p, old, size, was, is), RES_CORRUPT);
			was[0] ^= 1;
			is[31] ^= 0x80;
			assert_int_equal(merkle_check_consistency(
			    &p, old, size, was, is), RES_CORRUPT);
			is[31] ^= 0x80;
			if (old < size) {
				p.count--;
				assert_int_equal(merkle_check_consistency(
				    &p, old, size, was, is), RES_CORRUPT);
			}
		}
}

static void
test_refusals(void **state)
{
	struct merkle_path p;
	struct merkle_pass pass;
	struct merkle_table t;
	uint8_t root[LEAF_HASH_BYTES] = { 0 };
	assert_int_equal(merkle_plan_inclusion(0, 0, &p), RES_INVALID);
	assert_int_equal(merkle_plan_inclusion(5, 5, &p), RES_INVALID);
	assert_int_equal(merkle_plan_consistency(0, 5, &p), RES_INVALID);
	assert_int_equal(merkle_plan_consistency(6, 5, &p), RES_INVALID);
	/* the largest tree: the plan has its place */
	assert_ok(merkle_plan_inclusion(0, UINT64_MAX, &p));
	assert_int_equal(p.count, 64);
	assert_ok(merkle_plan_consistency(UINT64_MAX - 1, UINT64_MAX, &p));
	assert_true(p.count <= MERKLE_MAX_PATH);
	/* a pass that ended too early */
	assert_ok(merkle_plan_inclusion(2, 5, &p));
	merkle_pass_begin(&pass, &p);
	assert_ok(merkle_pass_leaf(&pass, leaves[0]));
	assert_int_equal(merkle_pass_end(&pass), RES_CORRUPT);
	merkle_table_init(&t);
	assert_ok(merkle_table_add(&t, leaves[0]));
	assert_ok(merkle_table_build(&t));
	assert_int_equal(merkle_table_fill(&t, &p), RES_INVALID);
	merkle_table_done(&t);
	/* more nodes than a tree of this size can have */
	assert_int_equal(
	    merkle_check_inclusion(&p, 0, 1, leaves[0], root), RES_CORRUPT);
	assert_int_equal(
	    merkle_check_inclusion(&p, 7, 7, leaves[0], root), RES_CORRUPT);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_root),
		cmocka_unit_test(test_inclusion),
		cmocka_unit_test(test_consistency),
		cmocka_unit_test(test_refusals),
	};
	return cmocka_run_group_tests(tests, setup, NULL);
}
