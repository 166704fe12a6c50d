/* Rows to reports: counting, the XML, what hostile rows cannot do, the mail. */
#include "flow/aggregate.h"

#include <stdio.h>

#include "flow/aggregate_mail.h"
#include "flow/aggregate_row.h"
#include "hn_test.h"

static struct arena *arena;
static struct buf out;

static int
setup(void **state)
{
	(void)state;
	arena = arena_new(AGGREGATE_MEMORY);
	buf_init(&out, AGGREGATE_MAX_XML);
	return arena == NULL;
}

static int
teardown(void **state)
{
	(void)state;
	buf_done(&out);
	arena_free(&arena);
	return 0;
}

struct row {
	const char *ip, *from, *sender, *disposition, *comment, *selector, *p;
};

static void
add_row(struct aggregate *g, const struct row *w)
{
	struct record policy, record, part, row;
	record_init(&policy, ROW_MAX);
	record_init(&record, ROW_MAX);
	record_init(&part, ROW_MAX);
	record_init(&row, ROW_MAX);
	record_add(&policy, ROW_DOMAIN, STR("example.com"));
	record_add(&policy, ROW_P, str_c(w->p != NULL ? w->p : "reject"));
	record_add(&policy, ROW_SP, STR("none"));
	record_add(&policy, ROW_NP, STR("quarantine"));
	record_add(&policy, ROW_ADKIM, STR("s"));
	record_add(&policy, ROW_ASPF, STR("r"));
	record_add(&policy, ROW_FO, STR("1:d"));
	record_add(&policy, ROW_TESTING, STR("n"));
	record_add(&policy, ROW_METHOD, STR("psl"));
	record_add(&policy, ROW_RUA, STR("mailto:a@example.com"));
	record_add(&policy, ROW_RUA, STR("mailto:b@example.net"));
	record_add(&record, ROW_SOURCE_IP, str_c(w->ip));
	record_add(&record, ROW_HEADER_FROM,
	    str_c(w->from != NULL ? w->from : "example.com"));
	record_add(&record, ROW_ENVELOPE_FROM, str_c(w->sender));
	record_add(&record, ROW_DISPOSITION,
	    str_c(w->disposition != NULL ? w->disposition : "none"));
	record_add(&record, ROW_DKIM_ALIGNED, STR("fail"));
	record_add(&record, ROW_SPF_ALIGNED, STR("pass"));
	if (w->comment != NULL) {
		record_add(&part, ROW_REASON_TYPE, STR("local_policy"));
		record_add(&part, ROW_REASON_COMMENT, str_c(w->comment));
		record_add_record(&record, ROW_REASON, &part);
	}
	record_done(&part);
	record_init(&part, ROW_MAX);
	record_add(&part, ROW_AUTH_DOMAIN, STR("example.com"));
	record_add(&part, ROW_AUTH_SELECTOR, str_c(w->selector));
	record_add(&part, ROW_AUTH_RESULT, STR("fail"));
	record_add_record(&record, ROW_DKIM, &part);
	record_add_record(&row, ROW_POLICY, &policy);
	record_add_record(&row, ROW_RECORD, &record);
	assert_int_equal(row.buf.error, RES_OK);
	aggregate_add(g, buf_str(&row.buf));
	record_done(&policy);
	record_done(&record);
	record_done(&part);
	record_done(&row);
}

static const struct aggregate_facts facts = {
	.org_name = { "R & D", 5 },
	.email = { "r@test.example", 14 },
	.report_id = { "abc123", 6 },
	.begin_s = 1699920000,
	.end_s = 1700006399,
};

static struct str
xml_of(const struct aggregate *g)
{
	buf_reset(&out);
	assert_ok(aggregate_xml(g, &facts, AGGREGATE_MAX_XML, &out));
	return buf_str(&out);
}

static unsigned
occurs(struct str s, const char *needle)
{
	unsigned n = 0;
	size_t at;
	while ((at = str_find(s, str_c(needle))) != SIZE_MAX) {
		s = str_skip(s, at + 1);
		n++;
	}
	return n;
}

static void
equal_messages_are_counted(void **state)
{
	struct aggregate *g = aggregate_new(arena);
	static const struct row a = { .ip = "192.0.2.1", .selector = "s" };
	static const struct row b = { .ip = "192.0.2.2", .selector = "s" };
	static const struct row c = { .ip = "192.0.2.1", .selector = "t" };
	add_row(g, &a);
	for (int i = 0; i < 3; i++)
		add_row(g, &b);
	add_row(g, &a);
	add_row(g, &c);
	struct aggregate_counts n = aggregate_count(g);
	assert_int_equal(n.messages, 6);
	assert_int_equal(n.records, 3);
	assert_int_equal(n.damaged + n.left_out, 0);
	struct str xml = xml_of(g);
	assert_int_equal(occurs(xml, "<record>"), 3);
	/* the most frequent stands first */
	size_t three = str_find(xml, STR("<count>3</count>"));
	size_t two = str_find(xml, STR("<count>2</count>"));
	size_t one = str_find(xml, STR("<count>1</count>"));
	assert_true(three < two && two < one && one != SIZE_MAX);
	(void)state;
}

static void
elements_stand_in_the_order_of_the_schema(void **state)
{
	static const char *const order[] = { "<?xml version=\"1.0\"",
		"<feedback xmlns=\"urn:ietf:params:xml:ns:dmarc-2.0\">",
		"<version>1.0</version>", "<report_metadata>",
		"<org_name>R &amp; D</org_name>",
		"<report_id>abc123</report_id>", "<begin>1699920000</begin>",
		"<end>1700006399</end>", "</report_metadata>",
		"<policy_published>", "<domain>example.com</domain>",
		"<discovery_method>psl</discovery_method>", "<p>reject</p>",
		"<sp>none</sp>", "<np>quarantine</np>", "<adkim>s</adkim>",
		"<aspf>r</aspf>", "<fo>1:d</fo>", "<testing>n</testing>",
		"</policy_published>", "<record>", "<row>",
		"<source_ip>2001:db8::1</source_ip>", "<count>1</count>",
		"<policy_evaluated>", "<disposition>none</disposition>",
		"<dkim>fail</dkim>", "<spf>pass</spf>",
		("<reason><type>local_policy</type><comment>why</comment>"
		 "</reason></policy_evaluated></row>"),
		("<identifiers><header_from>example.com</header_from>"
		 "<envelope_from></envelope_from></identifiers>"),
		("<auth_results><dkim><domain>example.com</domain>"
		 "<selector>s</selector><result>fail</result></dkim>"
		 "</auth_results>"),
		"</record>", "</feedback>" };
	struct aggregate *g = aggregate_new(arena);
	struct row a = { .ip = "2001:db8::1", .sender = "", .comment = "why",
		.selector = "s" };
	add_row(g, &a);
	struct str rest = xml_of(g);
	for (size_t i = 0; i < sizeof order / sizeof order[0]; i++) {
		size_t at = str_find(rest, str_c(order[i]));
		if (at == SIZE_MAX)
			fail_msg("%s is missing or out of order", order[i]);
		rest = str_skip(rest, at + strlen(order[i]));
	}
	(void)state;
}

static void
hostile_texts_stay_texts(void **state)
{
	struct aggregate *g = aggregate_new(arena);
	struct row a = { .ip = "192.0.2.1",
		.from = "<x>&\"'\x01\x02]]>",
		.sender = "\xff\xfe" "a\xc3\xa9\xed\xa0\x80\xef\xbf\xbe",
		.disposition = "destroy",
		.comment = "a\r\nb\tc\x7f\xc2\x80",
		.selector = "</selector><result>pass</result>",
		.p = "<!ENTITY x>" };
	add_row(g, &a);
	struct str xml = xml_of(g);
	assert_true(str_find(xml, STR("<header_from>&lt;x&gt;&amp;&quot;']]&gt;"
				      "</header_from>")) != SIZE_MAX);
	/* what is no UTF-8, and what XML cannot hold, is dropped */
	assert_true(str_find(xml, STR("<envelope_from>a\xc3\xa9"
				      "</envelope_from>")) != SIZE_MAX);
	assert_true(str_find(xml, STR("<comment>a  b c</comment>")) != SIZE_MAX);
	assert_int_equal(occurs(xml, "<selector>"), 1);
	assert_true(
	    str_find(xml, STR("<disposition>none</disposition>")) != SIZE_MAX);
	assert_true(str_find(xml, STR("<p>none</p>")) != SIZE_MAX);
	buf_reset(&out);
	assert_ok(aggregate_preview(g, &facts, &out));
	for (size_t i = 0; i < out.len; i++)
		assert_true(out.ptr[i] == '\n' ||
		    (out.ptr[i] >= ' ' && out.ptr[i] <= '~'));
	(void)state;
}

static void
damaged_rows_are_left_out(void **state)
{
	struct aggregate *g = aggregate_new(arena);
	static const struct row a = { .ip = "192.0.2.1", .selector = "s" };
	aggregate_add(g, STR_EMPTY);
	aggregate_add(g, STR("row"));
	aggregate_add(g, STR("\1\1\0\377\377\377\377"));
	aggregate_add(g, STR("\1\1\0\0\0\0\0"));
	assert_int_equal(aggregate_count(g).damaged, 4);
	assert_int_equal(
	    aggregate_xml(g, &facts, AGGREGATE_MAX_XML, &out), RES_NOTFOUND);
	assert_int_equal(aggregate_preview(g, &facts, &out), RES_NOTFOUND);
	add_row(g, &a);
	assert_int_equal(aggregate_count(g).messages, 1);
	(void)xml_of(g);
	(void)state;
}

static void
the_newest_policy_is_told(void **state)
{
	struct aggregate *g = aggregate_new(arena);
	struct row a = { .ip = "192.0.2.1", .selector = "s" };
	struct str uris[AGGREGATE_MAX_URIS];
	add_row(g, &a);
	a.p = "quarantine";
	add_row(g, &a);
	add_row(g, &a);
	/* two records: what was done must be explained by the policy */
	assert_int_equal(aggregate_count(g).records, 2);
	struct str xml = xml_of(g);
	assert_true(str_find(xml, STR("<p>quarantine</p>")) != SIZE_MAX);
	assert_int_equal(occurs(xml, "<reason>"), 1);
	assert_true(str_find(xml, STR("<count>1</count><policy_evaluated>"
	    "<disposition>none</disposition><dkim>fail</dkim><spf>pass</spf>"
	    "<reason><type>other</type><comment>judged by the policy of that "
	    "time, p=reject sp=none np=quarantine adkim=s aspf=r t=n</comment>"
	    "</reason>")) != SIZE_MAX);
	buf_reset(&out);
	assert_ok(aggregate_preview(g, &facts, &out));
	assert_int_equal(occurs(buf_str(&out), "by the policy of that time, "
	    "p=reject sp=none"), 1);
	/* back to the first one: the others are the earlier ones now */
	a.p = "reject";
	add_row(g, &a);
	assert_int_equal(aggregate_count(g).records, 2);
	assert_true(str_find(xml_of(g), STR("time, p=quarantine")) != SIZE_MAX);
	assert_str(aggregate_domain(g), "example.com");
	assert_int_equal(aggregate_rua(g, uris, AGGREGATE_MAX_URIS), 2);
	assert_str(uris[1], "mailto:b@example.net");
	assert_int_equal(aggregate_rua(g, uris, 1), 1);
	(void)state;
}

static void
what_does_not_fit_is_told(void **state)
{
	struct aggregate *g = aggregate_new(arena);
	size_t max = 128 * 1024;
	char ip[32];
	for (unsigned i = 0; i < 1000; i++) {
		struct row a = { .ip = ip, .selector = "s" };
		snprintf(ip, sizeof ip, "10.0.%u.%u", i / 256, i % 256);
		add_row(g, &a);
	}
	assert_ok(aggregate_xml(g, &facts, max, &out));
	assert_true(out.len <= max);
	unsigned records = occurs(buf_str(&out), "<record>");
	assert_true(records > 0 && records < 1000);
	char text[80];
	snprintf(text, sizeof text, "<error>%u messages are not in this report",
	    1000 - records);
	assert_int_equal(occurs(buf_str(&out), text), 1);
	assert_true(str_ends(buf_str(&out), STR("</feedback>\n")));
	buf_reset(&out);
	assert_int_equal(aggregate_xml(g, &facts, 1000, &out), RES_LIMIT);
	(void)state;
}

static void
there_is_a_maximum_of_records(void **state)
{
	struct aggregate *g = aggregate_new(arena);
	char ip[32];
	for (unsigned i = 0; i < AGGREGATE_MAX_RECORDS + 3; i++) {
		struct row a = { .ip = ip, .selector = "s" };
		snprintf(ip, sizeof ip, "10.%u.%u.%u", i >> 16, i >> 8 & 255,
		    i & 255);
		add_row(g, &a);
		if (i == 0)
			add_row(g, &a);
	}
	struct aggregate_counts n = aggregate_count(g);
	assert_int_equal(n.records, AGGREGATE_MAX_RECORDS);
	assert_int_equal(n.messages, AGGREGATE_MAX_RECORDS + 4);
	assert_int_equal(n.left_out, 3);
	(void)state;
}

static void
a_report_becomes_a_mail(void **state)
{
	struct str id = aggregate_report_id(
	    arena, STR("test.example"), STR("example.com"), 1699920000);
	struct str again = aggregate_report_id(
	    arena, STR("test.example"), STR("example.com"), 1699920000);
	struct str other = aggregate_report_id(
	    arena, STR("test.example"), STR("example.com"), 1700006400);
	assert_int_equal(id.len, 20);
	assert_true(str_eq(id, again));
	assert_false(str_eq(id, other));
	assert_str(aggregate_file_name(arena, STR("test.example"),
		       STR("example.com"), 1699920000, 1700006399, STR("id")),
	    "test.example!example.com!1699920000!1700006399!id.xml.gz");
	struct aggregate_mail m = { .from = STR("dmarc@test.example"),
		.to = STR("a@example.com"),
		.org = STR("A \"B\""),
		.submitter = STR("test.example"),
		.domain = STR("example.com"),
		.report_id = STR("id"),
		.file_name = STR("f.xml.gz"),
		.token = STR("tok"),
		.begin_s = 1699920000,
		.now_s = 1700009100,
		.messages = 7,
		.gzip = STR("0123456789012345678901234567890123456789012345678"
			    "9012345678901234567890") };
	buf_reset(&out);
	assert_ok(aggregate_mail_write(&m, &out));
	static const char *const parts[] = {
		"From: \"A \\\"B\\\"\"\n <dmarc@test.example>\n",
		"To: <a@example.com>\n",
		("Subject: Report Domain: example.com\n"
		 " Submitter: test.example\n Report-ID: <id>\n"),
		"Date: Wed, 15 Nov 2023 00:45:00 +0000\n",
		"Message-ID: <id.tok@test.example>\n",
		"Auto-Submitted: auto-generated\n",
		"on 2023-11-14 (UTC): 7 messages",
		"Content-Type: application/gzip;\n name=\"f.xml.gz\"\n",
	};
	for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
		if (str_find(buf_str(&out), str_c(parts[i])) == SIZE_MAX)
			fail_msg("%s is missing:\n%.*s", parts[i],
			    (int)out.len, out.ptr);
	/* no name that would need encoding */
	m.org = STR("caf\xc3\xa9");
	buf_reset(&out);
	assert_ok(aggregate_mail_write(&m, &out));
	assert_true(str_starts(
	    buf_str(&out), STR("From: <dmarc@test.example>\n")));
	(void)state;
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
		    equal_messages_are_counted, setup, teardown),
		cmocka_unit_test_setup_teardown(
		    elements_stand_in_the_order_of_the_schema, setup, teardown),
		cmocka_unit_test_setup_teardown(
		    hostile_texts_stay_texts, setup, teardown),
		cmocka_unit_test_setup_teardown(
		    damaged_rows_are_left_out, setup, teardown),
		cmocka_unit_test_setup_teardown(
		    the_newest_policy_is_told, setup, teardown),
		cmocka_unit_test_setup_teardown(
		    what_does_not_fit_is_told, setup, teardown),
		cmocka_unit_test_setup_teardown(
		    there_is_a_maximum_of_records, setup, teardown),
		cmocka_unit_test_setup_teardown(
		    a_report_becomes_a_mail, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
