/* The reader of lines: events, places, and what is no configuration. */
#include "hn_test.h"

#include "base/buf.h"
#include "config/parse.h"

/* Events as text: "L:name=value|" and "L:[name value]|". */
static enum res
write_event(void *arg, const struct parse_event *e)
{
	buf_addf(arg, "%u:%s%.*s%s%.*s%s|", e->line, e->section ? "[" : "",
	    STR_ARG(e->name), e->section ? " " : "=", STR_ARG(e->value),
	    e->section ? "]" : "");
	return str_eq(e->name, STR("stop")) ? RES_DENIED : RES_OK;
}

static enum res
parse(struct str text, struct buf *out, struct err *err)
{
	struct arena *a = arena_new(0);
	enum res r = parse_text(a, text, "f", err, write_event, out);
	arena_free(&a);
	return r;
}

static const struct {
	const char *text, *want;
} good[] = {
	{ "", "" },
	{ "\n\n# a\n   # b\n \t\n", "" },
	{ "a = b", "1:a=b|" },
	{ "a=b\n", "1:a=b|" },
	{ "a =b c  d \t\n", "1:a=b c  d|" },
	{ "a = b # no comment\n", "1:a=b # no comment|" },
	{ "a = b = c\n", "1:a=b = c|" },
	{ "a =\n", "1:a=|" },
	{ "a =\n  b\n", "1:a=b|" },
	{ "a = b\n\n# c\n  # d\n\te\n f\nx=y\n", "1:a=b e f|7:x=y|" },
	{ "a = b\r\n c\r\n", "1:a=b c|" },
	{ "\xef\xbb\xbf"
	  "a = b\n",
	    "1:a=b|" },
	{ "[s n]\na = b\n[ s  n m ]\n", "1:[s n]|2:a=b|3:[s n m]|" },
	{ "[s]\n", "1:[s ]|" },
	{ "a = b\n mode=0660 x\n", "1:a=b mode=0660 x|" },
	{ "a-b_9 = c\n", "1:a-b_9=c|" },
	{ "a = caf\xc3\xa9\n", "1:a=caf\xc3\xa9|" },
};

static void
events_and_their_lines(void **state)
{
	for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
		struct err err = { "" };
		struct buf b;
		buf_init(&b, 4096);
		enum res r = parse(str_c(good[i].text), &b, &err);
		if (r != RES_OK)
			fail_msg("\"%s\": %s", good[i].text, err.text);
		assert_str(buf_str(&b), good[i].want);
		buf_done(&b);
	}
}

static const struct {
	const char *text, *want;
} bad[] = {
	{ "a\n", "f:1: expected 'name = value', got 'a'" },
	{ "\n= b\n", "f:2: expected 'name = value', got '= b'" },
	{ "a b = c\n", "f:1: expected 'name = value', got 'a b = c'" },
	{ "a = b\n  c = d\n",
	    "f:2: an option must begin in the first column (a line that "
	    "begins with a blank continues 'a')" },
	{ " a = b\n",
	    "f:1: a line that begins with a blank continues an option, but "
	    "none stands before it" },
	{ "a = b\n[s n]\n c\n",
	    "f:3: a line that begins with a blank continues an option, but "
	    "none stands before it" },
	{ "[s n\n", "f:1: a section is written [KIND NAME]" },
	{ "[]\n", "f:1: a section is written [KIND NAME]" },
	{ "[\n", "f:1: a section is written [KIND NAME]" },
	{ "[s n] x\n", "f:1: a section is written [KIND NAME]" },
	{ "[s n]]\n", "f:1: a section is written [KIND NAME]" },
	{ "[s.n]\n", "f:1: a section is written [KIND NAME]" },
	{ "a = b\x7f\n", "f:1: the line holds a control byte" },
	{ "a = b\rc\n", "f:1: the line holds a control byte" },
};

static void
mistakes_and_their_lines(void **state)
{
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct err err = { "" };
		struct buf b;
		buf_init(&b, 4096);
		assert_int_equal(
		    parse(str_c(bad[i].text), &b, &err), RES_SYNTAX);
		assert_string_equal(err.text, bad[i].want);
		buf_done(&b);
	}
	struct err err = { "" };
	struct buf b;
	buf_init(&b, 4096);
	assert_int_equal(parse(STR("a = b\0c\n"), &b, &err), RES_SYNTAX);
	buf_done(&b);
}

static void
the_callback_can_stop(void **state)
{
	struct err err = { "" };
	struct buf b;
	buf_init(&b, 4096);
	assert_int_equal(
	    parse(STR("a=b\nstop=1\nc=d\n"), &b, &err), RES_DENIED);
	assert_str(buf_str(&b), "1:a=b|2:stop=1|");
	buf_done(&b);
}

/* A value of `n` bytes: in one line, and continued. */
static enum res
long_value(size_t n, bool continued, struct err *err)
{
	struct buf text, out;
	buf_init(&text, 4 * PARSE_MAX_VALUE);
	buf_init(&out, 4 * PARSE_MAX_VALUE);
	buf_add_c(&text, "a = x");
	for (size_t i = 1; i < n; i++)
		buf_add_char(&text, continued && i % 1000 == 0 ? '\n' : 'x');
	/* a "\n" of the text counts for the one blank that joins */
	struct buf folded;
	buf_init(&folded, 4 * PARSE_MAX_VALUE);
	for (size_t i = 0; i < text.len; i++) {
		buf_add_char(&folded, text.ptr[i]);
		if (text.ptr[i] == '\n')
			buf_add_char(&folded, ' ');
	}
	enum res r = parse(buf_str(&folded), &out, err);
	buf_done(&text);
	buf_done(&folded);
	buf_done(&out);
	return r;
}

static void
values_are_bounded(void **state)
{
	for (int continued = 0; continued < 2; continued++) {
		struct err err = { "" };
		assert_ok(long_value(PARSE_MAX_VALUE - 8, continued, &err));
		assert_int_equal(
		    long_value(PARSE_MAX_VALUE + 1, continued, &err),
		    RES_LIMIT);
		assert_non_null(strstr(err.text, "the value of 'a' is longer"));
	}
	struct err err = { "" };
	assert_ok(long_value(PARSE_MAX_VALUE, true, &err));
	assert_string_equal(err.text, "");
}

static void
lines_are_bounded(void **state)
{
	struct buf text, out;
	struct err err = { "" };
	buf_init(&text, 4 * PARSE_MAX_LINES);
	buf_init(&out, 100);
	for (size_t i = 0; i < PARSE_MAX_LINES; i++)
		buf_add_char(&text, '\n');
	assert_ok(parse(buf_str(&text), &out, &err));
	buf_add_c(&text, "a = b\n");
	assert_int_equal(parse(buf_str(&text), &out, &err), RES_LIMIT);
	assert_string_equal(err.text, "f:1000000: too many lines");
	buf_done(&text);
	buf_done(&out);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(events_and_their_lines),
		cmocka_unit_test(mistakes_and_their_lines),
		cmocka_unit_test(the_callback_can_stop),
		cmocka_unit_test(values_are_bounded),
		cmocka_unit_test(lines_are_bounded),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
