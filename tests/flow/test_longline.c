/* Lines at and beyond the limit, in any split. */
#include "flow/longline.h"

#include <stdio.h>

#include "hn_test.h"

static bool
seen(const char *text, size_t len, size_t step)
{
	bool result = false;
	struct arena *a = arena_new(0);
	struct sink *s = longline_sink(a, &result);
	for (size_t at = 0; at < len; at += step)
		sink_push(s, text + at, len - at < step ? len - at : step);
	assert_ok(sink_finish(s));
	arena_free(&a);
	return result;
}

static void
limits(void **state)
{
	static const struct {
		size_t octets;
		const char *before, *after;
		bool want;
	} rows[] = {
		{ 998, "", "\r\n", false },
		{ 999, "", "\r\n", true },
		{ 998, "short\r\n", "\r\nshort\r\n", false },
		{ 999, "short\r\n", "\r\nshort\r\n", true },
		{ 998, "", "", false },
		{ 999, "", "", true },
		{ 0, "", "", false },
	};
	char text[2048];
	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		int n = snprintf(text, sizeof text, "%s%*s%s", rows[i].before,
		    (int)rows[i].octets, "", rows[i].after);
		for (size_t step = 1; step <= (size_t)n + 1;
		     step += step < 4 ? 1 : 97)
			if (seen(text, (size_t)n, step) != rows[i].want)
				fail_msg("row %zu, step %zu", i, step);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(limits) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
