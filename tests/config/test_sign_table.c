/* sign_table: patterns, parts, order, and errors with their place. */
#include "hn_test.h"

#include "config/sign_table.h"

static const char table[] =
    "# most specific first, whatever the order here\n"
    "*              d=all.example\n"
    "\n"
    ".example.org   d=example.org   s=sub\n"
    ".mail.example.org\td=mail.example.org\n"
    "Joe@Example.org d=example.org s=Joe i=joe@example.org "
    "key=/etc/hanaper/joe.pem\r\n"
    "example.org    d=Example.ORG   s=second, i=@x.example.org\n"
    "example.org    d=example.org   s=first\n"
    "a.example      d=example.net";

static const struct {
	enum sign_pattern_kind kind;
	const char *pattern, *domain, *selector, *identity, *key, *where;
} want[] = {
	{ SIGN_USER, "joe@example.org", "example.org", "joe", "joe@example.org",
	    "/etc/hanaper/joe.pem", "t:6" },
	{ SIGN_DOMAIN, "a.example", "example.net", "", "", "", "t:9" },
	{ SIGN_DOMAIN, "example.org", "example.org", "second", "@x.example.org",
	    "", "t:7" },
	{ SIGN_DOMAIN, "example.org", "example.org", "first", "", "", "t:8" },
	{ SIGN_SUBDOMAINS, "mail.example.org", "mail.example.org", "", "", "",
	    "t:5" },
	{ SIGN_SUBDOMAINS, "example.org", "example.org", "sub", "", "", "t:4" },
	{ SIGN_ANY, "", "all.example", "", "", "", "t:2" },
};

static void
rules_in_their_order(void **state)
{
	struct arena *a = arena_new(0);
	struct err err = { "" };
	const struct sign_rule *r;
	size_t n;
	if (sign_table_parse(a, str_c(table), "t", &err, &r, &n) != RES_OK)
		fail_msg("%s", err.text);
	assert_int_equal(n, sizeof want / sizeof *want);
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(r[i].kind, want[i].kind);
		assert_str(r[i].pattern, want[i].pattern);
		assert_str(r[i].domain, want[i].domain);
		assert_str(r[i].selector, want[i].selector);
		assert_str(r[i].identity, want[i].identity);
		assert_str(r[i].key_path, want[i].key);
		assert_str(r[i].where, want[i].where);
	}
	assert_ok(sign_table_parse(a, STR("\n# nothing\n"), "t", &err, &r, &n));
	assert_int_equal(n, 0);
	arena_free(&a);
}

static const struct {
	const char *text, *want;
} bad[] = {
	{ "example.org", "t:1: d= is missing for 'example.org'" },
	{ "\n\nexample.org s=x", "t:3: d= is missing for 'example.org'" },
	{ "example.org d=", "t:1: d= is not a domain (A-labels): ''" },
	{ "example.org d=x..y", "t:1: d= is not a domain (A-labels): 'x..y'" },
	{ "example.org d=a.example x=y",
	    "t:1: expected d=, s=, i= or key=, got 'x=y'" },
	{ "example.org d=a.example selector",
	    "t:1: expected d=, s=, i= or key=, got 'selector'" },
	{ "example.org d=a.example D=b",
	    "t:1: expected d=, s=, i= or key=, got 'D=b'" },
	{ "example.org d=a.example d=b.example", "t:1: given twice: 'd'" },
	{ "example.org d=a.example s=", "t:1: s= is not a selector: ''" },
	{ "example.org d=a.example s=a/b", "t:1: s= is not a selector: 'a/b'" },
	{ "example.org d=a.example i=", "t:1: an empty value: 'i='" },
	{ "example.org d=a.example i=joe@b.example",
	    "t:1: i= is not an address in or below d=: 'joe@b.example'" },
	{ "example.org d=a.example i=joe@ba.example",
	    "t:1: i= is not an address in or below d=: 'joe@ba.example'" },
	{ "example.org d=a.example i=a.example",
	    "t:1: i= is not an address in or below d=: 'a.example'" },
	{ "example.org d=a.example key=/x",
	    "t:1: key= needs s= for 'example.org'" },
	{ "example.org d=a.example s=x key=y",
	    "t:1: key= is not an absolute path: 'y'" },
	{ "*@example.org d=a.example",
	    "t:1: the pattern must be user@domain, domain, .domain or *, not "
	    "'*@example.org'" },
	{ "@example.org d=a.example", NULL },
	{ "user@ d=a.example", NULL },
	{ ". d=a.example", NULL },
	{ "*.example d=a.example", NULL },
	{ "b\xc3\xbc.example d=a.example", NULL },
	{ ",", "t:1: expected a pattern, got ','" },
	{ "a.example d=b.example\nx.example d=x.example\na.example d=b.example",
	    "t:3: the same signature as at 't:1'" },
};

static void
mistakes_name_the_line(void **state)
{
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct arena *a = arena_new(0);
		struct err err = { "" };
		const struct sign_rule *r;
		size_t n = 77;
		assert_int_equal(
		    sign_table_parse(a, str_c(bad[i].text), "t", &err, &r, &n),
		    RES_SYNTAX);
		assert_int_equal(n, 77);
		if (bad[i].want != NULL)
			assert_string_equal(err.text, bad[i].want);
		else
			assert_non_null(
			    strstr(err.text, "t:1: the pattern must"));
		arena_free(&a);
	}
}

static enum res
many(unsigned n, bool one_pattern, struct err *err)
{
	struct arena *a = arena_new((size_t)256 << 20);
	struct buf b;
	const struct sign_rule *r;
	size_t count;
	buf_init(&b, (size_t)16 << 20);
	for (unsigned i = 0; i < n; i++) {
		buf_addf(
		    &b, "p%u.example d=d%u.example\n", one_pattern ? 0 : i, i);
	}
	assert_int_equal(b.error, RES_OK);
	enum res res = sign_table_parse(a, buf_str(&b), "t", err, &r, &count);
	buf_done(&b);
	arena_free(&a);
	return res;
}

static void
rules_are_bounded(void **state)
{
	struct err err = { "" };
	assert_ok(many(SIGN_TABLE_MAX_PER_PATTERN, true, &err));
	assert_int_equal(
	    many(SIGN_TABLE_MAX_PER_PATTERN + 1, true, &err), RES_LIMIT);
	assert_string_equal(
	    err.text, "t:17: too many signatures for 'p0.example'");
	err_clear(&err);
	assert_ok(many(SIGN_TABLE_MAX_RULES, false, &err));
	assert_int_equal(
	    many(SIGN_TABLE_MAX_RULES + 1, false, &err), RES_LIMIT);
	assert_string_equal(err.text, "t:100001: more than 100000 rules");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rules_in_their_order),
		cmocka_unit_test(mistakes_name_the_line),
		cmocka_unit_test(rules_are_bounded),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
