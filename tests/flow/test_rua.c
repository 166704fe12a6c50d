/* Who gets a report: addresses from URIs, and who has agreed. */
#include "flow/rua.h"

#include "dns/zone.h"
#include "hn_test.h"

static const struct {
	const char *uri, *address; /* NULL: refused */
} addresses[] = {
	{ "mailto:d@example.com", "d@example.com" },
	{ "MAILTO:d@EXAMPLE.com.", "d@example.com" },
	{ "mailto:d+x=y@example.com?subject=x", "d+x=y@example.com" },
	{ "mailto:d%2Bx@example.com", "d+x@example.com" },
	{ "mailto:a!b@example.com", "a!b@example.com" },
	{ "https://example.com/d", NULL },
	{ "mailto:example.com", NULL },
	{ "mailto:@example.com", NULL },
	{ "mailto:d@", NULL },
	{ "mailto:d@exa mple.com", NULL },
	{ "mailto:d%0Ax@example.com", NULL },
	{ "mailto:d%00@example.com", NULL },
	{ "mailto:d%3Ca@example.com", NULL },
	{ "mailto:d%2Ca@example.com", NULL },
	{ "mailto:d%2@example.com", NULL },
	{ "mailto:d%zz@example.com", NULL },
	{ "mailto:\"d\"@example.com", NULL },
	{ "mailto:.d@example.com", NULL },
	{ "mailto:d..e@example.com", NULL },
	{ "mailto:d@[192.0.2.1]", NULL },
	{ "mailto:"
	  "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	  "@b.example",
	    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	    "@b.example" },
	{ "mailto:"
	  "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	  "@b.example",
	    NULL },
};

static void
only_plain_addresses_are_taken(void **state)
{
	struct arena *a = arena_new(0);
	for (size_t i = 0; i < sizeof addresses / sizeof addresses[0]; i++) {
		struct str got = STR_EMPTY;
		enum res r = rua_address(a, str_c(addresses[i].uri), &got);
		if ((r == RES_OK) != (addresses[i].address != NULL))
			fail_msg("%s: %s", addresses[i].uri, res_text(r));
		if (r == RES_OK)
			assert_str(got, addresses[i].address);
	}
	arena_free(&a);
	(void)state;
}

#define ZONE                                                                   \
	"_dmarc.example.com TXT \"v=DMARC1; p=none\"\n"                        \
	"example.com._report._dmarc.yes.example TXT \"v=DMARC1\"\n"            \
	"example.com._report._dmarc.other.example TXT "                        \
	"\"v=DMARC1; rua=mailto:new@other.example,mailto:x@third.example\"\n"  \
	"example.com._report._dmarc.away.example TXT "                         \
	"\"v=DMARC1; rua=mailto:x@third.example\"\n"                           \
	"example.com._report._dmarc.junk.example TXT \"hello\"\n"              \
	"example.com._report._dmarc.slow.example TXT !SERVFAIL\n"              \
	"_dmarc.lost.example TXT !TIMEOUT\n"

static const struct {
	const char *uri;
	enum rua_state state;
	const char *address;
} rows[] = {
	{ "mailto:d@example.com", RUA_ACCEPTED, "d@example.com" },
	{ "mailto:d@reports.example.com", RUA_ACCEPTED,
	    "d@reports.example.com" },
	{ "mailto:d@yes.example", RUA_ACCEPTED, "d@yes.example" },
	{ "mailto:d@other.example", RUA_ACCEPTED, "new@other.example" },
	{ "mailto:d@away.example", RUA_REFUSED, "" },
	{ "mailto:d@junk.example", RUA_REFUSED, "d@junk.example" },
	{ "mailto:d@no.example", RUA_REFUSED, "d@no.example" },
	{ "mailto:d@slow.example", RUA_LATER, "d@slow.example" },
	{ "mailto:d@lost.example", RUA_LATER, "d@lost.example" },
	{ "https://example.com/", RUA_REFUSED, "" },
	{ "mailto:d%0A@example.com", RUA_REFUSED, "" },
};
#define ROWS (sizeof rows / sizeof rows[0])

static void
others_must_have_agreed(void **state)
{
	static const struct dns_limits limits = { 1000000, 1000000, 0 };
	struct resolver *resolver = NULL;
	struct arena *a = arena_new(0);
	struct err err = { "" };
	struct str uris[ROWS + 1];
	struct rua_target targets[RUA_MAX_TARGETS];
	size_t count;
	assert_ok(
	    zone_from_text(STR(ZONE), "zone", false, &err, &resolver));
	for (size_t i = 0; i < ROWS; i++)
		uris[i] = str_c(rows[i].uri);
	uris[ROWS] = uris[0]; /* each address once */
	struct dns_session *dns = dns_session_new(a, resolver, &limits);
	assert_ok(rua_targets(a, dns, ORG_TREEWALK, STR("example.com"), uris,
	    ROWS + 1, targets, &count));
	assert_int_equal(count, ROWS);
	for (size_t i = 0; i < count; i++) {
		if (targets[i].state != rows[i].state)
			fail_msg("%s: %s", rows[i].uri, targets[i].why);
		assert_str(targets[i].address, rows[i].address);
		assert_int_equal(targets[i].why == NULL,
		    targets[i].state == RUA_ACCEPTED);
	}
	arena_free(&a);
	resolver_free(&resolver);
	(void)state;
}

static void
there_is_a_maximum(void **state)
{
	static const struct dns_limits limits = { 1000000, 1000000, 0 };
	struct resolver *resolver = NULL;
	struct arena *a = arena_new(0);
	struct err err = { "" };
	struct str uris[RUA_MAX_TARGETS + 2];
	struct rua_target targets[RUA_MAX_TARGETS];
	size_t count;
	assert_ok(
	    zone_from_text(STR(ZONE), "zone", false, &err, &resolver));
	for (unsigned i = 0; i < RUA_MAX_TARGETS + 2; i++)
		uris[i] = arena_printf(a, "mailto:d%u@example.com", i);
	struct dns_session *dns = dns_session_new(a, resolver, &limits);
	assert_ok(rua_targets(a, dns, ORG_TREEWALK, STR("example.com"), uris,
	    RUA_MAX_TARGETS + 2, targets, &count));
	assert_int_equal(count, RUA_MAX_TARGETS);
	arena_free(&a);
	resolver_free(&resolver);
	(void)state;
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_plain_addresses_are_taken),
		cmocka_unit_test(others_must_have_agreed),
		cmocka_unit_test(there_is_a_maximum),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
