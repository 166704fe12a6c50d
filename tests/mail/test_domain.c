#include "arena_test.h"

#include "base/buf.h"
#include "mail/domain.h"

static void
test_normalize(void **state)
{
	(void)state;
	static const struct {
		const char *in, *out; /* NULL: no domain name */
	} rows[] = {
		{ "example.org", "example.org" },
		{ "EXAMPLE.Org.", "example.org" },
		{ "_dmarc.example.org", "_dmarc.example.org" },
		{ "localhost", "localhost" },
		{ "xn--bcher-kva.example", "xn--bcher-kva.example" },
		{ "b\xc3\xbc"
		  "cher.example",
		    "xn--bcher-kva.example" },
		{ "B\xc3\x9c"
		  "CHER.EXAMPLE.",
		    "xn--bcher-kva.example" },
		/* decomposed u + diaeresis is the same name */
		{ "bu\xcc\x88"
		  "cher.example",
		    "xn--bcher-kva.example" },
		{ "fa\xc3\x9f.example", "xn--fa-hia.example" },
		{ "\xe4\xbe\x8b\xe3\x81\x88\xe3\x80\x82\xe3\x83\x86\xe3\x82"
		  "\xb9\xe3\x83\x88",
		    "xn--r8jz45g.xn--zckzah" },
		{ "_dkim.b\xc3\xbc"
		  "cher.example",
		    "_dkim.xn--bcher-kva.example" },
		{ "", NULL },
		{ ".", NULL },
		{ "a..b", NULL },
		{ ".a", NULL },
		{ "a..", NULL },
		{ "a b", NULL },
		{ "a@b", NULL },
		{ "[192.0.2.1]", NULL },
		{ "b\xfc"
		  "cher.example",
		    NULL },
		{ "\xf0\x9f\x98\x80\xc0.example", NULL },
		{ "a\xef\xbc\xa0"
		  "b.example",
		    NULL }, /* full-width @ */
		{ "b\xc3\xbc"
		  "cher..example",
		    NULL },
	};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct str out = STR("untouched");
		enum res r = domain_normalize(arena, str_c(rows[i].in), &out);
		assert_int_equal(r, rows[i].out != NULL ? RES_OK : RES_SYNTAX);
		assert_str(
		    out, rows[i].out != NULL ? rows[i].out : "untouched");
	}
	struct str out;
	assert_int_equal(
	    domain_normalize(arena, str_of("b\xc3\xbc\0c.example", 13), &out),
	    RES_SYNTAX);
	assert_int_equal(
	    domain_normalize(arena, str_of("a\0b", 3), &out), RES_SYNTAX);
	assert_int_equal(domain_normalize(arena, STR_EMPTY, &out), RES_SYNTAX);
}

static void
test_lengths(void **state)
{
	(void)state;
	for (size_t n = DOMAIN_MAX_LABEL - 1; n <= DOMAIN_MAX_LABEL + 1; n++) {
		struct buf b;
		buf_init(&b, 100);
		for (size_t i = 0; i < n; i++)
			buf_add_char(&b, 'a');
		buf_add_c(&b, ".org");
		assert_int_equal(
		    domain_valid(buf_str(&b)), n <= DOMAIN_MAX_LABEL);
		buf_done(&b);
	}
	for (size_t n = DOMAIN_MAX - 1; n <= DOMAIN_MAX + 1; n++) {
		struct buf b;
		struct str out;
		buf_init(&b, 300);
		for (size_t i = 0; i < n; i++)
			buf_add_char(&b, i % 32 == 31 ? '.' : 'a');
		assert_int_equal(domain_valid(buf_str(&b)), n <= DOMAIN_MAX);
		buf_add_char(&b, '.');
		assert_false(domain_valid(buf_str(&b)));
		assert_int_equal(domain_normalize(arena, buf_str(&b), &out),
		    n <= DOMAIN_MAX ? RES_OK : RES_SYNTAX);
		buf_done(&b);
	}
}

static void
test_compare(void **state)
{
	(void)state;
	static const struct {
		const char *d, *parent;
		bool equal, below;
	} rows[] = {
		{ "example.com", "example.com", true, false },
		{ "a.example.com", "example.com", false, true },
		{ "badexample.com", "example.com", false, false },
		{ "example.com", "a.example.com", false, false },
		{ ".example.com", "example.com", false, false },
		{ "a.b", "", false, false },
		{ "com", "com", true, false },
	};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct str d = str_c(rows[i].d), p = str_c(rows[i].parent);
		assert_int_equal(domain_equal(d, p), rows[i].equal);
		assert_int_equal(domain_is_below(d, p), rows[i].below);
		assert_int_equal(domain_equal_or_below(d, p),
		    rows[i].equal || rows[i].below);
	}
}

static void
test_labels(void **state)
{
	(void)state;
	struct str d = STR("a.b.example.com");
	assert_int_equal(domain_labels(d), 4);
	assert_int_equal(domain_labels(STR("com")), 1);
	assert_int_equal(domain_labels(STR("")), 0);
	assert_str(domain_last_labels(d, 0), "");
	assert_str(domain_last_labels(d, 1), "com");
	assert_str(domain_last_labels(d, 2), "example.com");
	assert_str(domain_last_labels(d, 4), "a.b.example.com");
	assert_str(domain_last_labels(d, 5), "a.b.example.com");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_normalize),
		cmocka_unit_test(test_lengths),
		cmocka_unit_test(test_compare),
		cmocka_unit_test(test_labels),
	};
	return cmocka_run_group_tests_name(
	    "mail/domain", tests, setup, teardown);
}
