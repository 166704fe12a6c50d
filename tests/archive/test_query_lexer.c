#include "hn_test.h"

#include "archive/search/query_lexer.h"

static struct lexer
at(const char *text, struct err *err)
{
	err_clear(err);
	return (struct lexer){ .text = str_c(text), .err = err };
}

struct value_row {
	const char *text, *value, *rest;
	bool quoted, star;
	enum res res;
};

static const struct value_row values[] = {
	{ "", "", "", false, false, RES_OK },
	{ "word", "word", "", false, false, RES_OK },
	{ "word next", "word", " next", false, false, RES_OK },
	{ "word\tnext", "word", "\tnext", false, false, RES_OK },
	{ "word)x", "word", ")x", false, false, RES_OK },
	{ "word(x", "word", "(x", false, false, RES_OK },
	{ "word\"x\"", "word", "\"x\"", false, false, RES_OK },
	{ "pre* x", "pre", " x", false, true, RES_OK },
	{ "*", "", "", false, true, RES_OK },
	{ "a*b", "a*b", "", false, false, RES_OK },
	{ "**", "*", "", false, true, RES_OK },
	{ "\"two words\" x", "two words", " x", true, false, RES_OK },
	{ "\"(a) b\"c", "(a) b", "c", true, false, RES_OK },
	{ "\"two wo\"*x", "two wo", "x", true, true, RES_OK },
	{ "\"\"", "", "", true, false, RES_OK },
	{ "\"never closed", "", "never closed", true, false, RES_SYNTAX },
	{ "\"", "", "", true, false, RES_SYNTAX },
	{ "gr\xc3\xbc\xc3\x9f" "e*", "gr\xc3\xbc\xc3\x9f" "e", "", false, true,
	    RES_OK },
};

static void
test_value(void **state)
{
	(void)state;
	struct err err;
	for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
		const struct value_row *r = &values[i];
		struct lexer l = at(r->text, &err);
		struct str value = lexer_value(&l);
		if (l.res != r->res || l.quoted != r->quoted ||
		    l.star != r->star || !str_eq(value, str_c(r->value)) ||
		    !str_eq(lexer_rest(&l), str_c(r->rest)))
			fail_msg("%s: \"%.*s\", then \"%.*s\"", r->text,
			    STR_ARG(value), STR_ARG(lexer_rest(&l)));
		assert_int_equal(l.token, 0);
	}
}

struct keyword_row {
	const char *text, *rest;
	bool taken;
};

static void
test_keyword(void **state)
{
	static const struct keyword_row rows[] = {
		{ "OR x", "x", true },
		{ "OR \t x", "x", true },
		{ "OR", "", true },
		{ "OR(x)", "(x)", true },
		{ "OR)", ")", true },
		{ "ORx", "ORx", false },
		{ "OR\"x\"", "OR\"x\"", false },
		{ "or x", "or x", false },
		{ "O", "O", false },
		{ "", "", false },
	};
	(void)state;
	struct err err;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct lexer l = at(rows[i].text, &err);
		bool taken = lexer_keyword(&l, "OR");
		if (taken != rows[i].taken ||
		    !str_eq(lexer_rest(&l), str_c(rows[i].rest)))
			fail_msg("%s", rows[i].text);
	}
}

static void
test_field_name(void **state)
{
	static const struct {
		const char *text, *name; /* NULL: none */
	} rows[] = {
		{ "from:x", "from" },
		{ "dkim.d:", "dkim.d" },
		{ "a:b:c", "a" },
		{ ":x", NULL },
		{ "from", NULL },
		{ "from x:", NULL },
		{ "x1:y", NULL },
		{ "\xc3\xbc:y", NULL },
		{ "", NULL },
	};
	(void)state;
	struct err err;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct lexer l = at(rows[i].text, &err);
		struct str name;
		bool found = lexer_field_name(&l, &name);
		if (found != (rows[i].name != NULL) ||
		    (found && !str_eq(name, str_c(rows[i].name))))
			fail_msg("%s", rows[i].text);
		assert_int_equal(l.at, 0);
	}
}

static void
test_take(void **state)
{
	(void)state;
	struct err err;
	struct lexer l = at(" \r\n\t(", &err);
	assert_false(lexer_take(&l, '('));
	lexer_skip_blanks(&l);
	assert_false(lexer_take(&l, ')'));
	assert_true(lexer_take(&l, '('));
	assert_false(lexer_take(&l, '('));
	lexer_skip_blanks(&l);
	assert_int_equal(lexer_rest(&l).len, 0);
}

/* The first error is the one that is told. */
static void
test_fail(void **state)
{
	(void)state;
	struct err err;
	struct lexer l = at("x", &err);
	lexer_fail(&l, 6, RES_SYNTAX, "nothing stands behind ", STR("from:"));
	lexer_fail(&l, 0, RES_LIMIT, "too much", STR_EMPTY);
	assert_int_equal(l.res, RES_SYNTAX);
	assert_string_equal(err.text, "at 7: nothing stands behind from:");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_value),
		cmocka_unit_test(test_keyword),
		cmocka_unit_test(test_field_name),
		cmocka_unit_test(test_take),
		cmocka_unit_test(test_fail),
	};
	return cmocka_run_group_tests_name(
	    "archive/query_lexer", tests, NULL, NULL);
}
