#include "hn_test.h"

#include "base/res.h"
#include "base/str.h"

static int
sign(int n)
{
	return (n > 0) - (n < 0);
}

static void
test_compare(void **state)
{
	(void)state;
	static const struct {
		const char *a, *b;
		int cmp, case_cmp;
	} rows[] = {
		{ "", "", 0, 0 },
		{ "a", "a", 0, 0 },
		{ "a", "A", 1, 0 },
		{ "a", "b", -1, -1 },
		{ "a", "ab", -1, -1 },
		{ "B", "a", -1, 1 },
		{ "\xc3\x84", "\xc3\xa4", -1, -1 }, /* ASCII folding only */
		{ "\xff", "a", 1, 1 },
		{ "[", "{", -1, -1 },
		{ "", "a", -1, -1 },
	};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct str a = str_c(rows[i].a), b = str_c(rows[i].b);
		assert_int_equal(sign(str_cmp(a, b)), rows[i].cmp);
		assert_int_equal(sign(str_cmp(b, a)), -rows[i].cmp);
		assert_int_equal(sign(str_case_cmp(a, b)), rows[i].case_cmp);
		assert_int_equal(sign(str_case_cmp(b, a)), -rows[i].case_cmp);
		assert_int_equal(str_eq(a, b), rows[i].cmp == 0);
		assert_int_equal(str_case_eq(a, b), rows[i].case_cmp == 0);
	}
	assert_true(str_eq(STR_EMPTY, STR("")));
	assert_true(str_case_eq(STR_EMPTY, STR("")));
	assert_int_equal(str_cmp(STR_EMPTY, STR("")), 0);
	assert_null(str_c(NULL).ptr);
	assert_false(str_eq(str_of("a\0b", 3), str_of("a\0c", 3)));
}

static void
test_ends(void **state)
{
	(void)state;
	assert_true(str_starts(STR("abc"), STR("ab")));
	assert_true(str_starts(STR("abc"), STR("")));
	assert_true(str_starts(STR_EMPTY, STR("")));
	assert_false(str_starts(STR("abc"), STR("aB")));
	assert_false(str_starts(STR("a"), STR("ab")));
	assert_true(str_case_starts(STR("abc"), STR("aB")));
	assert_false(str_case_starts(STR("a"), STR("ab")));
	assert_true(str_ends(STR("abc"), STR("bc")));
	assert_true(str_ends(STR("abc"), STR("")));
	assert_false(str_ends(STR("abc"), STR("Bc")));
	assert_false(str_ends(STR("c"), STR("bc")));
	assert_true(str_case_ends(STR("abc"), STR("Bc")));
	assert_false(str_case_ends(STR("c"), STR("bc")));
}

static void
test_find(void **state)
{
	(void)state;
	struct str s = STR("abcabc");
	assert_int_equal(str_chr(s, 'b'), 1);
	assert_int_equal(str_rchr(s, 'b'), 4);
	assert_int_equal(str_chr(s, 'x'), SIZE_MAX);
	assert_int_equal(str_rchr(s, 'x'), SIZE_MAX);
	assert_int_equal(str_chr(STR_EMPTY, 'x'), SIZE_MAX);
	assert_int_equal(str_rchr(STR_EMPTY, 'x'), SIZE_MAX);
	assert_int_equal(str_chr(str_of("a\0b", 3), '\0'), 1);
	assert_int_equal(str_find(s, STR("ca")), 2);
	assert_int_equal(str_find(s, STR("")), 0);
	assert_int_equal(str_find(s, STR("cab c")), SIZE_MAX);
	assert_int_equal(str_find(STR_EMPTY, STR("a")), SIZE_MAX);
	assert_int_equal(str_find(s, STR("abcabca")), SIZE_MAX);
	assert_int_equal(str_case_find(s, STR("CA")), 2);
	assert_int_equal(str_case_find(s, STR("ABCABC")), 0);
	assert_int_equal(str_case_find(s, STR("x")), SIZE_MAX);
	assert_int_equal(str_case_find(STR_EMPTY, STR("x")), SIZE_MAX);
}

static void
test_parts(void **state)
{
	(void)state;
	struct str s = STR("abcdef");
	assert_str(str_sub(s, 1, 2), "bc");
	assert_str(str_sub(s, 4, 9), "ef");
	assert_str(str_sub(s, 6, 1), "");
	assert_str(str_sub(s, 99, SIZE_MAX), "");
	assert_str(str_sub(s, 1, SIZE_MAX), "bcdef");
	assert_str(str_skip(s, 2), "cdef");
	assert_str(str_skip(s, 99), "");
	assert_null(str_skip(STR_EMPTY, 1).ptr);
	assert_str(str_trim(STR(" \t\r\n a b \r\n")), "a b");
	assert_str(str_trim(STR(" \t")), "");
	assert_str(str_trim(STR("\x0b x")), "\x0b x");
}

static void
test_split(void **state)
{
	(void)state;
	static const struct {
		const char *in;
		const char *parts[4];
	} rows[] = {
		{ "a,,b", { "a", "", "b", NULL } },
		{ "", { "", NULL } },
		{ ",", { "", "", NULL } },
		{ "a", { "a", NULL } },
	};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct str rest = str_c(rows[i].in), part;
		size_t n = 0;
		while (str_split(&rest, ',', &part)) {
			assert_non_null(rows[i].parts[n]);
			assert_str(part, rows[i].parts[n]);
			n++;
		}
		assert_null(rows[i].parts[n]);
	}
}

static void
test_to_u64(void **state)
{
	(void)state;
	static const struct {
		const char *in;
		uint64_t max;
		enum res res;
		uint64_t out;
	} rows[] = {
		{ "0", 10, RES_OK, 0 },
		{ "9", 10, RES_OK, 9 },
		{ "10", 10, RES_OK, 10 },
		{ "11", 10, RES_LIMIT, 77 },
		{ "0010", 10, RES_OK, 10 },
		{ "18446744073709551615", UINT64_MAX, RES_OK, UINT64_MAX },
		{ "18446744073709551616", UINT64_MAX, RES_LIMIT, 77 },
		{ "99999999999999999999999", UINT64_MAX, RES_LIMIT, 77 },
		{ "99999999999999999999999x", UINT64_MAX, RES_SYNTAX, 77 },
		{ "", 10, RES_SYNTAX, 77 },
		{ "-1", 10, RES_SYNTAX, 77 },
		{ "+1", 10, RES_SYNTAX, 77 },
		{ " 1", 10, RES_SYNTAX, 77 },
		{ "1 ", 10, RES_SYNTAX, 77 },
		{ "0x1", 10, RES_SYNTAX, 77 },
	};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		uint64_t n = 77;
		assert_int_equal(str_to_u64(str_c(rows[i].in), rows[i].max, &n),
		    rows[i].res);
		assert_int_equal(n, rows[i].out);
	}
}

static void
test_bytes(void **state)
{
	(void)state;
	for (int c = 0; c < 256; c++) {
		bool upper = c >= 'A' && c <= 'Z', lower = c >= 'a' && c <= 'z';
		assert_int_equal(
		    ascii_lower((char)c), (char)(upper ? c - 'A' + 'a' : c));
		assert_int_equal(ascii_is_alpha((char)c), upper || lower);
		assert_int_equal(ascii_is_digit((char)c), c >= '0' && c <= '9');
		assert_int_equal(ascii_is_wsp((char)c), c == 32 || c == 9);
	}
}

static void
test_res_text(void **state)
{
	(void)state;
	for (enum res r = RES_OK; r <= RES_TIMEOUT; r++)
		for (enum res s = RES_OK; s < r; s++)
			assert_string_not_equal(res_text(r), res_text(s));
	assert_string_equal(res_text(RES_OK), "ok");
}

static void
test_take(void **state)
{
	(void)state;
	struct str s = STR("2026-1x");
	int n = -1;
	assert_false(str_take_digits(&s, 5, &n));
	assert_false(str_take_char(&s, '-'));
	assert_str(s, "2026-1x");
	assert_true(str_take_digits(&s, 4, &n));
	assert_int_equal(n, 2026);
	assert_true(str_take_char(&s, '-'));
	assert_false(str_take_digits(&s, 2, &n));
	assert_str(s, "1x");
	s = STR("");
	assert_false(str_take_digits(&s, 1, &n));
	assert_false(str_take_char(&s, 'x'));
	assert_int_equal(n, 2026);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_compare),
		cmocka_unit_test(test_ends),
		cmocka_unit_test(test_find),
		cmocka_unit_test(test_parts),
		cmocka_unit_test(test_split),
		cmocka_unit_test(test_to_u64),
		cmocka_unit_test(test_take),
		cmocka_unit_test(test_bytes),
		cmocka_unit_test(test_res_text),
	};
	return cmocka_run_group_tests_name("base/str", tests, NULL, NULL);
}
