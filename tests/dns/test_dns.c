#include "tests/hn_test.h"

#include "dns/dns.h"
#include "dns/name.h"

static void
statuses(void **state)
{
	static const struct {
		enum dns_status status;
		const char *text;
		bool temporary;
	} rows[] = {
		{ DNS_OK, "OK", false },
		{ DNS_NODATA, "NODATA", false },
		{ DNS_NXDOMAIN, "NXDOMAIN", false },
		{ DNS_SERVFAIL, "SERVFAIL", true },
		{ DNS_TIMEOUT, "TIMEOUT", true },
		{ DNS_BOGUS, "BOGUS", true },
		{ DNS_BADNAME, "BADNAME", false },
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_string_equal(
		    dns_status_text(rows[i].status), rows[i].text);
		assert_int_equal(
		    dns_status_temporary(rows[i].status), rows[i].temporary);
	}
}

static void
types(void **state)
{
	static const enum dns_type all[] = { DNS_A, DNS_NS, DNS_CNAME, DNS_SOA,
		DNS_PTR, DNS_MX, DNS_TXT, DNS_AAAA, DNS_DNSKEY };
	enum dns_type t = DNS_SOA;
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		assert_ok(dns_type_parse(str_c(dns_type_text(all[i])), &t));
		assert_int_equal(t, all[i]);
	}
	assert_ok(dns_type_parse(STR("aAaA"), &t));
	assert_int_equal(t, DNS_AAAA);
	assert_int_equal(dns_type_parse(STR("TX"), &t), RES_NOTFOUND);
	assert_int_equal(dns_type_parse(STR(""), &t), RES_NOTFOUND);
	assert_int_equal(t, DNS_AAAA);
}

static void
answer_owns_its_data(void **state)
{
	char data[] = "v=spf1 \0 -all";
	struct dns_record records[2] = {
		{ .data = str_of(data, sizeof(data) - 1) },
		{ .data = STR_EMPTY, .preference = 7 },
	};
	struct dns_answer *a =
	    dns_answer_new(STR("Example.ORG"), DNS_TXT, DNS_OK, 60, records, 2);
	assert_non_null(a);
	memset(data, 'x', sizeof(data));
	assert_str(a->name, "example.org");
	assert_int_equal(a->type, DNS_TXT);
	assert_int_equal(a->ttl, 60);
	assert_true(a->time_us > 1500000000000000);
	assert_int_equal(a->count, 2);
	assert_memory_equal(a->records[0].data.ptr, "v=spf1 \0 -all", 13);
	assert_int_equal(a->records[1].data.len, 0);
	assert_int_equal(a->records[1].preference, 7);
	struct dns_answer *b = dns_answer_ref(a);
	dns_answer_unref(&a);
	assert_null(a);
	assert_str(b->name, "example.org");
	dns_answer_unref(&b);
	dns_answer_unref(&b);
	assert_null(dns_answer_ref(NULL));
}

static void
answer_is_bounded(void **state)
{
	struct dns_record *records =
	    calloc(DNS_MAX_RECORDS + 1, sizeof(*records));
	assert_non_null(records);
	struct dns_answer *a = dns_answer_new(
	    STR("x"), DNS_MX, DNS_OK, 1, records, DNS_MAX_RECORDS);
	assert_non_null(a);
	assert_int_equal(a->count, DNS_MAX_RECORDS);
	dns_answer_unref(&a);
	assert_null(dns_answer_new(
	    STR("x"), DNS_MX, DNS_OK, 1, records, DNS_MAX_RECORDS + 1));
	free(records);
}

static void
names(void **state)
{
	char label[64], name[256];
	memset(label, 'a', sizeof(label));
	assert_true(dns_name_ok(str_of(label, 63)));
	assert_false(dns_name_ok(str_of(label, 64)));
	/* 63.63.63.61 is 253 bytes, one more is too long */
	memset(name, 'b', sizeof(name));
	name[63] = name[127] = name[191] = '.';
	assert_true(dns_name_ok(str_of(name, 253)));
	assert_false(dns_name_ok(str_of(name, 254)));
	static const char *const good[] = { "a", "a.b", "_dmarc.example.org",
		"strong-bad+x=y!.example", "macro%percent  space.example",
		"back\\slash" };
	static const char *const bad[] = { "", ".", "a.", ".a", "a..b", "a\tb",
		"a\x7f", "\xc3\xa9.example", "a\n" };
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		assert_true(dns_name_ok(str_c(good[i])));
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_false(dns_name_ok(str_c(bad[i])));
	assert_false(dns_name_ok(str_of("a\0b", 3)));
	assert_str(dns_name_chop(STR("a.b.")), "a.b");
	assert_str(dns_name_chop(STR("a.b..")), "a.b.");
	assert_str(dns_name_chop(STR(".")), "");
	assert_int_equal(dns_name_chop(STR_EMPTY).len, 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(statuses),
		cmocka_unit_test(types),
		cmocka_unit_test(answer_owns_its_data),
		cmocka_unit_test(answer_is_bounded),
		cmocka_unit_test(names),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
