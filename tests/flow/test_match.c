/* Match lists of override and archive sections. */
#include "hn_test.h"

#include "flow/match.h"

static const struct {
	const char *pattern, *domain;
	bool want;
} domains[] = {
	{ "a.example", "a.example", true },
	{ "a.example", "A.Example.", true },
	{ "a.example", "x.a.example", false },
	{ "a.example", "xa.example", false },
	{ ".a.example", "x.a.example", true },
	{ ".a.example", "y.x.A.example", true },
	{ ".a.example", "a.example", false },
	{ ".a.example", "xa.example", false },
	{ ".a.example", ".a.example", false },
	{ "a.example", "", false },
	{ ".", "", false },
};

static void
one_domain(void **state)
{
	for (size_t i = 0; i < sizeof domains / sizeof *domains; i++)
		assert_int_equal(match_domain(str_c(domains[i].pattern),
				     str_c(domains[i].domain)),
		    domains[i].want);
}

static const struct {
	const char *pattern, *address;
	bool want;
} addresses[] = {
	{ "joe@a.example", "Joe@A.EXAMPLE", true },
	{ "joe@a.example", "jo@a.example", false },
	{ "a.example", "joe@a.example", true },
	{ "a.example", "joe@b.a.example", false },
	{ ".a.example", "joe@b.a.example", true },
	{ "a.example", "a.example", false },
	{ "a.example", "", false },
	{ "*", "joe@a.example", true },
	{ "*", "joe", false },
	{ "a.example", "\"x@y\"@a.example", true },
};

static void
one_address(void **state)
{
	for (size_t i = 0; i < sizeof addresses / sizeof *addresses; i++)
		assert_int_equal(match_address(str_c(addresses[i].pattern),
				     str_c(addresses[i].address)),
		    addresses[i].want);
}

/* Each list alone, against a message that has it and one that has not. */
static void
every_list_counts(void **state)
{
	static const struct str author = { "a.example", 9 };
	struct ip ip;
	struct ip_net net;
	assert_ok(ip_parse(STR("192.0.2.9"), &ip));
	assert_ok(ip_net_parse(STR("192.0.2.0/24"), &net));
	const struct match_facts full = { &author, 1, ip, STR("h.example"),
		STR("l.example"), STR("s.example"), false };
	const struct match_facts none = { NULL, 0, { IP_NONE, { 0 } },
		STR_EMPTY, STR_EMPTY, STR_EMPTY, true };
	struct str items[] = { STR("a.example"), STR("h.example"),
		STR("l.example"), STR("s.example"), STR("q.example") };
	const struct match_lists lists[] = {
		{ .from_domain = { 1, &items[0] } },
		{ .ptr = { 1, &items[1] } },
		{ .list_id = { 1, &items[2] } },
		{ .sealer = { 1, &items[3] } },
		{ .client = { 1, &net } },
		{ .direction = STR("in") },
	};
	struct match_lists all = { .direction = STR_EMPTY };
	for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
		assert_true(match_message(&lists[i], &full));
		assert_false(match_message(&lists[i], &none));
	}
	all = (struct match_lists){ .from_domain = { 5, items },
		.ptr = { 5, items },
		.list_id = { 5, items },
		.sealer = { 5, items },
		.client = { 1, &net },
		.direction = STR("in") };
	assert_true(match_message(&all, &full));
	all.direction = STR("out");
	assert_false(match_message(&all, &full));
	assert_true(match_message(
	    &(struct match_lists){ .client = { 0, NULL } }, &none));
}

static void
recipients(void **state)
{
	struct str items[] = { STR("a@h.example"), STR("g.example") };
	const struct match_lists some = { .recipient = { 2, items } };
	const struct match_lists all = { .direction = STR("in") };
	assert_false(match_recipient(&some, STR("x@y.example")));
	assert_true(match_recipient(&some, STR("b@g.example")));
	assert_true(match_recipient(&some, STR("A@H.example")));
	assert_true(match_recipient(&all, STR_EMPTY));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_domain),
		cmocka_unit_test(one_address),
		cmocka_unit_test(every_list_counts),
		cmocka_unit_test(recipients),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
