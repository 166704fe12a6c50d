/* iprev by the table of RFC 8601 §2.7.3. */
#include "auth/iprev.h"

#include "dns/zone.h"
#include "hn_test.h"

#define REVERSE "1.2.0.192.in-addr.arpa"
#define REVERSE6                                                              \
	"1.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.8.b.d.0.1.0.0.2."    \
	"ip6.arpa"

static void
words(void **state)
{
	static const struct {
		const char *ip, *zone;
		enum auth_result want;
		const char *name;
	} rows[] = {
		{ "192.0.2.1", REVERSE " PTR a.example\na.example A 192.0.2.1\n",
		    AUTH_PASS, "a.example" },
		{ "192.0.2.1",
		    REVERSE " PTR b.example\n" REVERSE " PTR a.example\n"
			    "a.example A 192.0.2.1\n",
		    AUTH_PASS, "a.example" },
		{ "192.0.2.1", REVERSE " PTR a.example\na.example A 192.0.2.9\n",
		    AUTH_FAIL, "a.example" },
		{ "192.0.2.1", REVERSE " PTR a.example\n", AUTH_FAIL,
		    "a.example" },
		{ "192.0.2.1", "", AUTH_PERMERROR, "" },
		{ "192.0.2.1", REVERSE " PTR !SERVFAIL\n", AUTH_TEMPERROR, "" },
		{ "192.0.2.1",
		    REVERSE " PTR a.example\na.example A !TIMEOUT\n",
		    AUTH_TEMPERROR, "a.example" },
		{ "2001:db8::1",
		    REVERSE6 " PTR a.example\na.example AAAA 2001:db8::1\n",
		    AUTH_PASS, "a.example" },
	};
	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct resolver *zone = NULL;
		struct err err = { "" };
		struct ip ip;
		struct iprev_result got;
		struct dns_limits limits = { 1000000, 1000000, 0 };
		assert_ok(zone_from_text(
		    str_c(rows[i].zone), "zone", false, &err, &zone));
		assert_ok(ip_parse(str_c(rows[i].ip), &ip));
		struct arena *a = arena_new(0);
		struct dns_session *dns = dns_session_new(a, zone, &limits);
		iprev_prefetch(a, dns, &ip);
		assert_ok(iprev_check(a, dns, &ip, &got));
		if (got.result != rows[i].want)
			fail_msg("row %zu: %d", i, (int)got.result);
		assert_str(got.name, rows[i].name);
		arena_free(&a);
		resolver_free(&zone);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(words) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
