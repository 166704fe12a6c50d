#include "tests/hn_test.h"

#include "base/clock.h"
#include "dns/session.h"
#include "dns/zone.h"

/* A resolver that counts: passes on to a zone, can refuse to begin. */
struct counting {
	struct resolver resolver;
	struct resolver *zone;
	unsigned started, waited, held;
	enum res refuse;
};

static enum res
count_start(struct resolver *r, struct str name, enum dns_type type,
    struct dns_query **out)
{
	struct counting *c = (struct counting *)r;
	if (c->refuse != RES_OK)
		return c->refuse;
	c->started++;
	c->held++;
	return c->zone->start(c->zone, name, type, out);
}

static struct dns_answer *
count_wait(struct resolver *r, struct dns_query *q, int64_t deadline_us)
{
	struct counting *c = (struct counting *)r;
	c->waited++;
	return c->zone->wait(c->zone, q, deadline_us);
}

static void
count_release(struct resolver *r, struct dns_query **q)
{
	struct counting *c = (struct counting *)r;
	c->held--;
	c->zone->release(c->zone, q);
}

static const struct dns_limits limits = { .lookup_us = 5000000,
	.budget_us = 20000000 };

static struct counting
counting_new(bool timeout_waits)
{
	struct counting c = { .resolver = { .start = count_start,
				  .wait = count_wait,
				  .release = count_release } };
	assert_ok(zone_from_text(STR("a.example A 192.0.2.1\n"
				     "a.example TXT \"text\"\n"
				     "slow.example * !TIMEOUT\n"
				     "slow2.example * !TIMEOUT\n"
				     "slow3.example * !TIMEOUT\n"),
	    "zone", timeout_waits, NULL, &c.zone));
	return c;
}

static void
asks_once(void **state)
{
	struct counting c = counting_new(false);
	struct arena *arena = arena_new(0);
	struct dns_session *s = dns_session_new(arena, &c.resolver, &limits);
	assert_non_null(s);
	const struct dns_answer *a =
	    dns_session_get(s, STR("a.example"), DNS_A);
	assert_int_equal(a->status, DNS_OK);
	assert_ptr_equal(dns_session_get(s, STR("A.Example"), DNS_A), a);
	assert_ptr_equal(dns_session_get(s, STR("a.example."), DNS_A), a);
	assert_int_equal(c.started, 1);
	assert_int_equal(c.waited, 1);
	assert_int_equal(c.held, 0);
	assert_ptr_not_equal(dns_session_get(s, STR("a.example"), DNS_TXT), a);
	assert_int_equal(c.started, 2);
	assert_int_equal(dns_session_count(s), 2);
	assert_ptr_equal(dns_session_at(s, 0), a);
	assert_int_equal(dns_session_at(s, 1)->type, DNS_TXT);
	arena_free(&arena);
	resolver_free(&c.zone);
}

static void
prefetch_is_no_evidence(void **state)
{
	struct counting c = counting_new(false);
	struct arena *arena = arena_new(0);
	struct dns_session *s = dns_session_new(arena, &c.resolver, &limits);
	dns_session_prefetch(s, STR("a.example"), DNS_A);
	dns_session_prefetch(s, STR("a.example"), DNS_A);
	dns_session_prefetch(s, STR("never.example"), DNS_A);
	dns_session_prefetch(s, STR("bad..name"), DNS_A);
	assert_int_equal(c.started, 2);
	assert_int_equal(dns_session_count(s), 0);
	assert_int_equal(
	    dns_session_get(s, STR("a.example"), DNS_A)->status, DNS_OK);
	assert_int_equal(c.started, 2);
	assert_int_equal(dns_session_count(s), 1);
	assert_int_equal(c.held, 1);
	arena_free(&arena); /* gives up what nobody looked at */
	assert_int_equal(c.held, 0);
	resolver_free(&c.zone);
}

static void
bad_names_are_not_asked(void **state)
{
	static const char *const bad[] = { "", ".", "a..b", "\xc3\xa9.de",
		"label-of-64-bytes-"
		"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
		".example" };
	struct counting c = counting_new(false);
	struct arena *arena = arena_new(0);
	struct dns_session *s = dns_session_new(arena, &c.resolver, &limits);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		const struct dns_answer *a =
		    dns_session_get(s, str_c(bad[i]), DNS_A);
		assert_int_equal(a->status, DNS_BADNAME);
		assert_non_null(a->detail);
	}
	assert_int_equal(c.started, 0);
	arena_free(&arena);
	resolver_free(&c.zone);
}

static void
query_limit(void **state)
{
	struct counting c = counting_new(false);
	struct arena *arena = arena_new(0);
	struct dns_limits few = limits;
	few.max_queries = 3;
	struct dns_session *s = dns_session_new(arena, &c.resolver, &few);
	for (unsigned i = 0; i < 5; i++) {
		struct str name = arena_printf(arena, "n%u.example", i);
		const struct dns_answer *a = dns_session_get(s, name, DNS_A);
		assert_int_equal(a->status, i < 3 ? DNS_NXDOMAIN : DNS_TIMEOUT);
		assert_int_equal(a->detail != NULL, i >= 3);
	}
	assert_int_equal(c.started, 3);
	/* the first ones still answer */
	assert_int_equal(
	    dns_session_get(s, STR("n0.example"), DNS_A)->status, DNS_NXDOMAIN);
	assert_int_equal(dns_session_count(s), 5);
	arena_free(&arena);
	resolver_free(&c.zone);
}

static void
default_query_limit(void **state)
{
	struct counting c = counting_new(false);
	struct arena *arena = arena_new(0);
	struct dns_session *s = dns_session_new(arena, &c.resolver, &limits);
	for (unsigned i = 0; i < DNS_SESSION_MAX_QUERIES + 2; i++)
		dns_session_prefetch(
		    s, arena_printf(arena, "n%u.example", i), DNS_A);
	assert_int_equal(c.started, DNS_SESSION_MAX_QUERIES);
	arena_free(&arena);
	assert_int_equal(c.held, 0);
	resolver_free(&c.zone);
}

static void
deadlines(void **state)
{
	struct counting c = counting_new(true);
	struct arena *arena = arena_new(0);
	struct dns_limits soon = { .lookup_us = 20000, .budget_us = 50000 };
	struct dns_session *s = dns_session_new(arena, &c.resolver, &soon);
	int64_t begun = clock_mono_us();
	dns_session_prefetch(s, STR("slow.example"), DNS_A);
	dns_session_prefetch(s, STR("slow2.example"), DNS_A);
	const struct dns_answer *a =
	    dns_session_get(s, STR("slow.example"), DNS_A);
	assert_int_equal(a->status, DNS_TIMEOUT);
	assert_string_equal(a->detail, "no answer in time");
	assert_true(clock_mono_us() - begun >= 20000);
	/* its time ran out meanwhile */
	a = dns_session_get(s, STR("slow2.example"), DNS_A);
	assert_int_equal(a->status, DNS_TIMEOUT);
	/* the rest of the budget, then none */
	for (unsigned i = 0; i < 6; i++)
		a = dns_session_get(
		    s, arena_printf(arena, "slow.example"), DNS_TXT + i % 2);
	a = dns_session_get(s, STR("slow3.example"), DNS_A);
	a = dns_session_get(s, STR("slow3.example"), DNS_MX);
	assert_int_equal(a->status, DNS_TIMEOUT);
	assert_string_equal(a->detail, "the message's DNS budget is used up");
	/* what is there already is still given */
	a = dns_session_get(s, STR("a.example"), DNS_A);
	assert_int_equal(a->status, DNS_OK);
	arena_free(&arena);
	assert_int_equal(c.held, 0);
	resolver_free(&c.zone);
}

static void
refused(void **state)
{
	struct counting c = counting_new(false);
	struct arena *arena = arena_new(0);
	struct dns_session *s = dns_session_new(arena, &c.resolver, &limits);
	c.refuse = RES_AGAIN;
	const struct dns_answer *a =
	    dns_session_get(s, STR("a.example"), DNS_A);
	assert_int_equal(a->status, DNS_TIMEOUT);
	assert_string_equal(a->detail, "too many look-ups under way");
	c.refuse = RES_OK; /* but the same question has the same answer */
	assert_ptr_equal(dns_session_get(s, STR("a.example"), DNS_A), a);
	c.refuse = RES_NOMEM;
	a = dns_session_get(s, STR("b.example"), DNS_A);
	assert_int_equal(a->status, DNS_TIMEOUT);
	arena_free(&arena);
	resolver_free(&c.zone);
}

static void
out_of_memory(void **state)
{
	struct counting c = counting_new(false);
	struct arena *arena = arena_new(20000);
	struct dns_session *s = dns_session_new(arena, &c.resolver, &limits);
	assert_non_null(s);
	const struct dns_answer *a;
	for (unsigned i = 0; i < 2000; i++) {
		char name[32];
		struct buf b;
		buf_init(&b, sizeof(name));
		buf_addf(&b, "n%u.example", i);
		a = dns_session_get(s, buf_str(&b), DNS_A);
		buf_done(&b);
		assert_non_null(a);
	}
	assert_int_equal(a->status, DNS_TIMEOUT);
	assert_string_equal(a->detail, "out of memory");
	assert_true(dns_session_count(s) > 10);
	arena_free(&arena);
	assert_int_equal(c.held, 0);
	resolver_free(&c.zone);
}

static void
reverse_names(void **state)
{
	struct arena *arena = arena_new(0);
	struct ip ip;
	assert_ok(ip_parse(STR("192.0.2.1"), &ip));
	assert_str(dns_reverse_name(arena, &ip), "1.2.0.192.in-addr.arpa");
	assert_ok(ip_parse(STR("2001:db8::cb01"), &ip));
	assert_str(dns_reverse_name(arena, &ip),
	    "1.0.b.c.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.8.b.d.0.1.0.0.2."
	    "ip6.arpa");
	ip = (struct ip){ .family = IP_NONE };
	assert_int_equal(dns_reverse_name(arena, &ip).len, 0);
	arena_free(&arena);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(asks_once),
		cmocka_unit_test(prefetch_is_no_evidence),
		cmocka_unit_test(bad_names_are_not_asked),
		cmocka_unit_test(query_limit),
		cmocka_unit_test(default_query_limit),
		cmocka_unit_test(deadlines),
		cmocka_unit_test(refused),
		cmocka_unit_test(out_of_memory),
		cmocka_unit_test(reverse_names),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
