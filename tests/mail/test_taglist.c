#include "arena_test.h"

#include <stdio.h>

#include "base/buf.h"
#include "mail/taglist.h"

static void
test_accepted(void **state)
{
	(void)state;
	/* `out`: name=value pairs joined by "|". */
	static const struct {
		const char *in, *out;
	} rows[] = {
		{ "v=1", "v=1" },
		{ "v=1;", "v=1" },
		{ "v=1; ", "v=1" },
		{ "v=1;\r\n ", "v=1" },
		{ " v = 1 ; a = rsa-sha256 ", "v=1|a=rsa-sha256" },
		{ "\r\n\tv\r\n =\r\n 1\r\n ;a=b", "v=1|a=b" },
		{ "t=", "t=" },
		{ "t=;x=1", "t=|x=1" },
		{ "t= \t;", "t=" },
		{ "p=abc==; b==", "p=abc==|b==" },
		{ "a=1;A=2", "a=1|A=2" },
		{ "h=From : To :\r\n  Subject", "h=From : To :\r\n  Subject" },
		{ "a_1Z=x", "a_1Z=x" },
		{ "n=(x) \"y\" z!", "n=(x) \"y\" z!" },
		{ "b=a\r\n \r\n b", "b=a\r\n \r\n b" },
	};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct taglist t;
		struct buf got;
		buf_init(&got, 1000);
		assert_ok(taglist_parse(str_c(rows[i].in), false, &t));
		for (size_t k = 0; k < t.count; k++) {
			assert_non_null(t.tags[k].value.ptr);
			if (k != 0)
				buf_add_char(&got, '|');
			buf_add_str(&got, t.tags[k].name);
			buf_add_char(&got, '=');
			buf_add_str(&got, t.tags[k].value);
		}
		assert_str(buf_str(&got), rows[i].out);
		buf_done(&got);
	}
}

static void
test_refused(void **state)
{
	(void)state;
	static const char *const rows[] = {
		"",
		" ",
		";",
		";v=1",
		"v=1;;",
		"v=1;;a=2",
		"v=1; ;a=2",
		"v",
		"v=1;a",
		"=1",
		"1v=1",
		"_v=1",
		"v-x=1",
		"v=1;v=1", /* TAG-02 */
		"v=1;a=2;v=",
		"v=1\r\n",
		"v=1\r\na=2",
		"v=\x01",
		"v=a\nb",
		"v=a\n b",
		"v=a\rb",
		"v=\x7f",
		"v=\xc3\xa9", /* TAG-08 */
		"(c)v=1",     /* TAG-09 */
		"\xc3\xa9=1",
		"v==;=",
	};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct taglist t;
		assert_int_equal(
		    taglist_parse(str_c(rows[i]), false, &t), RES_SYNTAX);
	}
	struct taglist t;
	assert_int_equal(
	    taglist_parse(str_of("v=a\0b", 5), false, &t), RES_SYNTAX);
	assert_int_equal(taglist_parse(STR_EMPTY, false, &t), RES_SYNTAX);
}

static void
test_tags_before_the_error(void **state)
{
	(void)state;
	struct taglist t;
	assert_int_equal(
	    taglist_parse(STR("v=1; d=x; b"), false, &t), RES_SYNTAX);
	assert_int_equal(t.count, 2);
	assert_str(taglist_get(&t, "d"), "x");
}

static void
test_utf8(void **state)
{
	(void)state;
	struct taglist t;
	assert_ok(taglist_parse(STR("d=b\xc3\xbc"
				    "cher.example"),
	    true, &t));
	assert_int_equal(taglist_parse(STR("d=b\xfc"), true, &t), RES_SYNTAX);
	assert_int_equal(
	    taglist_parse(STR("d\xc3\xbc=b"), true, &t), RES_SYNTAX);
}

static void
test_bounds_and_get(void **state)
{
	(void)state;
	struct str text = STR(" v=1; b \r\n = x\r\n y ; bh=z;t=");
	struct taglist t;
	assert_ok(taglist_parse(text, false, &t));
	const struct tag *b = taglist_find(&t, "b");
	assert_str(str_sub(text, b->from, b->to - b->from), " x\r\n y ");
	assert_str(b->value, "x\r\n y");
	assert_str(taglist_get(&t, "bh"), "z");
	assert_non_null(taglist_get(&t, "t").ptr);
	assert_int_equal(taglist_get(&t, "t").len, 0);
	const struct tag *last = taglist_find(&t, "t");
	assert_int_equal(last->from, text.len);
	assert_int_equal(last->to, text.len);
	assert_null(taglist_get(&t, "B").ptr);
	assert_null(taglist_find(&t, "x"));
	assert_str(taglist_strip(arena, b->value), "xy");
}

static void
test_limit(void **state)
{
	(void)state;
	for (size_t n = TAGLIST_MAX - 1; n <= TAGLIST_MAX + 1; n++) {
		struct buf b;
		struct taglist t;
		buf_init(&b, 4096);
		for (size_t i = 0; i < n; i++)
			buf_addf(&b, "x%zu=y;", i);
		assert_int_equal(taglist_parse(buf_str(&b), false, &t),
		    n > TAGLIST_MAX ? RES_LIMIT : RES_OK);
		assert_int_equal(t.count, n > TAGLIST_MAX ? TAGLIST_MAX : n);
		buf_done(&b);
	}
}

static void
test_unquote(void **state)
{
	(void)state;
	static const struct {
		const char *in, *out; /* NULL: refused */
	} rows[] = {
		{ "", "" },
		{ "joe", "joe" },
		{ "joe=20x=3D=3B", "joe x=;" },
		{ "j o\r\n\te", "joe" },
		{ "=4\r\n 1", "A" },
		{ "=41=C3=A9\xc3\xa9", "A\xc3\xa9\xc3\xa9" },
		{ "=", NULL },
		{ "=4", NULL },
		{ "=4g", NULL },
		{ "a;b", NULL },
		{ "a\x01", NULL },
	};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct str out;
		enum res r = taglist_unquote(arena, str_c(rows[i].in), &out);
		assert_int_equal(r, rows[i].out != NULL ? RES_OK : RES_SYNTAX);
		if (rows[i].out != NULL)
			assert_str(out, rows[i].out);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_accepted),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_tags_before_the_error),
		cmocka_unit_test(test_utf8),
		cmocka_unit_test_setup_teardown(
		    test_bounds_and_get, setup, teardown),
		cmocka_unit_test(test_limit),
		cmocka_unit_test_setup_teardown(test_unquote, setup, teardown),
	};
	return cmocka_run_group_tests_name("mail/taglist", tests, NULL, NULL);
}
