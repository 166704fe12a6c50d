#include "milter/macros.h"

#include "hn_test.h"

static struct macros *list;

static void
set(char command, const char *text, size_t len)
{
	macros_set(&list, command, str_of(text, len));
}

#define SET(command, text) set(command, text, sizeof(text) - 1)

static void
check(const char *name, const char *wanted)
{
	struct str got = macros_get(list, str_c(name));
	assert_int_equal(got.len, strlen(wanted));
	assert_memory_equal(got.ptr != NULL ? got.ptr : "", wanted, got.len);
}

static void
names_and_values(void **state)
{
	SET('C', "j\0mx.example\0{daemon_name}\0smtpd\0_\0\0");
	check("j", "mx.example");
	check("{j}", "mx.example");
	check("daemon_name", "smtpd");
	check("_", "");
	check("i", "");
	check("daemon", "");
	macros_forget(&list, NULL);
	check("j", "");
}

static void
the_latest_counts(void **state)
{
	SET('M', "{auth_authen}\0joe\0i\0" "1\0");
	SET('E', "i\0" "2\0");
	check("i", "2");
	check("auth_authen", "joe");
	SET('M', "i\0" "3\0"); /* replaces what was told before */
	check("i", "3");
	check("auth_authen", "");
	macros_forget(&list, "EM");
	check("i", "");
	assert_null(list);
}

static void
broken_text(void **state)
{
	SET('M', "");
	SET('M', "i\0" "1"); /* no end */
	check("i", "");
	SET('M', "i\0"); /* no value */
	check("i", "");
	SET('M', "\0\0\0");
	check("", "");
	SET('M', "i\0" "1\0{j\0");
	check("i", "1");
	check("{j", "");
	macros_forget(&list, NULL);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_and_values),
		cmocka_unit_test(the_latest_counts),
		cmocka_unit_test(broken_text),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
