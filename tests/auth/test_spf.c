#include "tests/hn_test.h"

#include <stdio.h>

#include "auth/spf.h"
#include "base/buf.h"
#include "dns/zone.h"

static const char zone_text[] =
    "a1.example.org A 192.0.2.1\n"
    "a1.example.org AAAA 2001:db8::1\n"
    "mx1.example.org A 192.0.2.11\n"
    "mx2.example.org A 192.0.2.12\n"
    "fail.example.org * !SERVFAIL\n"
    "slow.example.org * !TIMEOUT\n"
    "only6.example.org AAAA 2001:db8::6\n"
    /* several records, selection */
    "pass.example.org TXT \"v=spf1 +all\"\n"
    "other.example.org TXT \"some=text\"\n"
    "other.example.org TXT \"v=spf1 \" \"-all\"\n"
    "two.example.org TXT \"v=spf1 -all\"\n"
    "two.example.org TXT \"V=SPF1 +all\"\n"
    "notxt.example.org A 192.0.2.1\n"
    "text.example.org TXT \"v=spf10 -all\"\n"
    "empty.example.org TXT \"v=spf1\"\n"
    "bad.example.org TXT \"v=spf1 +all unknown:x\"\n"
    /* networks */
    "ip.example.org TXT \"v=spf1 ip4:192.0.2.0/25 ?ip6:2001:db8::/33 -all\"\n"
    "any4.example.org TXT \"v=spf1 ~ip4:0.0.0.0/0 -all\"\n"
    "any6.example.org TXT \"v=spf1 ?ip6:::/0 -all\"\n"
    "a0.example.org TXT \"v=spf1 a:a1.example.org/0 -all\"\n"
    "a0six.example.org TXT \"v=spf1 a:only6.example.org/0//0 -all\"\n"
    "mx0.example.org TXT \"v=spf1 mx/0//128 -all\"\n"
    "mx0.example.org MX 10 mx1.example.org\n"
    "a24.example.org TXT \"v=spf1 a:a1.example.org/24//64 -all\"\n"
    "self.example.org TXT \"v=spf1 a -all\"\n"
    "self.example.org A 192.0.2.77\n"
    "local.example.org TXT \"v=spf1 ip4:127.0.0.0/8 a:lo.example.org -all\"\n"
    "lo.example.org A 127.0.0.9\n"
    "nolocal.example.org TXT \"v=spf1 ip4:63.0.0.0/8 ip4:10.0.0.0/8 -all\"\n"
    "local6.example.org TXT \"v=spf1 ip6:::1 -all\"\n"
    /* mx */
    "mx.example.org TXT \"v=spf1 mx -all\"\n"
    "mx.example.org MX 20 mx2.example.org\n"
    "mx.example.org MX 10 mx1.example.org\n"
    "nullmx.example.org TXT \"v=spf1 mx ~all\"\n"
    "nullmx.example.org MX 0 .\n"
    "nomx.example.org TXT \"v=spf1 mx ~all\"\n"
    "nomx.example.org A 192.0.2.1\n"
    "tenmx.example.org TXT \"v=spf1 mx -all\"\n"
    "elevenmx.example.org TXT \"v=spf1 mx -all\"\n"
    "mxthat.example.org TXT \"v=spf1 mx:mx.example.org a:mx1.example.org "
    "a:mx1.example.org a:mx1.example.org a:mx1.example.org a:mx1.example.org "
    "a:mx1.example.org a:mx1.example.org a:mx1.example.org a:mx1.example.org "
    "a:mx1.example.org +all\"\n"
    /* include, redirect */
    "inc.example.org TXT \"v=spf1 include:ip.example.org ~all\"\n"
    "incfail.example.org TXT \"v=spf1 -include:ip.example.org ~all\"\n"
    "incnone.example.org TXT \"v=spf1 include:notxt.example.org +all\"\n"
    "incbad.example.org TXT \"v=spf1 include:bad.example.org +all\"\n"
    "inctemp.example.org TXT \"v=spf1 include:fail.example.org +all\"\n"
    "incname.example.org TXT \"v=spf1 include:a..example.org +all\"\n"
    "red.example.org TXT \"v=spf1 redirect=ip.example.org ip4:203.0.113.1\"\n"
    "rednone.example.org TXT \"v=spf1 redirect=notxt.example.org\"\n"
    "redall.example.org TXT \"v=spf1 ?all redirect=bad.example.org\"\n"
    "loop.example.org TXT \"v=spf1 include:loop.example.org\"\n"
    "redloop.example.org TXT \"v=spf1 redirect=redloop.example.org\"\n"
    /* DNS failures */
    "temp.example.org TXT \"v=spf1 a:fail.example.org +all\"\n"
    "late.example.org TXT \"v=spf1 a:slow.example.org +all\"\n"
    "before.example.org TXT \"v=spf1 ip4:192.0.2.1 a:fail.example.org -all\"\n"
    "failmx.example.org TXT \"v=spf1 mx:fail.example.org +all\"\n"
    "failex.example.org TXT \"v=spf1 exists:fail.example.org +all\"\n"
    /* limits */
    "ten.example.org TXT \"v=spf1 a:a1.example.org a:a1.example.org "
    "a:a1.example.org a:a1.example.org a:a1.example.org a:a1.example.org "
    "a:a1.example.org a:a1.example.org a:a1.example.org a:a1.example.org "
    "~all\"\n"
    "eleven.example.org TXT \"v=spf1 a:a1.example.org a:a1.example.org "
    "a:a1.example.org a:a1.example.org a:a1.example.org a:a1.example.org "
    "a:a1.example.org a:a1.example.org a:a1.example.org a:a1.example.org "
    "a:a1.example.org ~all\"\n"
    "across.example.org TXT \"v=spf1 include:ten.example.org ~all\"\n"
    "void2.example.org TXT \"v=spf1 a:n1.example.org mx:n2.example.org ~all\"\n"
    "void3.example.org TXT \"v=spf1 a:n1.example.org mx:n2.example.org "
    "exists:n3.example.org ~all\"\n"
    "voidname.example.org TXT \"v=spf1 a:a..org a:b..org a:c..org a:d..org "
    "~all\"\n"
    /* ptr */
    "ptr.example.org TXT \"v=spf1 ptr:example.net -all\"\n"
    "ptrself.example.org TXT \"v=spf1 ptr -all\"\n"
    "5.2.0.192.in-addr.arpa PTR host.EXAMPLE.net.\n"
    "host.example.net A 192.0.2.5\n"
    "6.2.0.192.in-addr.arpa PTR forged.example.net\n"
    "forged.example.net A 192.0.2.99\n"
    "7.2.0.192.in-addr.arpa PTR badexample.net\n"
    "badexample.net A 192.0.2.7\n"
    "8.2.0.192.in-addr.arpa PTR !SERVFAIL\n"
    "9.2.0.192.in-addr.arpa PTR x.example.net\n"
    "9.2.0.192.in-addr.arpa PTR nine.example.net\n"
    "x.example.net A !SERVFAIL\n"
    "nine.example.net A 192.0.2.9\n"
    "fiveptr.example.org TXT \"v=spf1 ptr:a.org ptr:b.org ptr:c.org ptr:d.org "
    "-all\"\n"
    /* macros */
    "m.example.org TXT \"v=spf1 exists:%{ir}.%{l}.%{d2}.x.org "
    "exists:%{p}.p.org -all\"\n"
    "1.2.0.192.joe.example.org.x.org A 127.0.0.2\n"
    "host.example.net.p.org A 127.0.0.2\n"
    "noloc.example.org TXT \"v=spf1 exists:%{d}.x.org ~all\"\n"
    "colon.example.org TXT \"v=spf1 exists:a:b/c.%{d} -all\"\n"
    "a:b/c.colon.example.org A 127.0.0.2\n"
    "v6.example.org TXT \"v=spf1 exists:%{i}.%{v}.x.org -all\"\n"
    "2.0.0.1.0.d.b.8.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.1.ip6.x.org "
    "A 127.0.0.2\n"
    "utf8.example.org TXT \"v=spf1 exists:%{l}.x.org include:%{l}.x.org "
    "~all\"\n"
    "utf8red.example.org TXT \"v=spf1 redirect=%{l}.x.org\"\n"
    /* explanations */
    "exp.example.org TXT \"v=spf1 -all exp=why.example.org\"\n"
    "why.example.org TXT \"See %{c} of %{s}, \" \"%{r}%%\"\n"
    "expred.example.org TXT \"v=spf1 redirect=exp.example.org "
    "exp=no.example.org\"\n"
    "expinc.example.org TXT \"v=spf1 -include:pass.example.org "
    "exp=why.example.org\"\n"
    "expin.example.org TXT \"v=spf1 include:exp.example.org -all\"\n"
    "exp2.example.org TXT \"v=spf1 -all exp=two.example.org\"\n"
    "expnone.example.org TXT \"v=spf1 -all exp=gone.example.org\"\n"
    "exptemp.example.org TXT \"v=spf1 -all exp=fail.example.org\"\n"
    "expbad.example.org TXT \"v=spf1 -all exp=badexp.example.org\"\n"
    "badexp.example.org TXT \"100% of %{s}\"\n"
    "exp8.example.org TXT \"v=spf1 -all exp=text8.example.org\"\n"
    "text8.example.org TXT \"caf\\195\\169\"\n"
    "expsoft.example.org TXT \"v=spf1 ~all exp=why.example.org\"\n"
    "expbig.example.org TXT \"v=spf1 -all exp=big.example.org\"\n"
    "big.example.org TXT "
    "\"%{s}%{s}%{s}%{s}%{s}%{s}%{s}%{s}%{s}%{s}%{s}%{s}%{s}%{s}%{s}%{s}%{s}%{s}"
    "%{s}%{s}%{s}%{s}%{s}%{s}%{s}%{s}%{s}%{s}%{s}%{s}%{s}%{s}%{s}%{s}%{s}%{s}%{"
    "s}%{s}%{s}%{s}%{s}%{s}%{s}%{s}%{s}%{s}%{s}%{s}%{s}%{s}%{s}%{s}%{s}%{s}%{s}"
    "%{s}%{s}%{s}%{s}%{s}\"\n"
    "crash.example.org TXT \"v=spf1 -all exp=units.example.org\"\n"
    "xn--bcher-kva.example.org TXT \"v=spf1 -all\"\n";

static struct resolver *zone;

static int
setup(void **state)
{
	struct buf b;
	buf_init(&b, 1 << 20);
	buf_add_c(&b, zone_text);
	buf_add_c(&b, "units.example.org TXT \"");
	for (int i = 0; i < 43; i++)
		buf_add_c(&b, "%{d}a");
	buf_add_c(&b, "\"\n");
	for (int i = 1; i <= 11; i++) {
		buf_addf(
		    &b, "elevenmx.example.org MX %d h%d.example.org\n", i, i);
		buf_addf(&b, "h%d.example.org A 198.51.100.%d\n", i, i);
		if (i < 11)
			buf_addf(&b,
			    "tenmx.example.org MX %d h%d.example.org\n", i, i);
	}
	/* as many terms as there may be; libspf2 alone stops at 64 */
	buf_add_c(&b, "long.example.org TXT \"v=spf1");
	for (int i = 0; i < 127; i++)
		buf_addf(&b, " ip4:198.51.%d.0/24", i);
	buf_add_c(&b, " -all\"\n");
	struct err err = { "" };
	enum res r = zone_from_text(buf_str(&b), "zone", false, &err, &zone);
	buf_done(&b);
	if (r != RES_OK)
		print_error("%s\n", err.text);
	return r == RES_OK ? 0 : -1;
}

static int
teardown(void **state)
{
	resolver_free(&zone);
	return 0;
}

struct checked {
	struct arena *arena;
	struct spf_result r;
};

static struct checked
check(const char *ip, const char *helo, const char *from,
    enum spf_identity identity)
{
	static const struct dns_limits limits = { .lookup_us = 5000000,
		.budget_us = 20000000 };
	struct checked c = { .arena = arena_new(0) };
	struct spf_request rq = { .helo = str_c(helo),
		.mail_from = str_c(from),
		.receiver = STR("rx.example"),
		.now_s = 1600000000,
		.void_limit = 2 };
	if (ip != NULL)
		assert_ok(ip_parse(str_c(ip), &rq.client));
	struct dns_session *dns = dns_session_new(c.arena, zone, &limits);
	spf_prefetch(c.arena, dns, &rq, identity);
	assert_ok(spf_check(c.arena, dns, &rq, identity, &c.r));
	assert_int_equal(c.r.identity, identity);
	return c;
}

static void
results(void **state)
{
	static const struct {
		const char *name; /* before ".example.org" */
		const char *ip;
		const char *result, *mechanism; /* NULL: none known */
	} rows[] = {
		{ "pass", "192.0.2.1", "pass", "+all" },
		{ "other", "192.0.2.1", "fail", "-all" },
		{ "two", "192.0.2.1", "permerror", NULL },
		{ "notxt", "192.0.2.1", "none", NULL },
		{ "text", "192.0.2.1", "none", NULL },
		{ "gone", "192.0.2.1", "none", NULL },
		{ "fail", "192.0.2.1", "temperror", NULL },
		{ "slow", "192.0.2.1", "temperror", NULL },
		{ "empty", "192.0.2.1", "neutral", NULL },
		{ "bad", "192.0.2.1", "permerror", NULL },
		{ "ip", "192.0.2.127", "pass", "ip4:192.0.2.0/25" },
		{ "ip", "192.0.2.128", "fail", "-all" },
		{ "ip", "2001:db8:7fff::1", "neutral", "?ip6:2001:db8::/33" },
		{ "ip", "2001:db8:8000::1", "fail", "-all" },
		{ "ip", "::ffff:192.0.2.1", "pass", "ip4:192.0.2.0/25" },
		{ "any4", "203.0.113.1", "softfail", "~ip4:0.0.0.0/0" },
		{ "any4", "2001:db8::1", "fail", "-all" },
		{ "any6", "203.0.113.1", "fail", "-all" },
		{ "any6", "2001:db8::1", "neutral", "?ip6:::/0" },
		{ "a0", "203.0.113.1", "pass", "a:a1.example.org/0" },
		{ "a0", "2001:db8::2", "fail", "-all" },
		{ "a0", "2001:db8::1", "pass", "a:a1.example.org/0" },
		{ "a0six", "203.0.113.1", "fail", "-all" },
		{ "a0six", "2001:db8:1::", "pass", "a:only6.example.org/0//0" },
		{ "mx0", "203.0.113.1", "pass", "mx/0//128" },
		{ "a24", "192.0.2.200", "pass", "a:a1.example.org/24//64" },
		{ "a24", "192.0.3.1", "fail", "-all" },
		{ "a24", "2001:db8::ffff", "pass", "a:a1.example.org/24//64" },
		{ "a24", "2001:db8:0:1::", "fail", "-all" },
		{ "self", "192.0.2.77", "pass", "a" },
		/* libspf2 gives these a pass of its own */
		{ "ip", "127.0.0.1", "fail", "-all" },
		{ "ip", "::1", "fail", "-all" },
		{ "local", "127.9.9.9", "pass", "ip4:127.0.0.0/8" },
		{ "nolocal", "127.0.0.1", "fail", "-all" },
		{ "local6", "::1", "pass", "ip6:::1" },
		{ "local6", "::2", "fail", "-all" },
		{ "mx", "192.0.2.12", "pass", "mx" },
		{ "mx", "192.0.2.13", "fail", "-all" },
		{ "nullmx", "192.0.2.1", "softfail", "~all" },
		{ "nomx", "192.0.2.1", "softfail", "~all" },
		{ "tenmx", "198.51.100.10", "pass", "mx" },
		{ "tenmx", "203.0.113.1", "fail", "-all" },
		{ "elevenmx", "198.51.100.10", "pass", "mx" },
		{ "elevenmx", "198.51.100.11", "permerror", NULL },
		{ "elevenmx", "203.0.113.1", "permerror", NULL },
		{ "inc", "192.0.2.1", "pass", "include:ip.example.org" },
		{ "inc", "203.0.113.1", "softfail", "~all" },
		{ "incfail", "192.0.2.1", "fail", "-include:ip.example.org" },
		{ "incfail", "2001:db8::1", "softfail", "~all" },
		{ "incnone", "192.0.2.1", "permerror", NULL },
		{ "incbad", "192.0.2.1", "permerror", NULL },
		{ "inctemp", "192.0.2.1", "temperror", NULL },
		{ "incname", "192.0.2.1", "permerror", NULL },
		{ "red", "192.0.2.1", "pass", "ip4:192.0.2.0/25" },
		{ "red", "203.0.113.1", "pass", "ip4:203.0.113.1" },
		{ "red", "203.0.113.2", "fail", "-all" },
		{ "rednone", "192.0.2.1", "permerror", NULL },
		{ "redall", "192.0.2.1", "neutral", "?all" },
		{ "loop", "192.0.2.1", "permerror", NULL },
		{ "redloop", "192.0.2.1", "permerror", NULL },
		{ "temp", "192.0.2.1", "temperror", NULL },
		{ "late", "192.0.2.1", "temperror", NULL },
		{ "before", "192.0.2.1", "pass", "ip4:192.0.2.1" },
		{ "before", "192.0.2.2", "temperror", NULL },
		{ "failmx", "192.0.2.1", "temperror", NULL },
		{ "failex", "192.0.2.1", "temperror", NULL },
		{ "ten", "203.0.113.1", "softfail", "~all" },
		{ "eleven", "203.0.113.1", "permerror", NULL },
		{ "eleven", "192.0.2.1", "pass", "a:a1.example.org" },
		{ "across", "203.0.113.1", "permerror", NULL },
		/* mx: 1, a: 9 make ten; that the name is an MX does not help */
		{ "mxthat", "203.0.113.1", "permerror", NULL },
		{ "void2", "203.0.113.1", "softfail", "~all" },
		{ "void3", "203.0.113.1", "permerror", NULL },
		{ "voidname", "203.0.113.1", "softfail", "~all" },
		{ "ptr", "192.0.2.5", "pass", "ptr:example.net" },
		{ "ptr", "192.0.2.6", "fail", "-all" },
		{ "ptr", "192.0.2.7", "fail", "-all" },
		{ "ptr", "192.0.2.8", "fail", "-all" },
		{ "ptr", "192.0.2.9", "pass", "ptr:example.net" },
		{ "ptrself", "192.0.2.5", "fail", "-all" },
		{ "fiveptr", "203.0.113.1", "fail", "-all" },
		{ "m", "192.0.2.1", "pass", "exists:%{ir}.%{l}.%{d2}.x.org" },
		{ "m", "192.0.2.5", "pass", "exists:%{p}.p.org" },
		{ "colon", "192.0.2.1", "pass", "exists:a:b/c.%{d}" },
		{ "v6", "2001:db8::1", "pass", "exists:%{i}.%{v}.x.org" },
		{ "v6", "2001:db8::2", "fail", "-all" },
		{ "long", "198.51.126.1", "pass", "ip4:198.51.126.0/24" },
		{ "long", "198.51.127.1", "fail", "-all" },
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char from[64];
		snprintf(
		    from, sizeof(from), "joe@%s.example.org", rows[i].name);
		struct checked c =
		    check(rows[i].ip, "helo.example.com", from, SPF_MAILFROM);
		const char *got = auth_result_word(c.r.result);
		if (strcmp(got, rows[i].result) != 0)
			fail_msg("%s from %s: %s (%s), not %s", rows[i].name,
			    rows[i].ip, got, c.r.reason ? c.r.reason : "",
			    rows[i].result);
		assert_str(c.r.domain, from + 4);
		if (rows[i].mechanism == NULL)
			assert_int_equal(c.r.mechanism.len, 0);
		else
			assert_str(c.r.mechanism, rows[i].mechanism);
		bool reason = c.r.result == AUTH_NONE ||
		    c.r.result == AUTH_TEMPERROR ||
		    c.r.result == AUTH_PERMERROR;
		assert_int_equal(c.r.reason != NULL, reason);
		arena_free(&c.arena);
	}
}

static void
identities(void **state)
{
	static const struct {
		const char *helo, *from;
		enum spf_identity identity;
		const char *result, *domain;
	} rows[] = {
		{ "pass.example.org", "a@other.example.org", SPF_HELO, "pass",
		    "pass.example.org" },
		{ "pass.example.org", "a@other.example.org", SPF_MAILFROM,
		    "fail", "other.example.org" },
		{ "pass.example.org", "", SPF_MAILFROM, "pass",
		    "pass.example.org" },
		{ "pass.example.org", "<>", SPF_MAILFROM, "pass",
		    "pass.example.org" },
		{ "PASS.Example.org.", "", SPF_HELO, "pass",
		    "pass.example.org" },
		{ "x", "@Pass.example.org", SPF_MAILFROM, "pass",
		    "pass.example.org" },
		{ "x", "a@b@pass.example.org", SPF_MAILFROM, "pass",
		    "pass.example.org" },
		{ "localhost", "", SPF_HELO, "none", "" },
		{ "", "", SPF_HELO, "none", "" },
		{ "[192.0.2.1]", "", SPF_HELO, "none", "" },
		{ "x", "a@[192.0.2.1]", SPF_MAILFROM, "none", "" },
		{ "x", "a@b", SPF_MAILFROM, "none", "" },
		{ "x", "a@b..example.org", SPF_MAILFROM, "none", "" },
		{ "x", "a@.example.org", SPF_MAILFROM, "none", "" },
		{ "x", "justlocal", SPF_MAILFROM, "none", "" },
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct checked c = check(
		    "192.0.2.1", rows[i].helo, rows[i].from, rows[i].identity);
		if (strcmp(auth_result_word(c.r.result), rows[i].result) != 0)
			fail_msg("%s, %s: %s", rows[i].helo, rows[i].from,
			    auth_result_word(c.r.result));
		assert_str(c.r.domain, rows[i].domain);
		arena_free(&c.arena);
	}
}

/* MAIL FROM may have U-labels, HELO not (SPF-06). */
static void
u_labels(void **state)
{
	struct checked c = check("192.0.2.1", "x",
	    "a@b\xc3\xbc"
	    "cher.example.org",
	    SPF_MAILFROM);
	assert_int_equal(c.r.result, AUTH_FAIL);
	assert_str(c.r.domain, "xn--bcher-kva.example.org");
	arena_free(&c.arena);
	c = check("192.0.2.1",
	    "b\xc3\xbc"
	    "cher.example.org",
	    "", SPF_HELO);
	assert_int_equal(c.r.result, AUTH_NONE);
	arena_free(&c.arena);
	/* terms with such a local part never match */
	c = check("192.0.2.1", "x", "\xc3\xbc@utf8.example.org", SPF_MAILFROM);
	assert_int_equal(c.r.result, AUTH_SOFTFAIL);
	arena_free(&c.arena);
	c = check(
	    "192.0.2.1", "x", "\xc3\xbc@utf8red.example.org", SPF_MAILFROM);
	assert_int_equal(c.r.result, AUTH_PERMERROR);
	arena_free(&c.arena);
}

static void
no_client_address(void **state)
{
	struct checked c = check(NULL, "x", "a@pass.example.org", SPF_MAILFROM);
	assert_int_equal(c.r.result, AUTH_NONE);
	assert_string_equal(c.r.reason, "no client address");
	arena_free(&c.arena);
}

static void
explanations(void **state)
{
	static const struct {
		const char *name, *result, *explanation;
	} rows[] = {
		{ "exp", "fail",
		    "See 203.0.113.1 of joe@exp.example.org, rx.example%" },
		{ "expred", "fail",
		    "See 203.0.113.1 of joe@expred.example.org, rx.example%" },
		{ "expinc", "fail",
		    "See 203.0.113.1 of joe@expinc.example.org, rx.example%" },
		{ "expin", "fail", "" },
		{ "exp2", "fail", "" },
		{ "expnone", "fail", "" },
		{ "exptemp", "fail", "" },
		{ "expbad", "fail", "" },
		{ "exp8", "fail", "" },
		{ "expsoft", "softfail", "" },
		{ "expbig", "fail", "" },
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char from[64];
		snprintf(
		    from, sizeof(from), "joe@%s.example.org", rows[i].name);
		struct checked c =
		    check("203.0.113.1", "x", from, SPF_MAILFROM);
		assert_string_equal(
		    auth_result_word(c.r.result), rows[i].result);
		assert_str(c.r.explanation, rows[i].explanation);
		assert_false(c.r.local_part_used);
		arena_free(&c.arena);
	}
	/* what the sender wrote is not passed on when it is not printable */
	struct checked c = check(
	    "203.0.113.1", "x", "j\xc3\xb6@exp.example.org", SPF_MAILFROM);
	assert_int_equal(c.r.result, AUTH_FAIL);
	assert_int_equal(c.r.explanation.len, 0);
	arena_free(&c.arena);
}

/* libspf2 overruns its stack when it compiles this explanation; it must never
 * see it. */
static void
explanation_of_43_units(void **state)
{
	struct checked c =
	    check("203.0.113.1", "x", "joe@crash.example.org", SPF_MAILFROM);
	assert_int_equal(c.r.result, AUTH_FAIL);
	assert_int_equal(c.r.explanation.len, 43 * 18);
	arena_free(&c.arena);
}

static void
local_part_is_told(void **state)
{
	struct checked c =
	    check("192.0.2.1", "x", "joe@m.example.org", SPF_MAILFROM);
	assert_true(c.r.local_part_used);
	arena_free(&c.arena);
	c = check("192.0.2.1", "x", "joe@noloc.example.org", SPF_MAILFROM);
	assert_false(c.r.local_part_used);
	arena_free(&c.arena);
}

static void
out_of_memory(void **state)
{
	static const struct dns_limits limits = { .lookup_us = 5000000,
		.budget_us = 20000000 };
	struct spf_request rq = { .helo = STR("x.example"),
		.mail_from = STR("joe@exp.example.org"),
		.void_limit = 2 };
	unsigned refused = 0;
	assert_ok(ip_parse(STR("203.0.113.1"), &rq.client));
	for (size_t bytes = 1000; bytes < 100000; bytes += 1000) {
		struct arena *a = arena_new(bytes);
		struct dns_session *dns = dns_session_new(a, zone, &limits);
		struct spf_result r = { .result = AUTH_NONE };
		enum res res = dns == NULL
		    ? RES_NOMEM
		    : spf_check(a, dns, &rq, SPF_MAILFROM, &r);
		refused += res == RES_NOMEM;
		/* never a verdict that is not so */
		assert_true(res == RES_NOMEM || r.result == AUTH_FAIL ||
		    r.result == AUTH_TEMPERROR);
		arena_free(&a);
	}
	assert_true(refused > 0 && refused < 99);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(results),
		cmocka_unit_test(identities),
		cmocka_unit_test(u_labels),
		cmocka_unit_test(no_client_address),
		cmocka_unit_test(explanations),
		cmocka_unit_test(explanation_of_43_units),
		cmocka_unit_test(local_part_is_told),
		cmocka_unit_test(out_of_memory),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
