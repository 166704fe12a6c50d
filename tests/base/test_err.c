#include "hn_test.h"

#include "base/err.h"

static void
test_first_stays(void **state)
{
	(void)state;
	struct err e = { "" };
	err_set(&e, "%s: line %d", "file", 3);
	err_set(&e, "something general");
	assert_string_equal(e.text, "file: line 3");
	err_clear(&e);
	assert_string_equal(e.text, "");
	err_set(&e, "next");
	assert_string_equal(e.text, "next");
	err_set(NULL, "nowhere");
}

static void
test_control_bytes(void **state)
{
	(void)state;
	struct err e = { "" };
	err_set(&e, "a\nb\x1b[31m\x7f\xc3\xa9");
	assert_string_equal(e.text, "a?b?[31m?\xc3\xa9");
}

static void
test_limit(void **state)
{
	(void)state;
	for (int n = ERR_MAX_TEXT - 2; n <= ERR_MAX_TEXT; n++) {
		struct err e = { "" };
		err_set(&e, "%0*d", n, 0);
		size_t len = strlen(e.text);
		bool cut = n >= ERR_MAX_TEXT;
		assert_int_equal(len, cut ? ERR_MAX_TEXT - 1 : n);
		assert_string_equal(e.text + len - 3, cut ? "..." : "000");
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_first_stays),
		cmocka_unit_test(test_control_bytes),
		cmocka_unit_test(test_limit),
	};
	return cmocka_run_group_tests_name("base/err", tests, NULL, NULL);
}
