#include "hn_test.h"

#include "base/fields.h"

static void
test_round_trip(void **state)
{
	(void)state;
	char all[256];
	struct buf b;
	struct fields f;
	struct arena *a = arena_new(0);
	buf_init(&b, 10000);
	for (int i = 0; i < 256; i++)
		all[i] = (char)i;
	fields_text(&b, "all", str_of(all, sizeof all));
	fields_text(&b, "empty", STR_EMPTY);
	fields_number(&b, "big", UINT64_MAX);
	fields_text(&b, "id", STR("1"));
	fields_text(&b, "id", STR("2"));
	fields_end(&b);
	fields_number(&b, "result", 0);
	fields_end(&b);
	struct str rest = buf_str(&b);
	assert_ok(fields_read(&rest, a, &f));
	assert_int_equal(f.count, 5);
	assert_true(str_eq(fields_get(&f, "all"), str_of(all, sizeof all)));
	assert_str(fields_get(&f, "empty"), "");
	assert_true(fields_get_number(&f, "big") == UINT64_MAX);
	assert_str(f.items[4].text, "2");
	assert_str(fields_get(&f, "id"), "1");
	assert_int_equal(fields_get_number(&f, "id"), 0); /* a text */
	assert_str(fields_get(&f, "none"), "");
	assert_ok(fields_read(&rest, a, &f));
	assert_int_equal(f.count, 1);
	assert_int_equal(fields_read(&rest, a, &f), RES_NOTFOUND);
	arena_free(&a);
	buf_done(&b);
}

static void
test_wrong(void **state)
{
	(void)state;
	static const char *const wrong[] = { "\n\n=x\n\n", "a", "a=b", "a=b\n",
		"=b\n\n", "A=b\n\n", "a b=c\n\n", "a#\n\n", "a#1x\n\n",
		"a#18446744073709551616\n\n", "a#-1\n\n", "a=%\n\n", "a=%4\n\n",
		"a=%4g\n\n", "a=%4a\n\n", "ab\n\n" };
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		struct str rest = str_c(wrong[i]);
		struct fields f = { .count = 7 };
		struct arena *a = arena_new(0);
		enum res r = fields_read(&rest, a, &f);
		while (r == RES_OK && f.count == 0) /* empty records are fine */
			r = fields_read(&rest, a, &f);
		if (r != RES_SYNTAX)
			fail_msg("\"%s\": %s", wrong[i], res_text(r));
		arena_free(&a);
	}
}

static void
test_bounds(void **state)
{
	(void)state;
	for (int more = -1; more <= 1; more++) {
		struct buf b;
		struct fields f;
		struct arena *a = arena_new(0);
		buf_init(&b, 1 << 20);
		for (size_t i = 0; i + 1 < FIELDS_MAX + (size_t)more; i++)
			buf_add_c(&b, "a=\n");
		fields_end(&b);
		struct str rest = buf_str(&b);
		assert_int_equal(
		    fields_read(&rest, a, &f), more > 0 ? RES_LIMIT : RES_OK);
		arena_free(&a);
		buf_done(&b);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_wrong),
		cmocka_unit_test(test_bounds),
	};
	return cmocka_run_group_tests_name("base/fields", tests, NULL, NULL);
}
