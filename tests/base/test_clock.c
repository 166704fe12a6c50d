#include "hn_test.h"

#include <time.h>

#include "base/clock.h"

static void
test_fixed(void **state)
{
	(void)state;
	struct clock c = { 1528637909123456 };
	assert_true(clock_now_us(&c) == 1528637909123456);
	assert_true(clock_now_s(&c) == 1528637909);
	c.fixed_us = 0;
	assert_true(clock_now_us(&c) == 0);
}

static void
test_system(void **state)
{
	(void)state;
	struct clock c = CLOCK_SYSTEM;
	int64_t before = time(NULL), now = clock_now_s(&c), after = time(NULL);
	assert_true(now >= before - 1 && now <= after + 1);
	int64_t first = clock_mono_us(), second = clock_mono_us();
	assert_true(second >= first);
}

static void
test_format(void **state)
{
	(void)state;
	static const struct {
		int64_t us;
		const char *text;
	} rows[] = {
		{ 0, "1970-01-01T00:00:00.000000Z" },
		{ 1528637909123456, "2018-06-10T13:38:29.123456Z" },
		{ 951782400000001, "2000-02-29T00:00:00.000001Z" },
		{ -1, "1969-12-31T23:59:59.999999Z" },
		{ -1000000, "1969-12-31T23:59:59.000000Z" },
		{ 4102444799999999, "2099-12-31T23:59:59.999999Z" },
	};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct buf b;
		buf_init(&b, 100);
		clock_format_us(&b, rows[i].us);
		assert_str(buf_str(&b), rows[i].text);
		buf_done(&b);
	}
}

static void
parse(void **state)
{
	static const struct {
		const char *text;
		int64_t us; /* -1: RES_SYNTAX */
	} rows[] = {
		{ "1970-01-01T00:00:00.000001Z", 1 },
		{ "2018-06-10T13:38:29.123456Z", 1528637909123456 },
		{ "2018-06-10 15:38:29.1234569+02:00", 1528637909123456 },
		{ "2018-06-10T09:08:29-0430", 1528637909000000 },
		{ "2018-06-10T13:38:29", -1 },
		{ "2018-06-10T13:38:29Z ", -1 },
		{ "2018-13-10T13:38:29Z", -1 },
		{ "2018-06-00T13:38:29Z", -1 },
		{ "2018-06-10T24:38:29Z", -1 },
		{ "2018-06-10T13:38:29+02", -1 },
		{ "2018-6-10T13:38:29Z", -1 },
		{ "", -1 },
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		int64_t us = -1;
		enum res r = clock_parse_us(str_c(rows[i].text), &us);
		assert_int_equal(
		    r, rows[i].us < 0 ? RES_SYNTAX : RES_OK);
		assert_true(us == rows[i].us);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fixed),
		cmocka_unit_test(test_system),
		cmocka_unit_test(test_format),
		cmocka_unit_test(parse),
	};
	return cmocka_run_group_tests_name("base/clock", tests, NULL, NULL);
}
