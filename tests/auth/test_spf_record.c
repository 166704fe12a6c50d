#include "tests/hn_test.h"

#include "auth/spf_record.h"
#include "base/buf.h"

static enum res
parse(struct arena *a, struct str text, struct spf_record *out)
{
	const char *reason = NULL;
	enum res r = spf_record_parse(a, text, out, &reason);
	assert_int_equal(r == RES_OK, reason == NULL);
	return r;
}

static void
version(void **state)
{
	assert_true(spf_record_matches(STR("v=spf1")));
	assert_true(spf_record_matches(STR("V=SPF1 a")));
	assert_false(spf_record_matches(STR("v=spf10 a")));
	assert_false(spf_record_matches(STR("v=spf1\ta")));
	assert_false(spf_record_matches(STR(" v=spf1 a")));
	assert_false(spf_record_matches(STR("v=spf")));
	assert_false(spf_record_matches(STR("")));
}

/* One term behind "v=spf1 ": whether the grammar has it. */
static void
terms(void **state)
{
	static const char *const good[] = { "all", "-ALL", "?all", "~all",
		"+all", "include:example.org", "-include:%{d}", "a", "A",
		"a/24", "a//64", "a/24//64", "a/0", "a/32", "a//0", "a//128",
		"a:example.org", "a:example.org/24//64", "a:example.org.",
		"a:foo/bar.example.org", "a:x:y.example.org", "a:%{i}/24",
		"a:a/b.%{i}/24", "a:%%", "a:%_", "a:%-", "a:x.%{d}",
		"a:1.2.3.a", "a:1.2.3.4-5", "a:x.a-b", "mx", "mx/24",
		"mx:example.org//64", "ptr", "ptr:example.org", "ip4:1.2.3.4",
		"ip4:1.2.3.4/0", "ip4:1.2.3.4/32", "IP4:255.255.255.255/8",
		"ip6:::1", "ip6:1:2:3:4:5:6:7:8/128", "ip6:::/0",
		"ip6:::ffff:1.2.3.4/96", "exists:%{i}.x.example.org",
		"exists:%{l1r+-/_=.,}.example.org",
		"exists:%{S}.%{O}.%{D}.%{P}.%{V}.%{H}.x.org",
		"exists:%{d130R}.x.org", "redirect=example.org",
		"REDIRECT=%{d}", "exp=exp.example.org", "exp=%{d}",
		"exp=a%{l}.com", "moo.cow-far_out=man:dog/cat",
		"x=", "default=%{c}%{r}%{t}", "a=b", "all=x", "include=foo",
		"a:museum.example.museum", "a:example.xn--zckzah",
		"a:!#$&'()*+,-./:;<=>?@[]^_`{|}~.example.org" };
	static const char *const bad[] = { "all:example.org", "all/8", "--all",
		"+", "-", "include", "include:", "include:/24",
		"include:example.org/24", "include:foo", "a:", "a:/24", "a:foo",
		"a:1.2.3.4", "a:example.-com", "a:example.com-",
		"a:example.org..", "a:.", "a:x.1", "a/33", "a//129", "a/024",
		"a/", "a//", "a/24/", "a//64/24", "a/24//64//64", "a/-1",
		"a/24/64", "a:example.org:8080", "a:%{", "a:%{d", "a:%{z}.org",
		"a:%{d0}", "a:%{dr1}", "a:%{d-r}", "a:%x.org", "a:%.org",
		"a:example.org%", "a:%{c}.org", "a:%{r}.org", "a:%{t}.org",
		"a:%{d}x", "a:%{d}1", "a:%{d}/33", "a:%{d!}", "ptr/24",
		"ptr:", "ptr:example.org/24", "mx:", "mx/33", "ip4",
		"ip4:", "ip4:1.2.3", "ip4:1.2.3.4.5", "ip4:1.2.3.256",
		"ip4:1.2.3.04", "ip4:1.2.3.4/33", "ip4:1.2.3.4/032",
		"ip4:1.2.3.4/", "ip4:1.2.3.4//32", "ip4:1.2.3.4:25",
		"ip4:example.org", "ip4:::1", "ip6", "ip6:", "ip6:1.2.3.4",
		"ip6:::1/129", "ip6:::1/00", "ip6:::1//33", "ip6:1:2:3:4:5:6:7",
		"ip6:fe80::1%eth0", "ip6:[::1]", "exists",
		"exists:", "exists:example.org/24", "redirect=", "redirect=foo",
		"redirect:example.org", "-redirect=example.org",
		"exp=", "exp=foo", "exp=%{c}.org", "=x", "1x=y", "-a=b", "x=%a",
		"x=%{z}", "unknown", "unknown:x", "a.b", "include!:x.org",
		"a:\"x\".1" };
	struct arena *a = arena_new(0);
	struct spf_record rec;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		struct str text = arena_printf(a, "v=spf1 %s", good[i]);
		if (parse(a, text, &rec) != RES_OK)
			fail_msg("refused: %s", good[i]);
		assert_int_equal(rec.count, 1);
		assert_str(rec.terms[0].text, good[i]);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		/* also behind a term that would match */
		struct str text = arena_printf(a, "v=spf1 +all %s", bad[i]);
		if (parse(a, text, &rec) != RES_SYNTAX)
			fail_msg("taken: %s", bad[i]);
	}
	arena_free(&a);
}

static void
typed(void **state)
{
	struct arena *a = arena_new(0);
	struct spf_record rec;
	assert_ok(parse(a,
	    STR("v=spf1  ?a:Example.org/24//64  ip4:192.0.2.7/24 "
		"~ip6:::ffff:1.2.3.4/100 mx exp=e.org x=1 redirect=r.org  "),
	    &rec));
	assert_int_equal(rec.count, 7);
	assert_int_equal(rec.terms[0].kind, SPF_A);
	assert_int_equal(rec.terms[0].qualifier, '?');
	assert_str(rec.terms[0].domain, "Example.org");
	assert_int_equal(rec.terms[0].prefix4, 24);
	assert_int_equal(rec.terms[0].prefix6, 64);
	assert_int_equal(rec.terms[1].kind, SPF_IP4);
	assert_int_equal(rec.terms[1].net.prefix, 24);
	assert_int_equal(rec.terms[1].net.ip.bytes[3], 7);
	assert_int_equal(rec.terms[2].qualifier, '~');
	assert_int_equal(rec.terms[2].net.ip.family, IP_V6);
	assert_int_equal(rec.terms[2].net.prefix, 100);
	assert_int_equal(rec.terms[3].kind, SPF_MX);
	assert_int_equal(rec.terms[3].domain.len, 0);
	assert_int_equal(rec.terms[3].prefix4, 32);
	assert_int_equal(rec.terms[3].prefix6, 128);
	assert_null(rec.all);
	assert_ptr_equal(rec.exp, &rec.terms[4]);
	assert_ptr_equal(rec.redirect, &rec.terms[6]);
	assert_str(rec.redirect->domain, "r.org");
	/* redirect is nothing beside an all, wherever that stands */
	assert_ok(parse(a, STR("v=spf1 redirect=r.org -all"), &rec));
	assert_null(rec.redirect);
	assert_ptr_equal(rec.all, &rec.terms[1]);
	arena_free(&a);
}

static void
whole_records(void **state)
{
	static const struct {
		const char *text;
		size_t len;
		enum res want;
	} rows[] = {
		{ "v=spf1", 6, RES_OK }, { "v=spf1 ", 7, RES_OK },
		{ "v=spf1    ", 10, RES_OK }, { "v=spf1 a  -all ", 15, RES_OK },
		{ "v=spf1 a\t-all", 13, RES_SYNTAX },
		{ "v=spf1 a\0-all", 13, RES_SYNTAX },
		{ "v=spf1 a\n", 9, RES_SYNTAX },
		{ "v=spf1 a \x7f", 10, RES_SYNTAX },
		{ "v=spf1 a:\xc3\xa9.org", 15, RES_SYNTAX },
		{ "v=spf1 x=1 x=2", 14, RES_OK },
		{ "v=spf1 exp=a.b exp=a.b", 22, RES_SYNTAX },
		{ "v=spf1 redirect=a.b Redirect=a.b", 32, RES_SYNTAX },
		{ "v=spf1 redirect=a.b all redirect=a.b", 36, RES_SYNTAX },
		{ "v=spf1 v=spf1", 13, RES_OK }, /* an unknown modifier */
	};
	struct arena *a = arena_new(0);
	struct spf_record rec;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (parse(a, str_of(rows[i].text, rows[i].len), &rec) !=
		    rows[i].want)
			fail_msg("%s", rows[i].text);
	}
	arena_free(&a);
}

static void
limits(void **state)
{
	struct arena *a = arena_new(0);
	struct spf_record rec;
	for (size_t n = SPF_MAX_TERMS - 1; n <= SPF_MAX_TERMS + 1; n++) {
		struct buf b;
		buf_init(&b, 1 << 16);
		buf_add_c(&b, "v=spf1");
		for (size_t i = 0; i < n; i++)
			buf_add_c(&b, " ip4:192.0.2.1");
		assert_int_equal(parse(a, buf_str(&b), &rec),
		    n > SPF_MAX_TERMS ? RES_LIMIT : RES_OK);
		buf_done(&b);
	}
	for (size_t n = SPF_MAX_RECORD - 1; n <= SPF_MAX_RECORD + 1; n++) {
		char *text = malloc(n);
		memcpy(text, "v=spf1 x=", 9);
		memset(text + 9, 'y', n - 9);
		assert_int_equal(parse(a, str_of(text, n), &rec),
		    n > SPF_MAX_RECORD ? RES_LIMIT : RES_OK);
		free(text);
	}
	arena_free(&a);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(version),
		cmocka_unit_test(terms),
		cmocka_unit_test(typed),
		cmocka_unit_test(whole_records),
		cmocka_unit_test(limits),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
