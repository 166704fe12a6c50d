#include "hn_test.h"

#include <stdio.h>
#include <unistd.h>

#include "base/log.h"

static void
check_pair(struct str value, const char *want)
{
	struct buf b;
	buf_init(&b, 10000);
	log_pair(&b, "k", value);
	assert_str(buf_str(&b), want);
	buf_done(&b);
}

static void
test_pair(void **state)
{
	(void)state;
	static const struct {
		const char *in, *out;
	} rows[] = {
		{ "plain", "k=plain" },
		{ "", "k=\"\"" },
		{ "a b", "k=\"a b\"" },
		{ "a=b", "k=\"a=b\"" },
		{ "a;b", "k=\"a;b\"" },
		{ "a\"b\\c", "k=\"a\\\"b\\\\c\"" },
		{ "a\nb\x7f\xc3", "k=a\\x0Ab\\x7F\\xC3" },
	};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
		check_pair(str_c(rows[i].in), rows[i].out);
	check_pair(str_of("a\0b", 3), "k=\"a\\x00b\"");
	check_pair(STR_EMPTY, "k=\"\"");

	struct buf b;
	buf_init(&b, 1000);
	log_pair(&b, "a", STR("1"));
	log_pair(&b, "b", STR("2"));
	assert_str(buf_str(&b), "a=1 b=2");
	buf_done(&b);
}

static void
test_pair_is_cut(void **state)
{
	(void)state;
	char value[514], want[530];
	memset(value, 'v', sizeof value);
	for (size_t n = 511; n <= 513; n++) {
		int len = n <= 512
		    ? snprintf(want, sizeof want, "k=%.*s", (int)n, value)
		    : snprintf(want, sizeof want, "k=%.512s...", value);
		assert_int_equal(len, n <= 512 ? n + 2 : 517);
		check_pair(str_of(value, n), want);
	}
}

/* Standard error into a file while fn runs. */
static size_t
captured(void (*fn)(void), char *out, size_t max)
{
	FILE *f = tmpfile();
	int saved = dup(STDERR_FILENO);
	dup2(fileno(f), STDERR_FILENO);
	fn();
	dup2(saved, STDERR_FILENO);
	close(saved);
	rewind(f);
	size_t n = fread(out, 1, max - 1, f);
	fclose(f);
	out[n] = '\0';
	return n;
}

static void
some_lines(void)
{
	log_error("bad %d", 1);
	log_warning("hm\nforged line\x7f");
	log_info("fine");
	log_debug("not shown");
	log_line(LOG_LEVEL_INFO, STR("a line"));
	log_line(LOG_LEVEL_DEBUG, STR("not shown"));
}

static void
test_stderr(void **state)
{
	(void)state;
	char text[1000];
	unsetenv("JOURNAL_STREAM");
	log_open(LOG_TO_STDERR, "prog", LOG_LEVEL_INFO);
	captured(some_lines, text, sizeof text);
	assert_string_equal(text,
	    "prog: error: bad 1\n"
	    "prog: warning: hm?forged line?\n"
	    "prog: fine\n"
	    "prog: a line\n");
	setenv("JOURNAL_STREAM", "1:2", 1);
	log_open(LOG_TO_STDERR, "prog", LOG_LEVEL_WARNING);
	captured(some_lines, text, sizeof text);
	assert_string_equal(text,
	    "<3>error: bad 1\n"
	    "<4>warning: hm?forged line?\n");
	unsetenv("JOURNAL_STREAM");
}

static void
json_lines(void)
{
	log_set_json(true);
	some_lines();
	log_object(STR("{\"qid\":\"1\"}"));
	log_line(LOG_LEVEL_INFO, STR("a \"b\\\xff"));
	log_set_json(false);
	log_object(STR("{}"));
}

static void
test_json(void **state)
{
	(void)state;
	char text[1000];
	unsetenv("JOURNAL_STREAM");
	log_open(LOG_TO_STDERR, "prog", LOG_LEVEL_INFO);
	captured(json_lines, text, sizeof text);
	assert_string_equal(text,
	    "{\"level\":\"error\",\"text\":\"bad 1\"}\n"
	    "{\"level\":\"warning\",\"text\":\"hm?forged line?\"}\n"
	    "{\"level\":\"info\",\"text\":\"fine\"}\n"
	    "{\"level\":\"info\",\"text\":\"a line\"}\n"
	    "{\"qid\":\"1\"}\n"
	    "{\"level\":\"info\",\"text\":\"a \\\"b\\\\\xef\xbf\xbd\"}\n"
	    "{}\n");
	setenv("JOURNAL_STREAM", "1:2", 1);
	log_open(LOG_TO_STDERR, "prog", LOG_LEVEL_ERROR);
	captured(json_lines, text, sizeof text);
	assert_string_equal(
	    text, "<3>{\"level\":\"error\",\"text\":\"bad 1\"}\n");
	unsetenv("JOURNAL_STREAM");
}

static void
long_line(void)
{
	static char line[20000];
	memset(line, 'x', sizeof line);
	log_line(LOG_LEVEL_ERROR, str_of(line, sizeof line));
	log_error("%.3000s", line);
}

static void
test_long_lines(void **state)
{
	(void)state;
	static char text[40000];
	log_open(LOG_TO_STDERR, "p", LOG_LEVEL_INFO);
	size_t n = captured(long_line, text, sizeof text);
	assert_int_equal(n, strlen("p: error: ") * 2 + 16384 + 1 + 2047 + 1);
	assert_int_equal(text[n - 1], '\n');
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pair),
		cmocka_unit_test(test_pair_is_cut),
		cmocka_unit_test(test_stderr),
		cmocka_unit_test(test_json),
		cmocka_unit_test(test_long_lines),
	};
	return cmocka_run_group_tests_name("base/log", tests, NULL, NULL);
}
