/* What `hanaper explain` says of each kind of decision: messages through a
 * session, their trace and evidence rendered. */
#include "flow/explain.h"

#include <stdio.h>

#include "flow/trace.h"
#include "flow_rig.h"

#define ZONE                                                                   \
	"sender.example TXT \"v=spf1 ip4:192.0.2.25 -all\"\n"                  \
	"_dmarc.sender.example TXT \"v=DMARC1; p=reject; sp=none\"\n"          \
	"lists.example TXT \"v=spf1 ip4:203.0.113.5 -all\"\n"                  \
	"_dmarc.lists.example TXT \"v=DMARC1; p=none\"\n"                      \
	"_dmarc.test.example TXT \"v=DMARC1; p=quarantine; t=y\"\n"            \
	"_dmarc.lost.example TXT !SERVFAIL\n"                                  \
	"lost.example TXT !SERVFAIL\n"
#define NEWS "From: news@sender.example\r\n"
#define OVERRIDE                                                               \
	"dmarc = reject\n[override partner]\nrecipient = ann@ours.example\n"   \
	"dmarc = note\n"

static const struct {
	const char *config, *ip, *from, *rcpt, *header;
	const char *said[5];
} rows[] = {
	{ "dmarc = reject\n", "192.0.2.25", "<b@sender.example>", NULL, NEWS,
	    { "  It was delivered: DMARC passes\n",
		"change\n  Nothing.\n",
		"SPF of MAIL FROM: pass; domain sender.example, decided by "
		"ip4:192.0.2.25",
		"  _dmarc.sender.example TXT OK\n      v=DMARC1; p=reject" } },
	{ "dmarc = reject\n", "203.0.113.9", "<b@sender.example>", NULL, NEWS,
	    { "  It was refused: DMARC fails, and _dmarc.sender.example asks "
	      "for reject (tag p)\n",
		"  The SPF record of sender.example would have to name "
		"203.0.113.9, and ends at -all\n",
		"  To pass: a valid signature with d= of sender.example",
		"  To let such mail in: an [override]" } },
	/* less than the domain asks for */
	{ "", "203.0.113.9", "<b@sender.example>", NULL, NEWS,
	    { "It was delivered: DMARC fails, and _dmarc.sender.example asks "
	      "for reject (tag p); dmarc = note\n",
		"  The reason: dmarc = note (in reports: local_policy)\n",
		"  To act on such mail: dmarc = quarantine or reject\n" } },
	{ "dmarc = reject\n", "203.0.113.5", "<l@lists.example>", NULL,
	    NEWS "List-Id: <l.lists.example>\r\n",
	    { "  It was marked as quarantined, where the settings alone would "
	      "have had it refused: DMARC fails",
		"  The reason: sent by a mailing list (in reports: "
		"mailing_list)\n",
		"  SPF passes for lists.example, but that is not the author's "
		"domain" } },
	{ "dmarc = shadow reject\n", "203.0.113.9", "<>", NULL, NEWS,
	    { "  It was delivered, where the settings alone would have had it "
	      "refused",
		"  The reason: shadow (in reports: local_policy)\n",
		"  Without shadow it would have been refused\n" } },
	{ OVERRIDE, "203.0.113.9", "<>", "<ann@ours.example>", NEWS,
	    { "  It was delivered, where the settings alone would have had it "
	      "refused",
		"  The reason: [override partner] (in reports: "
		"local_policy)\n" } },
	{ "[override strict]\nfrom_domain = sender.example\ndmarc = reject\n"
	  "reason = forged daily\n",
	    "203.0.113.9", "<>", NULL, NEWS,
	    { "  It was refused, where the settings alone would have had it "
	      "delivered: DMARC fails",
		"  The reason: forged daily, [override strict] (in reports: "
		"local_policy)\n" } },
	{ "dmarc = reject\n", "203.0.113.9", "<>", NULL,
	    "From: a@test.example\r\n",
	    { "It was delivered: DMARC fails, but _dmarc.test.example asks for "
	      "nothing\n",
		"  The reason: the domain is only testing its policy, t=y" } },
	/* the DNS */
	{ "on_dns_error = tempfail\n", "203.0.113.9", "<x@lost.example>", NULL,
	    "From: a@lost.example\r\n",
	    { "  It was put off: the DNS does not answer what the verdict "
	      "rests on, and on_dns_error = tempfail\n",
		"  To be judged: the DNS must answer",
		"  _dmarc.lost.example TXT SERVFAIL\n" } },
	{ "", "203.0.113.9", "<x@lost.example>", NULL,
	    "From: a@lost.example\r\n",
	    { "It was delivered: DMARC could not be judged, which is no "
	      "fail" } },
	/* From and SPF */
	{ "dmarc = reject\n", "203.0.113.9", "<>", NULL, "Subject: x\r\n",
	    { "  author: none (no From field)\n",
		"  It was marked as quarantined: no From field: nobody's "
		"DMARC policy could cover it",
		"  There must be one From field" } },
	{ "", "203.0.113.9", "<>", NULL, NEWS "From: b@lists.example\r\n",
	    { "  author: sender.example lists.example (several From fields)\n",
		"  It was refused: several From fields, which multi_from "
		"forbids\n",
		"  There must be one From field" } },
	{ "spf_reject = fail\n", "203.0.113.9", "<l@lists.example>", NULL,
	    "From: a@nothing.example\r\n",
	    { "  It was refused: SPF of MAIL FROM is fail, which spf_reject "
	      "names\n",
		"  spf_reject lists the results that are refused\n" } },
	{ "dmarc = off\n", "203.0.113.9", "<>", NULL, NEWS,
	    { "It was delivered: DMARC is not looked at (dmarc = off)\n" } },
	{ "", "203.0.113.9", "<>", NULL, "From: a@nothing.example\r\n",
	    { "It was delivered: the author's domain publishes no DMARC "
	      "policy\n",
		"  To be protected: " } },
	/* behind a relay of ours */
	{ "trusted_relays = 198.51.100.5\ndmarc = reject\n", "198.51.100.5",
	    "<b@sender.example>", NULL,
	    "Received: from x (y [203.0.113.9])\r\n\tby mx2 id 1\r\n" NEWS,
	    { "  client 198.51.100.5, HELO mail.bad.example\n  a trusted relay; "
	      "judged as of the client before it: 203.0.113.9\n",
		"would have to name 203.0.113.9, and ends at -all" } },
	/* outbound */
	{ "trusted_networks = 192.0.2.0/24\n", "192.0.2.25", "<>", NULL, NEWS,
	    { "  outbound because: trusted network\n",
		"Signing\n  not signed: no signer\n",
		"  To be signed: the keys in key_dir must be there" } },
};

static void
explain(size_t i, struct buf *out)
{
	struct rig r;
	struct record trace, evidence;
	char text[1024];
	rig_open(&r, rows[i].config, ZONE);
	snprintf(text, sizeof text, "%s\r\nHi\r\n", rows[i].header);
	struct mail m = { .ip = rows[i].ip,
		.helo = "mail.bad.example",
		.from = rows[i].from,
		.rcpt = rows[i].rcpt,
		.text = text };
	rig_send(&r, &m);
	record_init(&trace, 1 << 20);
	record_init(&evidence, 1 << 20);
	trace_encode(r.message, &trace);
	trace_evidence(r.message, &evidence);
	assert_ok(explain_render(
	    buf_str(&trace.buf), buf_str(&evidence.buf), out));
	record_done(&trace);
	record_done(&evidence);
	rig_close(&r);
}

static void
each_kind_is_told(void **state)
{
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct buf out;
		buf_init(&out, 1 << 20);
		explain(i, &out);
		for (size_t j = 0; j < 5 && rows[i].said[j] != NULL; j++)
			if (str_find(buf_str(&out),
				str_c(rows[i].said[j])) == SIZE_MAX)
				fail_msg("row %zu lacks \"%s\":\n%.*s", i,
				    rows[i].said[j], (int)out.len, out.ptr);
		buf_done(&out);
	}
	(void)state;
}

static void
damage_is_told(void **state)
{
	struct buf out;
	buf_init(&out, 4096);
	assert_int_equal(
	    explain_render(STR("\1\1\0\377\377"), STR_EMPTY, &out),
	    RES_CORRUPT);
	buf_done(&out);
	(void)state;
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_kind_is_told),
		cmocka_unit_test(damage_is_told),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
