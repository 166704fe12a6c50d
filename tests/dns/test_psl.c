#include "tests/hn_test.h"

#include "dns/psl.h"

static void
suffixes(void **state)
{
	static const char *const yes[] = { "com", "co.uk", "github.io",
		"unlisted-tld", "c.kobe.jp" };
	static const char *const no[] = { "example.com", "bank.co.uk",
		"a.github.io", "city.kobe.jp", "", ".", "a..b", "\xff.com" };
	for (size_t i = 0; i < sizeof(yes) / sizeof(yes[0]); i++)
		assert_true(psl_is_public_suffix_name(str_c(yes[i])));
	for (size_t i = 0; i < sizeof(no) / sizeof(no[0]); i++)
		assert_false(psl_is_public_suffix_name(str_c(no[i])));
}

static void
registry_suffixes(void **state)
{
	static const char *const yes[] = { "com", "co.uk", "unlisted-tld",
		"c.kobe.jp" };
	static const char *const no[] = { "github.io", "homeoffice.gov.uk",
		"example.com", "city.kobe.jp", "", "a..b" };
	for (size_t i = 0; i < sizeof(yes) / sizeof(yes[0]); i++)
		assert_true(psl_is_registry_suffix(str_c(yes[i])));
	for (size_t i = 0; i < sizeof(no) / sizeof(no[0]); i++)
		assert_false(psl_is_registry_suffix(str_c(no[i])));
}

static void
organizational(void **state)
{
	static const struct {
		const char *name, *org; /* NULL: none */
	} rows[] = {
		{ "example.com", "example.com" },
		{ "a.b.example.com", "example.com" },
		{ "www.bank.co.uk", "bank.co.uk" },
		{ "a.b.github.io", "b.github.io" },
		{ "a.b.c.kobe.jp", "b.c.kobe.jp" },
		{ "www.city.kobe.jp", "city.kobe.jp" },
		{ "mail.unlisted-tld", "mail.unlisted-tld" },
		{ "com", NULL },
		{ "co.uk", NULL },
		{ "", NULL },
		{ "a..com", NULL },
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct str name = str_c(rows[i].name);
		struct str org = psl_organizational(name);
		if (rows[i].org == NULL) {
			assert_null(org.ptr);
			continue;
		}
		assert_str(org, rows[i].org);
		/* a view into what was given */
		assert_ptr_equal(org.ptr + org.len, name.ptr + name.len);
	}
}

static void
not_terminated(void **state)
{
	assert_str(psl_organizational(str_of("www.example.comXYZ", 15)),
	    "example.com");
	assert_null(psl_organizational(str_of("a\0.example.com", 14)).ptr);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(suffixes),
		cmocka_unit_test(registry_suffixes),
		cmocka_unit_test(organizational),
		cmocka_unit_test(not_terminated),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
