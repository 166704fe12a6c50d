/* hanaper.conf(5) and the option table say the same: every option once, in
 * the table's order, with its default; and no option that there is not. */
#include "hn_test.h"

#include <stdio.h>

#include "config/options.h"

#define MAX_PAGE ((size_t)1 << 20)

static char *page;

static int
read_page(void **state)
{
	char path[4096];
	const char *top = getenv("SRCDIR");
	snprintf(path, sizeof path, "%s/man/hanaper.conf.5",
	    top != NULL ? top : ".");
	FILE *f = fopen(path, "r");
	page = calloc(1, MAX_PAGE);
	if (f == NULL || page == NULL)
		return -1;
	size_t n = fread(page, 1, MAX_PAGE - 1, f);
	fclose(f);
	return n == 0;
}

static int
free_page(void **state)
{
	free(page);
	return 0;
}

/* ".It Ic NAME No = Cm DEFAULT", the default quoted when it has blanks. */
static void
expected_line(const struct option *o, char *out, size_t size)
{
	const char *quote = strchr(o->fallback, ' ') != NULL ? "\"" : "";
	snprintf(out, size, "\n.It Ic %s No = Cm %s%s%s\n", o->name, quote,
	    o->fallback, quote);
}

static void
every_option_stands_there_with_its_default(void **state)
{
	const char *at = page;
	for (size_t i = 0; i < config_options.count; i++) {
		char line[512];
		expected_line(&config_options.rows[i], line, sizeof line);
		const char *found = strstr(page, line);
		if (found == NULL)
			fail_msg("not in hanaper.conf(5):%s", line);
		if (found < at)
			fail_msg("out of order:%s", line);
		if (strstr(found + 1, line) != NULL)
			fail_msg("twice:%s", line);
		at = found;
	}
}

/* Section options stand without a default. */
static void
every_section_stands_there(void **state)
{
	for (size_t k = 0; k < SECTION_COUNT; k++) {
		const struct section_type *s = &config_sections[k];
		char line[200];
		snprintf(line, sizeof line, "\n.Dl [%s Ar %s ]\n", s->kind,
		    s->argument);
		const char *section = strstr(page, line);
		if (section == NULL)
			fail_msg("no section:%s", line);
		/* archive rules refer to the match lists of overrides */
		if (k == SECTION_ARCHIVE)
			section = strstr(page, "\n.Dl [override");
		for (size_t i = 0; i < s->options.count; i++) {
			snprintf(line, sizeof line, "\n.It Ic %s\n",
			    s->options.rows[i].name);
			if (strstr(section, line) == NULL)
				fail_msg("[%s]:%s", s->kind, line);
		}
	}
}

static bool
is_known(struct str name)
{
	if (option_find(config_options, name) != NULL)
		return true;
	for (size_t k = 0; k < SECTION_COUNT; k++)
		if (option_find(config_sections[k].options, name) != NULL)
			return true;
	return false;
}

static void
nothing_else_stands_there(void **state)
{
	static const char mark[] = "\n.It Ic ";
	unsigned count = 0;
	for (const char *at = page; (at = strstr(at, mark)) != NULL; at++) {
		struct str rest = str_c(at + sizeof mark - 1), line, name;
		assert_true(str_split(&rest, '\n', &line));
		assert_true(str_split(&line, ' ', &name));
		if (!is_known(name))
			fail_msg("no such option: %.*s", STR_ARG(name));
		count++;
	}
	assert_true(count >= config_options.count);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_option_stands_there_with_its_default),
		cmocka_unit_test(every_section_stands_there),
		cmocka_unit_test(nothing_else_stands_there),
	};
	return cmocka_run_group_tests(tests, read_page, free_page);
}
