#include "tests/hn_test.h"

#include "auth/spf_macro.h"

static struct str
validated(void *arg)
{
	return str_c(arg);
}

static char host[] = "mx.example.org";

static struct spf_macro_env
env_of(const char *ip)
{
	struct spf_macro_env e = { .local = STR("strong-bad"),
		.sender_domain = STR("email.example.com"),
		.domain = STR("email.example.com"),
		.helo = STR("helo.example.net"),
		.now_s = 1600000000,
		.validated = validated,
		.arg = host };
	assert_ok(ip_parse(str_c(ip), &e.client));
	return e;
}

/* RFC 7208 §7.4 and what it leaves out. */
static void
expansions(void **state)
{
	static const struct {
		const char *text, *want, *ip; /* NULL: 192.0.2.3 */
	} rows[] = {
		{ "%{s}", "strong-bad@email.example.com", NULL },
		{ "%{o}", "email.example.com", NULL },
		{ "%{d}", "email.example.com", NULL },
		{ "%{d4}", "email.example.com", NULL },
		{ "%{d3}", "email.example.com", NULL },
		{ "%{d2}", "example.com", NULL },
		{ "%{d1}", "com", NULL },
		{ "%{d999999999999999999999}", "email.example.com", NULL },
		{ "%{dr}", "com.example.email", NULL },
		{ "%{d2r}", "example.email", NULL },
		{ "%{d3R}", "com.example.email", NULL },
		{ "%{d1r}", "email", NULL },
		{ "%{l}", "strong-bad", NULL },
		{ "%{l-}", "strong.bad", NULL },
		{ "%{lr}", "strong-bad", NULL },
		{ "%{lr-}", "bad.strong", NULL },
		{ "%{l1r-}", "strong", NULL },
		{ "%{l1-}", "bad", NULL },
		{ "%{s1-}", "bad@email.example.com", NULL },
		{ "%{ir}.%{v}._spf.%{d2}", "3.2.0.192.in-addr._spf.example.com",
		    NULL },
		{ "%{lr-}.lp._spf.%{d2}", "bad.strong.lp._spf.example.com",
		    NULL },
		{ "%{ir}.%{v}._spf.%{d2}",
		    "1.0.b.c.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.8.b.d.0."
		    "1.0.0.2.ip6._spf.example.com",
		    "2001:db8::cb01" },
		{ "%{c}", "192.0.2.3", NULL },
		{ "%{c}", "2001:db8::cb01", "2001:DB8:0::CB01" },
		{ "%{i2}", "0.1", "::1" },
		{ "%{h}", "helo.example.net", NULL },
		{ "%{p}", "mx.example.org", NULL },
		{ "%{p2}", "example.org", NULL },
		{ "%{r}", "unknown", NULL },
		{ "%{t}", "1600000000", NULL },
		{ "%%%_%-", "% %20", NULL },
		{ "a%{d1}b%{d1}", "acombcom", NULL },
		{ "%{S}", "strong-bad%40email.example.com", NULL },
		{ "%{L}", "strong-bad", NULL },
		{ "", "", NULL },
		{ "plain text", "plain text", NULL },
	};
	struct arena *a = arena_new(0);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct spf_macro_env e =
		    env_of(rows[i].ip != NULL ? rows[i].ip : "192.0.2.3");
		struct str out = STR_EMPTY;
		assert_true(
		    spf_macro_valid(str_c(rows[i].text), SPF_IN_EXPLANATION));
		assert_ok(spf_macro_expand(
		    a, str_c(rows[i].text), &e, SPF_MAX_EXPANSION, &out));
		assert_str(out, rows[i].want);
	}
	arena_free(&a);
}

/* Delimiters without anything between give empty parts, and all split. */
static void
splitting(void **state)
{
	static const struct {
		const char *local, *text, *want;
	} rows[] = {
		{ "a+b-c.d", "%{l}", "a+b-c.d" },
		{ "a+b-c.d", "%{l+}", "a.b-c.d" },
		{ "a+b-c.d", "%{l.+-}", "a.b.c.d" },
		{ "a+b-c.d", "%{l2r+-}", "b.a" },
		{ "a+b-c.d", "%{l2+-}", "b.c.d" },
		{ "a..b", "%{l}", "a..b" },
		{ "a..b", "%{lr}", "b..a" },
		{ "a..b", "%{l2}", ".b" },
		{ ".a.", "%{lr}", ".a." },
		{ ".a.", "%{l1}", "" },
		{ ".a.", "%{l1r}", "" },
		{ ".a.", "%{l2r}", "a." },
		{ "a/b_c=d,e", "%{lr/_=,}", "e.d.c.b.a" },
		{ "a b\"(", "%{L}", "a%20b%22%28" },
		{ "\xc3\xa9", "%{L}", "%C3%A9" },
		{ "~.-_", "%{L}", "~.-_" },
	};
	struct arena *a = arena_new(0);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct spf_macro_env e = env_of("192.0.2.3");
		struct str out = STR_EMPTY;
		e.local = str_c(rows[i].local);
		assert_false(e.local_used);
		assert_ok(spf_macro_expand(
		    a, str_c(rows[i].text), &e, SPF_MAX_EXPANSION, &out));
		assert_str(out, rows[i].want);
		assert_true(e.local_used);
	}
	arena_free(&a);
}

static void
where_allowed(void **state)
{
	static const struct {
		const char *text;
		bool term, modifier, explanation;
	} rows[] = {
		{ "x", true, true, true },
		{ "", true, true, true },
		{ "%{d}", true, true, true },
		{ "%{c}", false, true, true },
		{ "%{R}", false, true, true },
		{ "%{t}", false, true, true },
		{ "a b", false, false, true },
		{ "a\tb", false, false, false },
		{ "a\x7f", false, false, false },
		{ "\xc3\xa9", false, false, false },
		{ "%", false, false, false },
		{ "%d", false, false, false },
		{ "%{}", false, false, false },
		{ "%{x}", false, false, false },
		{ "%{d0}", false, false, false },
		{ "%{d", false, false, false },
		{ "%{d2r-.}", true, true, true },
		{ "%{dr2}", false, false, false },
		{ "%{d*}", false, false, false },
		{ "%(d)", false, false, false },
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct str s = str_c(rows[i].text);
		assert_int_equal(spf_macro_valid(s, SPF_IN_TERM), rows[i].term);
		assert_int_equal(
		    spf_macro_valid(s, SPF_IN_MODIFIER), rows[i].modifier);
		assert_int_equal(spf_macro_valid(s, SPF_IN_EXPLANATION),
		    rows[i].explanation);
	}
	assert_false(spf_macro_valid(str_of("a\0b", 3), SPF_IN_EXPLANATION));
}

static void
limit(void **state)
{
	struct arena *a = arena_new(0);
	struct spf_macro_env e = env_of("192.0.2.3");
	struct str out = STR_EMPTY;
	for (size_t max = 16; max <= 18; max++) {
		enum res r = spf_macro_expand(a, STR("%{d}"), &e, max, &out);
		assert_int_equal(r, max < 17 ? RES_LIMIT : RES_OK);
	}
	/* 43 units that unfold to 17 bytes each, as has crashed others */
	char text[43 * 5];
	for (size_t i = 0; i < 43; i++)
		memcpy(text + 5 * i, "%{d}a", 5);
	assert_ok(spf_macro_expand(
	    a, str_of(text, sizeof(text)), &e, SPF_MAX_EXPLANATION, &out));
	assert_int_equal(out.len, 43 * 18);
	/* without memory */
	struct arena *small = arena_new(64);
	assert_int_equal(spf_macro_expand(small, str_of(text, sizeof(text)), &e,
			     SPF_MAX_EXPLANATION, &out),
	    RES_NOMEM);
	arena_free(&small);
	arena_free(&a);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(expansions),
		cmocka_unit_test(splitting),
		cmocka_unit_test(where_allowed),
		cmocka_unit_test(limit),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
