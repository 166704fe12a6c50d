/* From a message and the DNS to what the MTA is told: that policy gets the
 * facts it decides on. The decisions themselves are test_policy's. */
#include <stdio.h>

#include "base/log.h"
#include "flow_rig.h"

#define ZONE                                                                   \
	"_dmarc.strict.example TXT \"v=DMARC1; p=reject\"\n"                   \
	"_dmarc.soft.example TXT \"v=DMARC1; p=quarantine\"\n"                 \
	"_dmarc.broken.example TXT !SERVFAIL\n"                                \
	"sender.example TXT \"v=spf1 ip4:192.0.2.1 -all\"\n"                   \
	"lost.example TXT !SERVFAIL\n"                                         \
	"strict.example TXT \"v=spf1 ip4:192.0.2.9 -all\"\n"
#define REST                                                                   \
	"To: bob@example.net\r\nSubject: hello\r\n"                            \
	"Date: Tue, 14 Nov 2023 22:13:20 +0000\r\n\r\nHi\r\n"

static const struct {
	const char *config, *header, *from;
	/* "accept", "mark", "hold", or code, enhanced code and text */
	const char *want;
	const char *log; /* a part of the log line, or NULL */
} rows[] = {
	{ "", "From: a@strict.example\r\n", "<a@sender.example>", "accept",
	    "dmarc=fail author=strict.example p=reject" },
	{ "dmarc = reject\n", "From: a@strict.example\r\n",
	    "<a@sender.example>",
	    "550 5.7.20 Email rejected per DMARC policy for strict.example; "
	    "SPF: pass sender.example; DKIM: none; id ",
	    "policy=reject cause=dmarc" },
	{ "dmarc = reject\n", "From: a@STRICT.example\r\n", "<a@other.example>",
	    "550 5.7.26 Email rejected per DMARC policy for strict.example; "
	    "SPF: none other.example; DKIM: none; id ",
	    NULL },
	{ "dmarc = reject\n", "From: a@soft.example\r\n", "<a@sender.example>",
	    "mark", "policy=quarantine cause=dmarc" },
	{ "dmarc = quarantine\nquarantine = hold\n",
	    "From: a@strict.example\r\n", "<a@sender.example>", "hold",
	    "action=hold" },
	{ "dmarc = reject\n",
	    "From: a@strict.example\r\nList-Id: L <l.lists.example>\r\n",
	    "<a@sender.example>", "mark",
	    "asked=reject override=mailing_list" },
	{ "dmarc = reject\n",
	    "From: a@strict.example\r\nList-Post: <mailto:l@x.example>\r\n",
	    "<a@sender.example>", "mark", NULL },
	{ "dmarc = reject\n[override l]\nlist_id = l.lists.example\n"
	  "dmarc = note\nreason = our members\n",
	    "From: a@strict.example\r\nList-Id: \"a, b\" "
	    "<L.lists.example>\r\n",
	    "<a@sender.example>", "accept",
	    "override=mailing_list reason=\"our members\"" },
	{ "dmarc = reject\n[override c]\nclient = 192.0.2.0/28\n"
	  "dmarc = quarantine\n",
	    "From: a@strict.example\r\n", "<a@sender.example>", "mark",
	    "override=trusted_forwarder reason=c" },
	{ "dmarc = reject\n[override r]\nrecipient = test.example\n"
	  "dmarc = note\n",
	    "From: a@strict.example\r\n", "<a@sender.example>", "accept",
	    "reason=r" },
	{ "dmarc = off\n[override f]\nfrom_domain = strict.example\n"
	  "dmarc = reject\n",
	    "From: a@strict.example\r\n", "<a@sender.example>", "550 5.7.20 ",
	    NULL },
	{ "dmarc = shadow reject\n", "From: a@strict.example\r\n",
	    "<a@sender.example>", "accept", "shadow=reject" },
	{ "shadow = yes\ndmarc = reject\n", "From: a@strict.example\r\n",
	    "<a@sender.example>", "accept", "shadow=reject" },
	/* From */
	{ "", "From: a@strict.example\r\nFrom: b@sender.example\r\n",
	    "<a@sender.example>",
	    "550 5.7.1 Message has more than one From field; id ", NULL },
	{ "multi_from = evaluate\ndmarc = reject\n",
	    "From: b@sender.example\r\nFrom: a@strict.example\r\n",
	    "<a@sender.example>", "550 5.7.20 ", NULL },
	{ "dmarc = reject\n",
	    "From: b@sender.example, a@strict.example, c@soft.example\r\n",
	    "<a@sender.example>",
	    "550 5.7.20 Email rejected per DMARC policy for strict.example; ",
	    NULL },
	{ "", "From: a@b.example>\r\n", "<a@sender.example>", "accept",
	    "dmarc=permerror" },
	{ "dmarc = reject\n", "From: a@b.example>\r\n", "<a@sender.example>",
	    "mark", "cause=from" },
	{ "dmarc = quarantine\n", "X: y\r\n", "<a@sender.example>", "mark",
	    NULL },
	/* SPF */
	{ "spf_reject = fail\n", "From: a@none.example\r\n",
	    "<a@strict.example>", "550 5.7.23 SPF fail for strict.example; id ",
	    NULL },
	{ "spf_reject = fail\n", "From: a@none.example\r\n",
	    "<a@sender.example>", "accept", NULL },
	/* DNS */
	{ "dmarc = reject\n", "From: a@broken.example\r\n",
	    "<a@sender.example>", "accept", "dmarc=temperror" },
	{ "dmarc = reject\non_dns_error = tempfail\n",
	    "From: a@broken.example\r\n", "<a@sender.example>",
	    "451 4.4.3 Temporary DNS failure while looking for the DMARC "
	    "policy of broken.example; id ",
	    NULL },
	{ "spf_reject = fail\non_dns_error = tempfail\n",
	    "From: a@none.example\r\n", "<a@lost.example>",
	    "451 4.4.3 Temporary DNS failure while checking SPF of "
	    "lost.example; id ",
	    NULL },
	/* what arrives with our marks on it loses them */
	{ "", "From: a@strict.example\r\nX-Hanaper-Disposition: quarantine\r\n",
	    "<a@sender.example>", "accept", NULL },
};

static void
describe(const struct rig *r, char *out, size_t size)
{
	const struct decision *d = r->decision;
	if (d->reply != REPLY_ACCEPT)
		snprintf(out, size, "%s %s %s", d->code, d->enhanced, d->text);
	else
		snprintf(out, size, "%s",
		    d->quarantine != NULL ? "hold"
			: rig_inserted(r, "X-Hanaper-Disposition", 0) != NULL
			? "mark"
			: "accept");
}

static void
messages_get_what_policy_says(void **state)
{
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct rig r;
		char text[1024], got[600];
		rig_open(&r, rows[i].config, ZONE);
		r.env.quiet = false;
		snprintf(text, sizeof text, "%s" REST, rows[i].header);
		struct mail m = { .ip = "192.0.2.1",
			.helo = "mail.sender.example",
			.from = rows[i].from,
			.text = text };
		rig_send(&r, &m);
		describe(&r, got, sizeof got);
		struct str log = r.decision->log_line;
		if (strncmp(got, rows[i].want, strlen(rows[i].want)) != 0)
			fail_msg("row %zu: %s, not %s\n%.*s", i, got,
			    rows[i].want, STR_ARG(log));
		if (rows[i].log != NULL &&
		    str_find(log, str_c(rows[i].log)) == SIZE_MAX)
			fail_msg("row %zu: no %s in\n%.*s", i, rows[i].log,
			    STR_ARG(log));
		rig_close(&r);
	}
}

/* The same message from inside is none of policy's business. */
static void
outbound_mail_is_not_judged(void **state)
{
	static const char config[] = "dmarc = reject\nspf_reject = fail\n"
				     "trusted_networks = 192.0.2.0/24\n";
	struct rig r;
	rig_open(&r, config, ZONE);
	struct mail m = { .ip = "192.0.2.1",
		.helo = "x",
		.from = "<a@strict.example>",
		.text = "From: a@strict.example\r\n"
			"From: b@strict.example\r\n" REST };
	rig_send(&r, &m);
	assert_int_equal(r.decision->reply, REPLY_ACCEPT);
	m.ip = "203.0.113.1";
	m.auth = "a";
	rig_send(&r, &m);
	assert_int_equal(r.decision->reply, REPLY_ACCEPT);
	m.auth = NULL;
	rig_send(&r, &m);
	assert_int_equal(r.decision->reply, REPLY_REJECT);
	rig_close(&r);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(messages_get_what_policy_says),
		cmocka_unit_test(outbound_mail_is_not_judged),
	};
	/* the lines are made and looked at, not shown */
	log_open(LOG_TO_STDERR, "test", LOG_LEVEL_ERROR);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
