#include "hn_test.h"

#include "base/arena.h"

static void
test_alloc(void **state)
{
	(void)state;
	struct arena *a = arena_new(0);
	static const size_t sizes[] = { 0, 1, 15, 16, 17, 100, 2048, 4096, 5000,
		65536, 100000, 3 };
	unsigned char *p[12];
	for (size_t i = 0; i < 12; i++) {
		p[i] = arena_alloc(a, sizes[i]);
		assert_non_null(p[i]);
		assert_int_equal((uintptr_t)p[i] % 16, 0);
		for (size_t k = 0; k < sizes[i]; k++)
			assert_int_equal(p[i][k], 0);
		memset(p[i], (int)i + 1, sizes[i]);
	}
	for (size_t i = 0; i < 12; i++)
		for (size_t k = 0; k < sizes[i]; k++)
			assert_int_equal(p[i][k], i + 1);
	assert_true(arena_used(a) >= 65536 + 100000);
	arena_free(&a);
	assert_null(a);
	arena_free(&a);
}

/* Memory that another arena of the thread had comes zeroed too. */
static void
test_again(void **state)
{
	(void)state;
	for (int round = 0; round < 3; round++) {
		struct arena *a = arena_new(0), *b = arena_new(0);
		for (int i = 0; i < 200; i++) {
			unsigned char *p = arena_alloc(a, 1000);
			unsigned char *q = arena_alloc(b, 1000);
			assert_non_null(p);
			assert_non_null(q);
			for (int k = 0; k < 1000; k++)
				assert_true(p[k] == 0 && q[k] == 0);
			memset(p, 0xa5, 1000);
			memset(q, 0x5a, 1000);
			assert_int_equal(p[999], 0xa5);
		}
		arena_free(&a);
		arena_free(&b);
	}
}

static void
test_limit(void **state)
{
	(void)state;
	for (size_t size = 159; size <= 161; size++) {
		struct arena *a = arena_new(160);
		void *p = arena_alloc(a, size);
		assert_int_equal(p != NULL, size <= 160);
		if (p != NULL) {
			assert_null(arena_alloc(a, 1));
			assert_int_equal(arena_used(a), 160);
		} else {
			assert_non_null(arena_alloc(a, 160));
		}
		arena_free(&a);
	}
	struct arena *a = arena_new(0);
	assert_null(arena_alloc(a, SIZE_MAX));
	assert_null(arena_alloc(a, ARENA_DEFAULT_MAX + 1));
	assert_null(arena_array(a, SIZE_MAX / 2, 3));
	assert_null(arena_array(a, SIZE_MAX, SIZE_MAX));
	assert_non_null(arena_array(a, 10, 10));
	arena_free(&a);
}

static void
test_strings(void **state)
{
	(void)state;
	struct arena *a = arena_new(0);
	struct str s = arena_dup(a, str_of("a\0B", 3));
	assert_int_equal(s.len, 3);
	assert_memory_equal(s.ptr, "a\0B", 4);
	assert_non_null(arena_dup(a, STR_EMPTY).ptr);
	assert_str(arena_lower(a, STR("AbZ[\xc3\x84")), "abz[\xc3\x84");
	assert_string_equal(arena_cstr(a, STR("x")), "x");
	assert_str(arena_printf(a, "%s-%d", "x", 42), "x-42");
	assert_str(arena_printf(a, "%s", ""), "");
	arena_free(&a);
	a = arena_new(16);
	assert_null(arena_printf(a, "%20d", 1).ptr);
	assert_null(arena_dup(a, STR("1234567890123456")).ptr);
	assert_non_null(arena_dup(a, STR("123456789012345")).ptr);
	arena_free(&a);
}

static unsigned order[3], calls;

static void
note(void *arg)
{
	order[calls++] = *(unsigned *)arg;
}

static void
test_cleanups(void **state)
{
	(void)state;
	unsigned ids[3] = { 1, 2, 3 };
	calls = 0;
	struct arena *a = arena_new(0);
	for (size_t i = 0; i < 3; i++)
		assert_ok(arena_on_free(a, note, &ids[i]));
	assert_int_equal(calls, 0);
	arena_free(&a);
	assert_int_equal(calls, 3);
	assert_int_equal(order[0], 3);
	assert_int_equal(order[1], 2);
	assert_int_equal(order[2], 1);

	a = arena_new(16);
	assert_non_null(arena_alloc(a, 16));
	assert_int_equal(arena_on_free(a, note, &ids[0]), RES_NOMEM);
	arena_free(&a);
	assert_int_equal(calls, 3);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_alloc),
		cmocka_unit_test(test_again),
		cmocka_unit_test(test_limit),
		cmocka_unit_test(test_strings),
		cmocka_unit_test(test_cleanups),
	};
	return cmocka_run_group_tests_name("base/arena", tests, NULL, NULL);
}
