#include "tests/hn_test.h"

#include <stdio.h>

#include "base/buf.h"
#include "base/codec.h"
#include "dns/wire.h"

/* Messages are written in hex. */
#define Q_TXT "016101620000100001" /* a.b TXT IN; the name is at 12 (c00c) */
#define Q_A   "016101620000010001"
#define Q_MX  "0161016200000f0001"

static struct str
message(struct buf *b, const char *flags, unsigned an, unsigned ns,
    const char *question, const char *records)
{
	buf_init(b, 1 << 20);
	char counts[32];
	snprintf(counts, sizeof(counts), "0001%04x%04x0000", an, ns);
	assert_ok(hex_decode(STR("1234"), b));
	assert_ok(hex_decode(str_c(flags), b));
	assert_ok(hex_decode(str_c(counts), b));
	assert_ok(hex_decode(str_c(question), b));
	assert_ok(hex_decode(str_c(records), b));
	return buf_str(b);
}

static const char soa[] = "0162000006000100000e10" /* b SOA, TTL 3600 */
			  "001600000000000100000001000000010000000100000"
			  "03c"; /* MINIMUM 60 */

static void
table(void **state)
{
	static const struct {
		const char *what, *flags;
		unsigned an, ns;
		enum dns_type type;
		const char *question, *records;
		enum dns_status status;
		uint32_t ttl;
		size_t count;
		const char *data, *detail;
	} rows[] = {
		{ "txt", "8180", 1, 0, DNS_TXT, Q_TXT,
		    "c00c001000010000012c000703616263026465", DNS_OK, 300, 1,
		    "abcde", NULL },
		{ "empty string", "8180", 1, 0, DNS_TXT, Q_TXT,
		    "c00c001000010000012c000100", DNS_OK, 300, 1, "", NULL },
		{ "other case", "8180", 1, 0, DNS_TXT, "014101420000100001",
		    "0141016200001000010000000500020161", DNS_OK, 5, 1, "a",
		    NULL },
		{ "smallest TTL", "8180", 2, 0, DNS_TXT, Q_TXT,
		    "c00c00100001000000640002 0161"
		    "c00c001000010000000a00020162",
		    DNS_OK, 10, 2, "a", NULL },
		{ "negative TTL is 0", "8180", 1, 0, DNS_TXT, Q_TXT,
		    "c00c001000018000000000020161", DNS_OK, 0, 1, "a", NULL },
		{ "long TTL is cut", "8180", 1, 0, DNS_TXT, Q_TXT,
		    "c00c001000017fffffff00020161", DNS_OK, WIRE_MAX_TTL, 1,
		    "a", NULL },
		{ "a", "8180", 1, 0, DNS_A, Q_A,
		    "c00c000100010000012c0004c0000201", DNS_OK, 300, 1, "",
		    NULL },
		{ "mx", "8180", 1, 0, DNS_MX, Q_MX,
		    "c00c000f00010000012c0007000a024d78c00c", DNS_OK, 300, 1,
		    "mx.a.b", NULL },
		{ "null mx", "8180", 1, 0, DNS_MX, Q_MX,
		    "c00c000f00010000012c0003000000", DNS_OK, 300, 1, "",
		    NULL },
		{ "odd bytes in a name", "8180", 1, 0, DNS_MX, Q_MX,
		    "c00c000f00010000012c0008000a04612e5c0000", DNS_OK, 300, 1,
		    "a\\046\\092\\000", NULL },
		{ "cname", "8180", 2, 0, DNS_A, Q_A,
		    "c00c000500010000003c00020163" /* broken: see below */,
		    DNS_SERVFAIL, 0, 0, NULL, "malformed answer" },
		{ "cname to c", "8180", 2, 0, DNS_A, Q_A,
		    "c00c000500010000003c0003016300"
		    "0163000001000100000384 0004c0000201",
		    DNS_OK, 60, 1, "", NULL },
		{ "cname behind its target", "8180", 2, 0, DNS_A, Q_A,
		    "01630000010001000003840004c0000201"
		    "c00c000500010000003c0003016300",
		    DNS_OK, 60, 1, "", NULL },
		{ "cname to nothing", "8183", 1, 1, DNS_A, Q_A, NULL,
		    DNS_NXDOMAIN, 30, 0, NULL, NULL },
		{ "two cnames", "8180", 2, 0, DNS_A, Q_A,
		    "c00c000500010000003c0003016300"
		    "c00c000500010000003c0003016400",
		    DNS_SERVFAIL, 0, 0, NULL, "malformed answer" },
		{ "cname loop", "8180", 2, 0, DNS_A, Q_A,
		    "c00c000500010000003c0003016300"
		    "0163000005000100000384 0002c00c",
		    DNS_SERVFAIL, 0, 0, NULL, "CNAME loop or too many CNAMEs" },
		{ "nodata", "8180", 0, 1, DNS_A, Q_A, soa, DNS_NODATA, 60, 0,
		    NULL, NULL },
		{ "nxdomain", "8183", 0, 1, DNS_A, Q_A, soa, DNS_NXDOMAIN, 60,
		    0, NULL, NULL },
		{ "nodata without soa", "8180", 0, 0, DNS_A, Q_A, "",
		    DNS_NODATA, WIRE_BARE_TTL, 0, NULL, NULL },
		{ "nxdomain with data", "8183", 1, 0, DNS_A, Q_A,
		    "c00c000100010000012c0004c0000201", DNS_SERVFAIL, 0, 0,
		    NULL, "malformed answer" },
		{ "servfail", "8182", 0, 0, DNS_A, Q_A, "", DNS_SERVFAIL, 0, 0,
		    NULL, "SERVFAIL" },
		{ "refused", "8185", 0, 0, DNS_A, Q_A, "", DNS_SERVFAIL, 0, 0,
		    NULL, "REFUSED" },
		{ "yxdomain", "8186", 0, 0, DNS_A, Q_A, "", DNS_SERVFAIL, 0, 0,
		    NULL, "unknown response code" },
		{ "a query", "0100", 0, 0, DNS_A, Q_A, "", DNS_SERVFAIL, 0, 0,
		    NULL, "malformed answer" },
		{ "truncated", "8380", 0, 0, DNS_A, Q_A, "", DNS_SERVFAIL, 0, 0,
		    NULL, "truncated answer" },
		{ "other name", "8180", 0, 0, DNS_A, "016101630000010001", "",
		    DNS_SERVFAIL, 0, 0, NULL, "answer to another question" },
		{ "other type", "8180", 0, 0, DNS_A, Q_TXT, "", DNS_SERVFAIL, 0,
		    0, NULL, "answer to another question" },
		{ "other class", "8180", 0, 0, DNS_A, "016101620000010003", "",
		    DNS_SERVFAIL, 0, 0, NULL, "answer to another question" },
		{ "other owner", "8180", 1, 0, DNS_A, Q_A,
		    "01630000010001000003840004c0000201", DNS_SERVFAIL, 0, 0,
		    NULL, "answer for another name" },
		{ "other type in the answer", "8180", 1, 1, DNS_A, Q_A, NULL,
		    DNS_NODATA, 60, 0, NULL, NULL },
		{ "A of five bytes", "8180", 1, 0, DNS_A, Q_A,
		    "c00c000100010000012c0005c000020101", DNS_SERVFAIL, 0, 0,
		    NULL, "malformed answer" },
		{ "TXT without a string", "8180", 1, 0, DNS_TXT, Q_TXT,
		    "c00c001000010000012c0000", DNS_SERVFAIL, 0, 0, NULL,
		    "malformed answer" },
		{ "string beyond the data", "8180", 1, 0, DNS_TXT, Q_TXT,
		    "c00c001000010000012c00020361", DNS_SERVFAIL, 0, 0, NULL,
		    "malformed answer" },
		{ "data beyond the message", "8180", 1, 0, DNS_TXT, Q_TXT,
		    "c00c001000010000012c00050161", DNS_SERVFAIL, 0, 0, NULL,
		    "malformed answer" },
		{ "fewer records than said", "8180", 2, 0, DNS_A, Q_A,
		    "c00c000100010000012c0004c0000201", DNS_SERVFAIL, 0, 0,
		    NULL, "malformed answer" },
		{ "something behind the MX", "8180", 1, 0, DNS_MX, Q_MX,
		    "c00c000f00010000012c0005000ac00c00", DNS_SERVFAIL, 0, 0,
		    NULL, "malformed answer" },
		{ "pointer to itself", "8180", 1, 0, DNS_A, Q_A,
		    "c015000100010000012c0004c0000201", DNS_SERVFAIL, 0, 0,
		    NULL, "malformed answer" },
		{ "pointer forward", "8180", 1, 0, DNS_A, Q_A,
		    "c020000100010000012c0004c0000201", DNS_SERVFAIL, 0, 0,
		    NULL, "malformed answer" },
		{ "label type 01", "8180", 1, 0, DNS_A, Q_A,
		    "410001000100 00012c0004c0000201", DNS_SERVFAIL, 0, 0, NULL,
		    "malformed answer" },
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char records[512] = "";
		const char *from = rows[i].records;
		if (from == NULL) /* a CNAME to c, or of c, and a SOA of 30 */
			from = rows[i].status == DNS_NXDOMAIN
			    ? "c00c000500010000003c0003016300"
			      "01620000060001000000 1e"
			      "0016000000000001000000010000000100000001000"
			      "0003c"
			    : "c00c00020001000003840003016e00"
			      "0162000006000100000e10"
			      "0016000000000001000000010000000100000001000"
			      "0003c";
		for (size_t n = 0; *from != '\0'; from++) {
			if (*from != ' ')
				records[n++] = *from;
		}
		struct buf b;
		struct str m = message(&b, rows[i].flags, rows[i].an,
		    rows[i].ns, rows[i].question, records);
		struct dns_answer *a =
		    wire_answer(m.ptr, m.len, STR("a.b"), rows[i].type);
		buf_done(&b);
		assert_non_null(a);
		if (a->status != rows[i].status || a->ttl != rows[i].ttl ||
		    a->count != rows[i].count)
			fail_msg("%s: %s (%s), %zu records, ttl %u",
			    rows[i].what, dns_status_text(a->status),
			    a->detail ? a->detail : "", a->count, a->ttl);
		assert_str(a->name, "a.b");
		if (rows[i].data != NULL)
			assert_str(a->records[0].data, rows[i].data);
		if (rows[i].detail != NULL)
			assert_string_equal(a->detail, rows[i].detail);
		else
			assert_null(a->detail);
		dns_answer_unref(&a);
	}
}

static void
addresses(void **state)
{
	struct buf b;
	struct str m =
	    message(&b, "8180", 1, 0, Q_A, "c00c000100010000012c0004c0000201");
	struct dns_answer *a = wire_answer(m.ptr, m.len, STR("a.b"), DNS_A);
	assert_int_equal(a->records[0].ip.family, IP_V4);
	assert_memory_equal(a->records[0].ip.bytes, "\xc0\0\2\1", 4);
	dns_answer_unref(&a);
	buf_done(&b);
	m = message(&b, "8180", 1, 0, "0161016200001c0001",
	    "c00c001c00010000012c001020010db8000000000000000000000001");
	a = wire_answer(m.ptr, m.len, STR("a.b"), DNS_AAAA);
	assert_int_equal(a->records[0].ip.family, IP_V6);
	assert_int_equal(a->records[0].ip.bytes[15], 1);
	dns_answer_unref(&a);
	buf_done(&b);
}

/* Cut anywhere it is malformed, and nothing beyond the end is read. */
static void
cut_anywhere(void **state)
{
	struct buf b;
	struct str m = message(&b, "8180", 2, 0, Q_MX,
	    "c00c000f00010000012c0007000a026d78c00c"
	    "c00c000f00010000012c0003000000");
	for (size_t n = 0; n <= m.len; n++) {
		char *copy = malloc(n + 1);
		memcpy(copy, m.ptr, n);
		struct dns_answer *a = wire_answer(copy, n, STR("a.b"), DNS_MX);
		assert_int_equal(a->status, n < m.len ? DNS_SERVFAIL : DNS_OK);
		dns_answer_unref(&a);
		free(copy);
	}
	buf_done(&b);
}

static void
many_records(void **state)
{
	for (unsigned n = DNS_MAX_RECORDS; n <= DNS_MAX_RECORDS + 1; n++) {
		struct buf b;
		struct str m = message(&b, "8180", n, 0, Q_A, "");
		for (unsigned i = 0; i < n; i++)
			assert_ok(hex_decode(
			    STR("c00c000100010000012c0004c0000201"), &b));
		m = buf_str(&b);
		struct dns_answer *a =
		    wire_answer(m.ptr, m.len, STR("a.b"), DNS_A);
		assert_int_equal(
		    a->status, n > DNS_MAX_RECORDS ? DNS_SERVFAIL : DNS_OK);
		assert_int_equal(
		    a->count, n > DNS_MAX_RECORDS ? 0 : DNS_MAX_RECORDS);
		dns_answer_unref(&a);
		buf_done(&b);
	}
}

/* A name of 255 octets is the longest there is. */
static void
long_names(void **state)
{
	char name[254];
	memset(name, 'a', sizeof(name));
	name[63] = name[127] = name[191] = '.';
	for (size_t extra = 0; extra <= 1; extra++) {
		struct buf b;
		buf_init(&b, 4096);
		/* 63 + 63 + 63 + 61: with lengths and root 255 */
		size_t last = 61 + extra;
		assert_ok(hex_decode(STR("123481800001000000000000"), &b));
		for (int i = 0; i < 3; i++) {
			buf_add_char(&b, 63);
			buf_add(&b, name, 63);
		}
		buf_add_char(&b, (char)last);
		buf_add(&b, name, last < 63 ? last : 63);
		assert_ok(hex_decode(STR("0000010001"), &b));
		struct dns_answer *a =
		    wire_answer(b.ptr, b.len, str_of(name, 253), DNS_A);
		assert_int_equal(a->status, extra ? DNS_SERVFAIL : DNS_NODATA);
		if (extra)
			assert_string_equal(a->detail, "malformed answer");
		dns_answer_unref(&a);
		buf_done(&b);
	}
	struct dns_answer *a = wire_answer("", 0, str_of(name, 254), DNS_A);
	assert_string_equal(a->detail, "not a domain name");
	dns_answer_unref(&a);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(table),
		cmocka_unit_test(addresses),
		cmocka_unit_test(cut_anywhere),
		cmocka_unit_test(many_records),
		cmocka_unit_test(long_names),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
