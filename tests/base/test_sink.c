#include "arena_test.h"

#include "base/sink.h"

static void
test_buf(void **state)
{
	(void)state;
	struct buf b;
	buf_init(&b, 5);
	struct sink *s = sink_buf(arena, &b);
	sink_push(s, "ab", 2);
	sink_push(s, "", 0);
	sink_push(s, "cde", 3);
	assert_ok(sink_finish(s));
	assert_str(buf_str(&b), "abcde");
	sink_push(s, "f", 1);
	assert_int_equal(sink_finish(s), RES_LIMIT);
	assert_str(buf_str(&b), "abcde");
	buf_done(&b);
}

static void
test_tee(void **state)
{
	(void)state;
	struct buf a, b, c;
	buf_init(&a, 100);
	buf_init(&b, 2);
	buf_init(&c, 100);
	struct sink *sinks[3] = { sink_buf(arena, &a), sink_buf(arena, &b),
		sink_buf(arena, &c) };
	struct sink *tee = sink_tee(arena, sinks, 3);
	sinks[2] = NULL; /* the array was copied */
	sink_push(tee, "xyz", 3);
	sink_push(tee, "w", 1);
	assert_int_equal(sink_finish(tee), RES_LIMIT);
	assert_str(buf_str(&a), "xyzw");
	assert_str(buf_str(&c), "xyzw");
	buf_done(&a);
	buf_done(&b);
	buf_done(&c);
	struct sink *one = sink_null();
	assert_ptr_equal(sink_tee(arena, &one, 1), one);
	tee = sink_tee(arena, NULL, 0);
	sink_push(tee, "x", 1);
	assert_ok(sink_finish(tee));
}

static void
test_limit(void **state)
{
	(void)state;
	for (size_t n = 9; n <= 11; n++) {
		struct buf b;
		uint64_t count = 99;
		buf_init(&b, 100);
		struct sink *s =
		    sink_limit(arena, 10, &count, sink_buf(arena, &b));
		assert_int_equal(count, 0);
		for (size_t i = 0; i < n; i++)
			sink_push(s, "x", 1);
		assert_int_equal(count, n);
		assert_int_equal(sink_finish(s), n <= 10 ? RES_OK : RES_LIMIT);
		assert_int_equal(b.len, n <= 10 ? n : 10);
		buf_done(&b);
	}
	uint64_t count;
	struct sink *s = sink_limit(arena, 3, &count, NULL);
	sink_push(s, "abc", 3);
	assert_ok(sink_finish(s));
	struct buf b;
	buf_init(&b, 1);
	s = sink_limit(arena, 3, &count, sink_buf(arena, &b));
	sink_push(s, "ab", 2);
	assert_int_equal(sink_finish(s), RES_LIMIT); /* the next one's */
	buf_done(&b);
}

static void
test_null(void **state)
{
	(void)state;
	sink_push(sink_null(), "abc", 3);
	assert_ok(sink_finish(sink_null()));
}

static void
test_no_memory(void **state)
{
	(void)state;
	struct arena *a = arena_new(16);
	struct buf b;
	uint64_t count;
	struct sink *two[2] = { sink_null(), sink_null() };
	buf_init(&b, 1);
	assert_non_null(arena_alloc(a, 16));
	assert_null(sink_buf(a, &b));
	assert_null(sink_tee(a, two, 2));
	assert_null(sink_limit(a, 1, &count, NULL));
	arena_free(&a);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_buf),
		cmocka_unit_test(test_tee),
		cmocka_unit_test(test_limit),
		cmocka_unit_test(test_null),
		cmocka_unit_test(test_no_memory),
	};
	return cmocka_run_group_tests_name("base/sink", tests, setup, teardown);
}
