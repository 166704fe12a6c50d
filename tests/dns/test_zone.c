#include "tests/hn_test.h"

#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "dns/zone.h"

static const char zone_text[] =
    "# a comment\r\n"
    "; another\n"
    "\n"
    "Example.ORG. TXT \"v=spf1 \" \"a -all\"   ; behind it\n"
    "example.org TXT plain\\032word\n"
    "example.org\tMX 10 mx1.Example.org.\n"
    "example.org MX 0 .\n"
    "example.org MX 20 \n"
    "example.org A 192.0.2.1\n"
    "example.org AAAA 2001:db8::1\n"
    "example.org AAAA ::ffff:192.0.2.9\n"
    "escapes.example TXT \"a\\\"b\\\\c\\000\\255;#\"\n"
    "empty.example TXT \"\"\n"
    "nothing.example TXT\n"
    "semi.example TXT k=rsa;p=x\n"
    "1.2.0.192.in-addr.arpa PTR Host.Example.org.\n"
    "www.example CNAME web.example\n"
    "web.example CNAME Example.org\n"
    "gone.example CNAME nowhere.example\n"
    "typed.example CNAME example.org\n"
    "typed.example TXT own\n"
    "loop1.example CNAME loop2.example\n"
    "loop2.example CNAME loop1.example\n"
    "c0.example CNAME c1.example\n"
    "c1.example CNAME c2.example\n"
    "c2.example CNAME c3.example\n"
    "c3.example CNAME c4.example\n"
    "c4.example CNAME c5.example\n"
    "c5.example CNAME c6.example\n"
    "c6.example CNAME c7.example\n"
    "c7.example CNAME c8.example\n"
    "c8.example A 192.0.2.8\n"
    "over.example CNAME c0.example\n"
    "bad.example TXT !SERVFAIL\n"
    "bad.example A 192.0.2.3\n"
    "slow.example * !TIMEOUT\n"
    "slow.example TXT fast\n"
    "none.example A !nodata\n"
    "nx.example * !NXDOMAIN\n"
    "master.example. 3600 IN TXT \"as in a \" \"master file\"\n"
    "master.example. in A 192.0.2.4\n"
    "old.example SPF \"v=spf1 -all\"\n"
    "macro%percent\\032\\032space.example A 192.0.2.7\n"
    "delegated.example NS NS1.example.\n"
    "delegated.example SOA ns1.example. root.example. 1 2 3 4 5\n";

static struct resolver *
open_text(const char *text, bool timeout_waits)
{
	struct resolver *r = NULL;
	struct err err = { "" };
	enum res res =
	    zone_from_text(str_c(text), "zone", timeout_waits, &err, &r);
	if (res != RES_OK)
		print_error("%s\n", err.text);
	assert_int_equal(res, RES_OK);
	return r;
}

static struct dns_answer *
ask(struct resolver *r, const char *name, enum dns_type type)
{
	struct dns_query *q = NULL;
	assert_ok(r->start(r, str_c(name), type, &q));
	struct dns_answer *a = r->wait(r, q, 0);
	r->release(r, &q);
	assert_null(q);
	assert_non_null(a);
	assert_str(a->name, name);
	assert_int_equal(a->type, type);
	return a;
}

static void
answers(void **state)
{
	static const struct {
		const char *name;
		enum dns_type type;
		enum dns_status status;
		size_t count;
		const char *first; /* data, or NULL */
	} rows[] = {
		{ "example.org", DNS_TXT, DNS_OK, 2, "v=spf1 a -all" },
		{ "example.org", DNS_MX, DNS_OK, 3, "mx1.example.org" },
		{ "example.org", DNS_A, DNS_OK, 1, "" },
		{ "example.org", DNS_AAAA, DNS_OK, 2, "" },
		{ "example.org", DNS_PTR, DNS_NODATA, 0, NULL },
		{ "org", DNS_A, DNS_NXDOMAIN, 0, NULL },
		{ "empty.example", DNS_TXT, DNS_OK, 1, "" },
		{ "nothing.example", DNS_TXT, DNS_OK, 1, "" },
		{ "semi.example", DNS_TXT, DNS_OK, 1, "k=rsa;p=x" },
		{ "1.2.0.192.in-addr.arpa", DNS_PTR, DNS_OK, 1,
		    "host.example.org" },
		{ "www.example", DNS_TXT, DNS_OK, 2, "v=spf1 a -all" },
		{ "www.example", DNS_CNAME, DNS_OK, 1, "web.example" },
		{ "www.example", DNS_PTR, DNS_NODATA, 0, NULL },
		{ "gone.example", DNS_TXT, DNS_NXDOMAIN, 0, NULL },
		{ "typed.example", DNS_TXT, DNS_OK, 1, "own" },
		{ "typed.example", DNS_A, DNS_OK, 1, "" },
		{ "loop1.example", DNS_A, DNS_SERVFAIL, 0, NULL },
		{ "c0.example", DNS_A, DNS_OK, 1, "" },
		{ "over.example", DNS_A, DNS_SERVFAIL, 0, NULL },
		{ "bad.example", DNS_TXT, DNS_SERVFAIL, 0, NULL },
		{ "bad.example", DNS_A, DNS_OK, 1, "" },
		{ "slow.example", DNS_MX, DNS_TIMEOUT, 0, NULL },
		{ "slow.example", DNS_TXT, DNS_OK, 1, "fast" },
		{ "none.example", DNS_A, DNS_NODATA, 0, NULL },
		{ "nx.example", DNS_A, DNS_NXDOMAIN, 0, NULL },
		{ "master.example", DNS_TXT, DNS_OK, 1, "as in a master file" },
		{ "master.example", DNS_A, DNS_OK, 1, "" },
		{ "old.example", DNS_TXT, DNS_NODATA, 0, NULL },
		{ "macro%percent  space.example", DNS_A, DNS_OK, 1, "" },
		{ "delegated.example", DNS_NS, DNS_OK, 1, "ns1.example" },
		{ "delegated.example", DNS_SOA, DNS_OK, 1,
		    "ns1.example. root.example. 1 2 3 4 5" },
	};
	struct resolver *r = open_text(zone_text, false);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct dns_answer *a = ask(r, rows[i].name, rows[i].type);
		if (a->status != rows[i].status || a->count != rows[i].count)
			fail_msg("%s: %s with %zu records", rows[i].name,
			    dns_status_text(a->status), a->count);
		assert_int_equal(a->ttl, 300);
		assert_false(a->secure);
		assert_int_equal(
		    a->detail != NULL, dns_status_temporary(a->status));
		if (rows[i].first != NULL)
			assert_str(a->records[0].data, rows[i].first);
		dns_answer_unref(&a);
	}
	resolver_free(&r);
	assert_null(r);
}

static void
record_data(void **state)
{
	struct resolver *r = open_text(zone_text, false);
	struct dns_answer *a = ask(r, "escapes.example", DNS_TXT);
	assert_int_equal(a->records[0].data.len, 9);
	assert_memory_equal(a->records[0].data.ptr, "a\"b\\c\0\377;#", 9);
	dns_answer_unref(&a);
	a = ask(r, "example.org", DNS_TXT);
	assert_str(a->records[1].data, "plain word");
	dns_answer_unref(&a);
	a = ask(r, "example.org", DNS_MX);
	assert_int_equal(a->records[0].preference, 10);
	assert_int_equal(a->records[1].preference, 0);
	assert_str(a->records[1].data, "");
	assert_str(a->records[2].data, "");
	dns_answer_unref(&a);
	a = ask(r, "example.org", DNS_A);
	assert_int_equal(a->records[0].ip.family, IP_V4);
	assert_memory_equal(a->records[0].ip.bytes, "\xc0\0\2\1", 4);
	dns_answer_unref(&a);
	a = ask(r, "example.org", DNS_AAAA);
	assert_int_equal(a->records[0].ip.family, IP_V6);
	assert_int_equal(a->records[0].ip.bytes[15], 1);
	dns_answer_unref(&a);
	resolver_free(&r);
}

static void
errors_name_the_line(void **state)
{
	static const struct {
		const char *text, *want;
	} rows[] = {
		{ "a A 192.0.2.1\nb", "zone:2: the type is missing" },
		{ "b TXTX y", "zone:1: unknown record type" },
		{ "b TXT \"open", "zone:1: the closing quote is missing" },
		{ "b TXT \"x\\25\"", "zone:1: bad escape after \"\\\"" },
		{ "b TXT \"x\\256\"", "zone:1: bad escape after \"\\\"" },
		{ "b TXT x\\", "zone:1: bad escape after \"\\\"" },
		{ "b A 192.0.2", "zone:1: not an IP address" },
		{ "b A", "zone:1: not an IP address" },
		{ "b A ::1",
		    "zone:1: address of the wrong family for its type" },
		{ "b AAAA 192.0.2.1",
		    "zone:1: address of the wrong family for its type" },
		{ "b MX mx.example",
		    "zone:1: MX needs a preference (0-65535) and a host" },
		{ "b MX 65536 mx.example",
		    "zone:1: MX needs a preference (0-65535) and a host" },
		{ "b MX 1 mx.example x",
		    "zone:1: there is something behind the data" },
		{ "b PTR", "zone:1: the name it points to is missing" },
		{ "b PTR a b", "zone:1: there is something behind the data" },
		{ "b TXT !WHAT",
		    "zone:1: after \"!\" comes SERVFAIL, NXDOMAIN, NODATA or "
		    "TIMEOUT" },
		{ "b * 192.0.2.1",
		    "zone:1: type * takes only !SERVFAIL and the like" },
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct resolver *r = NULL;
		struct err err = { "" };
		assert_int_equal(zone_from_text(str_c(rows[i].text), "zone",
				     false, &err, &r),
		    RES_SYNTAX);
		assert_string_equal(err.text, rows[i].want);
		assert_null(r);
	}
}

/* A TXT of exactly DNS_MAX_TXT bytes is read, one more is not. */
static void
txt_limit(void **state)
{
	for (size_t size = DNS_MAX_TXT - 1; size <= DNS_MAX_TXT + 1; size++) {
		char *text = malloc(size + 10);
		assert_non_null(text);
		memcpy(text, "big TXT ", 8);
		memset(text + 8, 'x', size);
		struct resolver *r = NULL;
		enum res res = zone_from_text(
		    str_of(text, size + 8), "zone", false, NULL, &r);
		free(text);
		assert_int_equal(res, size > DNS_MAX_TXT ? RES_SYNTAX : RES_OK);
		if (res != RES_OK)
			continue;
		struct dns_answer *a = ask(r, "big", DNS_TXT);
		assert_int_equal(a->records[0].data.len, size);
		dns_answer_unref(&a);
		resolver_free(&r);
	}
}

static void
record_limit(void **state)
{
	for (size_t n = DNS_MAX_RECORDS; n <= DNS_MAX_RECORDS + 1; n++) {
		struct buf b;
		buf_init(&b, 1 << 20);
		for (size_t i = 0; i < n; i++)
			buf_addf(&b, "many A 10.0.%zu.%zu\n", i / 256, i % 256);
		struct resolver *r = NULL;
		assert_ok(zone_from_text(buf_str(&b), "zone", false, NULL, &r));
		buf_done(&b);
		struct dns_answer *a = ask(r, "many", DNS_A);
		assert_int_equal(
		    a->status, n > DNS_MAX_RECORDS ? DNS_SERVFAIL : DNS_OK);
		if (a->status == DNS_OK) {
			assert_int_equal(a->count, n);
			/* in the order of the file */
			assert_int_equal(a->records[257].ip.bytes[2], 1);
			assert_int_equal(a->records[257].ip.bytes[3], 1);
		}
		dns_answer_unref(&a);
		resolver_free(&r);
	}
}

static void
timeout_waits(void **state)
{
	struct resolver *r = open_text(zone_text, true);
	struct dns_query *q = NULL;
	assert_ok(r->start(r, STR("slow.example"), DNS_A, &q));
	int64_t deadline = clock_mono_us() + 20000;
	assert_null(r->wait(r, q, deadline));
	assert_true(clock_mono_us() >= deadline);
	assert_null(r->wait(r, q, 0));
	r->release(r, &q);
	struct dns_answer *a = ask(r, "slow.example", DNS_TXT);
	assert_int_equal(a->status, DNS_OK);
	dns_answer_unref(&a);
	resolver_free(&r);
}

static void
files(void **state)
{
	char path[] = "zone-XXXXXX";
	int fd = mkstemp(path);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, zone_text, sizeof(zone_text) - 1),
	    (ssize_t)sizeof(zone_text) - 1);
	close(fd);
	struct resolver *r = NULL;
	struct err err = { "" };
	assert_ok(zone_open(path, false, &err, &r));
	unlink(path);
	struct dns_answer *a = ask(r, "example.org", DNS_TXT);
	assert_int_equal(a->count, 2);
	dns_answer_unref(&a);
	resolver_free(&r);
	assert_int_equal(zone_open(path, false, &err, &r), RES_IO);
	assert_non_null(strstr(err.text, path));
	assert_non_null(strstr(err.text, "No such file"));
	err_clear(&err);
	assert_int_equal(zone_open("/", false, &err, &r), RES_IO);
	assert_non_null(strstr(err.text, "directory"));
}

static void
empty_zone(void **state)
{
	struct resolver *r = open_text("", false);
	struct dns_answer *a = ask(r, "example.org", DNS_TXT);
	assert_int_equal(a->status, DNS_NXDOMAIN);
	dns_answer_unref(&a);
	resolver_free(&r);
	resolver_free(&r);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(answers),
		cmocka_unit_test(record_data),
		cmocka_unit_test(errors_name_the_line),
		cmocka_unit_test(txt_limit),
		cmocka_unit_test(record_limit),
		cmocka_unit_test(timeout_waits),
		cmocka_unit_test(files),
		cmocka_unit_test(empty_zone),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
