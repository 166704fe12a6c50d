/* One message's path without libmilter: signed going out, judged coming in. */
#include <stdio.h>

#include "flow_rig.h"

#define TEXT                                      \
	"From: Ann <ann@example.org>\r\n"         \
	"To: bob@example.net\r\n"                 \
	"Subject: hello\r\n"                      \
	"Date: Tue, 14 Nov 2023 22:13:20 +0000\r\n" \
	"Message-ID: <1@example.org>\r\n"         \
	"\r\n"                                    \
	"Hi  there, \r\n\r\nbye\r\n\r\n"

/* A zone with the key, an SPF record and p=reject. */
static char *
zone_with(const char *key, const char *more)
{
	char *zone = NULL;
	assert_true(asprintf(&zone,
	    "s1._domainkey.example.org TXT \"%s\"\n"
	    "example.org TXT \"v=spf1 ip4:192.0.2.1 -all\"\n"
	    "_dmarc.example.org TXT \"v=DMARC1; p=reject\"\n"
	    "mail.example.org TXT \"v=spf1 a -all\"\n"
	    "mail.example.org A 192.0.2.1\n%s", key, more) > 0);
	return zone;
}

/* Sign TEXT going out; the signed text is malloc'd, the rig keeps the zone. */
static char *
signed_text(struct rig *r, enum key_type type, const char *config)
{
	rig_open(r, config, NULL);
	char *key = rig_add_key(r, type, "example.org", "s1");
	char *zone = zone_with(key, "");
	rig_zone(r, zone);
	struct mail out = { .ip = "127.0.0.1", .helo = "localhost",
		.from = "<ann@example.org>", .text = TEXT };
	rig_send(r, &out);
	assert_int_equal(r->decision->reply, REPLY_ACCEPT);
	assert_true(r->decision->outbound);
	assert_non_null(rig_inserted(r, "DKIM-Signature", 0));
	assert_null(rig_inserted(r, "Authentication-Results", 0));
	char *text = rig_edited(r, TEXT);
	free(key);
	free(zone);
	return text;
}

static const struct mail inbound = { .ip = "192.0.2.1",
	.helo = "mail.example.org", .from = "<ann@example.org>" };

static void
out_then_in_passes(void **state)
{
	enum key_type types[] = { KEY_RSA, KEY_ED25519 };
	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct rig r;
		char *text = signed_text(&r, types[i], NULL);
		struct mail in = inbound;
		in.text = text;
		rig_send(&r, &in);
		const struct decision *d = r.decision;
		assert_int_equal(d->reply, REPLY_ACCEPT);
		assert_false(d->outbound);
		assert_int_equal(d->dkim_count, 1);
		assert_int_equal(d->dkim[0].result, AUTH_PASS);
		assert_int_equal(d->dmarc.result, AUTH_PASS);
		assert_int_equal(d->spf_count, 2);
		assert_int_equal(d->spf[1].result, AUTH_PASS);
		const char *ar = rig_inserted(&r, "Authentication-Results", 0);
		assert_non_null(ar);
		assert_non_null(strstr(ar, " mx.test.example;"));
		assert_non_null(strstr(ar, "dkim=pass"));
		assert_non_null(strstr(ar, "dmarc=pass"));
		assert_null(strchr(ar, '\r'));
		free(text);
		rig_close(&r);
	}
}

static void
any_split_of_the_body_is_the_same(void **state)
{
	struct rig r;
	(void)state;
	char *text = signed_text(&r, KEY_ED25519, NULL);
	for (size_t step = 1; step < 40; step++) {
		struct mail in = inbound;
		in.text = text;
		in.chunk = step;
		rig_send(&r, &in);
		assert_int_equal(r.decision->dkim[0].result, AUTH_PASS);
	}
	free(text);
	rig_close(&r);
}

static void
a_changed_body_fails(void **state)
{
	struct rig r;
	(void)state;
	char *text = signed_text(&r, KEY_RSA, NULL);
	char *changed = NULL;
	assert_true(asprintf(&changed, "%sfooter\r\n", text) > 0);
	struct mail in = inbound;
	in.text = changed;
	in.ip = "203.0.113.9";
	rig_send(&r, &in);
	const struct decision *d = r.decision;
	assert_int_equal(d->dkim[0].result, AUTH_FAIL);
	assert_string_equal(d->dkim[0].reason, "body hash did not verify");
	assert_int_equal(d->spf[1].result, AUTH_FAIL);
	assert_int_equal(d->dmarc.result, AUTH_FAIL);
	assert_int_equal(d->dmarc.policy, DMARC_REJECT);
	/* the default only notes it */
	assert_int_equal(d->reply, REPLY_ACCEPT);
	free(changed);
	free(text);
	rig_close(&r);
}

static void
a_dead_dns_is_never_a_fail(void **state)
{
	struct rig r;
	(void)state;
	char *text = signed_text(&r, KEY_RSA, NULL);
	rig_zone(&r,
	    "s1._domainkey.example.org * !SERVFAIL\n"
	    "example.org * !TIMEOUT\nmail.example.org * !TIMEOUT\n"
	    "_dmarc.example.org * !SERVFAIL\n");
	struct mail in = inbound;
	in.text = text;
	rig_send(&r, &in);
	const struct decision *d = r.decision;
	assert_int_equal(d->reply, REPLY_ACCEPT);
	assert_int_equal(d->dkim[0].result, AUTH_TEMPERROR);
	assert_int_equal(d->spf[0].result, AUTH_TEMPERROR);
	assert_int_equal(d->spf[1].result, AUTH_TEMPERROR);
	assert_int_equal(d->dmarc.result, AUTH_TEMPERROR);
	free(text);
	rig_close(&r);
}

static void
forged_results_are_deleted_from_the_highest_down(void **state)
{
	struct rig r;
	static const struct {
		const char *name;
		unsigned index;
	} want[] = { { "Authentication-Results", 4 },
		{ "X-Hanaper-Disposition", 1 },
		{ "authentication-results", 3 },
		{ "Authentication-Results", 1 } };
	(void)state;
	rig_open(&r, NULL, "");
	struct mail in = inbound;
	in.text = "Authentication-Results: mx.test.example; spf=pass\r\n"
		  "Authentication-Results: other.example.com; spf=pass\r\n"
		  "authentication-results: (c) MX.TEST.example 1; dkim=pass\r\n"
		  "X-Hanaper-Disposition: none\r\n"
		  "Authentication-Results: \"mx.test.example\"; none\r\n"
		  "From: a@example.org\r\n\r\nx\r\n";
	rig_send(&r, &in);
	const struct decision *d = r.decision;
	assert_int_equal(d->edit_count, 5);
	for (size_t i = 0; i < 4; i++) {
		assert_int_equal(d->edits[i].kind, EDIT_KIND_DELETE);
		assert_string_equal(d->edits[i].name, want[i].name);
		assert_int_equal(d->edits[i].index, want[i].index);
	}
	assert_int_equal(d->edits[4].kind, EDIT_KIND_INSERT);
	assert_int_equal(d->edits[4].index, 0);
	rig_close(&r);
}

static void
too_many_forged_results_are_refused(void **state)
{
	struct rig r;
	struct buf text;
	(void)state;
	rig_open(&r, NULL, "");
	buf_init(&text, (size_t)4 << 20);
	for (int i = 0; i < 12000; i++)
		buf_add_c(&text,
		    "Authentication-Results: mx.test.example; spf=pass\r\n");
	buf_add_c(&text, "From: a@example.org\r\n\r\nx\r\n");
	struct mail in = inbound;
	in.text = buf_cstr(&text);
	rig_send(&r, &in);
	assert_int_equal(r.decision->reply, REPLY_REJECT);
	assert_string_equal(r.decision->code, "550");
	assert_string_equal(r.decision->enhanced, "5.7.1");
	assert_int_equal(r.decision->edit_count, 0);
	buf_done(&text);
	rig_close(&r);
}

static void
size_limits_are_permanent(void **state)
{
	struct rig r;
	(void)state;
	rig_open(&r, "max_message_size = 1K\n", "");
	char text[1100];
	memset(text, 'x', sizeof text);
	memcpy(text, "From: a@b.example\r\n\r\n", 21);
	struct mail in = inbound;
	in.text = text;
	for (size_t len = 1023; len <= 1025; len++) {
		in.text_len = len;
		rig_send(&r, &in);
		assert_int_equal(r.decision->reply,
		    len <= 1024 ? REPLY_ACCEPT : REPLY_REJECT);
	}
	assert_string_equal(r.decision->code, "552");
	assert_string_equal(r.decision->enhanced, "5.3.4");
	rig_close(&r);

	rig_open(&r, "max_header_bytes = 1K\n", "");
	char *big = malloc(4096);
	memset(big, 'y', 4096);
	memcpy(big, "Subject: ", 9);
	memcpy(big + 2000, "\r\nFrom: a@b.example\r\n\r\n", 24);
	in.text = big;
	in.text_len = 2023;
	rig_send(&r, &in);
	assert_int_equal(r.decision->reply, REPLY_REJECT);
	assert_string_equal(r.decision->code, "554");
	assert_string_equal(r.decision->enhanced, "5.6.0");
	free(big);
	rig_close(&r);
}

static void
stages_out_of_order_end_in_a_tempfail(void **state)
{
	struct rig r;
	struct envelope e = { .mail_from = STR("<a@b.example>") };
	(void)state;
	rig_open(&r, NULL, "");
	r.session = session_new(&r.env);
	assert_ok(message_begin(r.session, &e, &r.message));
	message_body(r.message, "x", 1);
	const struct decision *d = message_finish(r.message, STR_EMPTY);
	assert_int_equal(d->reply, REPLY_TEMPFAIL);
	message_free(&r.message);
	/* freed in the middle */
	assert_ok(message_begin(r.session, &e, &r.message));
	message_header(r.message, STR("From"), STR(" a@b.example"));
	message_free(&r.message);
	assert_ok(message_begin(r.session, &e, &r.message));
	message_free(&r.message);
	assert_int_equal(r.counters.aborted, 2);
	rig_close(&r);
}

static void
why_it_was_not_signed(void **state)
{
	static const struct {
		const char *config, *record, *auth, *from;
		enum reply_kind reply;
		bool is_signed;
	} rows[] = {
		{ "", "present", NULL, "ann@example.org", REPLY_ACCEPT, true },
		{ "", "absent", NULL, "ann@example.org", REPLY_ACCEPT, false },
		{ "", "other", NULL, "ann@example.org", REPLY_ACCEPT, false },
		{ "", "dead", NULL, "ann@example.org", REPLY_TEMPFAIL, false },
		{ "require_published_key = no\n", "dead", NULL,
		    "ann@example.org", REPLY_ACCEPT, true },
		{ "", "present", NULL, "ann@sub.example.org", REPLY_ACCEPT,
		    false },
		{ "sign_subdomains = yes\n", "present", NULL,
		    "ann@sub.example.org", REPLY_ACCEPT, true },
		{ "", "present", NULL, "ann@else.example", REPLY_ACCEPT,
		    false },
		{ "require_login_match = yes\n", "present", "bob",
		    "ann@example.org", REPLY_ACCEPT, false },
		{ "require_login_match = yes\n", "present", "ann",
		    "ann@example.org", REPLY_ACCEPT, true },
		{ "require_login_match = yes\n", "present",
		    "Ann@Example.org", "ann@example.org", REPLY_ACCEPT, true },
		/* no author besides the one who logged in */
		{ "require_login_match = yes\n", "present", "ann",
		    "ann@example.org, boss@example.org", REPLY_ACCEPT, false },
		{ "require_login_match = yes\n", "present", "ann",
		    "us: ann@example.org, boss@example.org;", REPLY_ACCEPT,
		    false },
		{ "require_login_match = yes\n", "present", "ann",
		    "ann@example.org, Ann <ANN@example.org>", REPLY_ACCEPT,
		    true },
	};
	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct rig r;
		char text[256], *zone = NULL;
		rig_open(&r, rows[i].config, NULL);
		r.env.published = published_new(NULL);
		char *key = rig_add_key(&r, KEY_ED25519, "example.org", "s1");
		if (strcmp(rows[i].record, "present") == 0)
			zone = zone_with(key, "");
		else if (strcmp(rows[i].record, "other") == 0)
			zone = zone_with("v=DKIM1; k=ed25519; p=11qYAYKxCrfVS/"
			    "7TyWQHOg7hcvPapiMlrwIaaPcHURo=", "");
		else if (strcmp(rows[i].record, "dead") == 0)
			zone = strdup("s1._domainkey.example.org * !TIMEOUT\n");
		else
			zone = strdup("");
		rig_zone(&r, zone);
		snprintf(text, sizeof text, "From: %s\r\n\r\nx\r\n",
		    rows[i].from);
		struct mail out = { .ip = "127.0.0.1", .from = "<a@b.example>",
			.auth = rows[i].auth, .text = text };
		rig_send(&r, &out);
		if (r.decision->reply != rows[i].reply ||
		    (rig_inserted(&r, "DKIM-Signature", 0) != NULL) !=
			rows[i].is_signed)
			fail_msg("row %zu", i);
		free(key);
		free(zone);
		rig_close(&r);
	}
}

static void
a_login_name_keeps_its_letters(void **state)
{
	static const struct {
		const char *auth, *shown;
	} rows[] = {
		{ "Ann", "auth=pass smtp.auth=Ann" },
		{ "Ann@Example.org", "auth=pass smtp.auth=Ann@example.org" },
		{ "Ann B.", "auth=pass smtp.auth=\"Ann B.\"" },
	};
	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct rig r;
		rig_open(&r, "outbound_results = yes\n", NULL);
		struct mail out = { .ip = "192.0.2.7",
			.from = "<ann@example.org>", .auth = rows[i].auth,
			.text = TEXT };
		rig_send(&r, &out);
		const char *value =
		    rig_inserted(&r, "Authentication-Results", 0);
		assert_non_null(value);
		assert_non_null(strstr(value, rows[i].shown));
		rig_close(&r);
	}
}

static void
a_key_seen_once_signs_through_an_outage(void **state)
{
	struct rig r;
	(void)state;
	rig_open(&r, NULL, NULL);
	r.env.published = published_new(NULL);
	char *key = rig_add_key(&r, KEY_ED25519, "example.org", "s1");
	char *zone = zone_with(key, "");
	rig_zone(&r, zone);
	struct mail out = { .ip = "127.0.0.1", .from = "<ann@example.org>",
		.text = TEXT };
	rig_send(&r, &out);
	assert_non_null(rig_inserted(&r, "DKIM-Signature", 0));
	rig_zone(&r, "s1._domainkey.example.org * !SERVFAIL\n");
	rig_send(&r, &out);
	assert_int_equal(r.decision->reply, REPLY_ACCEPT);
	assert_non_null(rig_inserted(&r, "DKIM-Signature", 0));
	free(key);
	free(zone);
	rig_close(&r);
}

/* A signer that is not there. */
static struct manifest *
manifest_of_nobody(struct signer *s)
{
	(void)s;
	return NULL;
}

static void
without_a_signer_mail_waits_or_passes_unsigned(void **state)
{
	struct rig r;
	struct signer gone = { .manifest = manifest_of_nobody };
	(void)state;
	rig_open(&r, NULL, "");
	r.env.signer = &gone;
	struct mail out = { .ip = "127.0.0.1", .from = "<ann@example.org>",
		.text = TEXT };
	rig_send(&r, &out);
	assert_int_equal(r.decision->reply, REPLY_TEMPFAIL);
	r.env.signer = NULL;
	rig_send(&r, &out);
	assert_int_equal(r.decision->reply, REPLY_ACCEPT);
	rig_close(&r);
}

static void
who_is_ours(void **state)
{
	static const struct {
		const char *config, *ip, *auth, *daemon;
		bool outbound;
	} rows[] = {
		{ "", "127.0.0.1", NULL, NULL, true },
		{ "", "::1", NULL, NULL, true },
		{ "", "192.0.2.7", NULL, NULL, false },
		{ "", "192.0.2.7", "ann", NULL, true },
		{ "trust_authenticated = no\n", "192.0.2.7", "ann", NULL,
		    false },
		{ "trusted_networks = 192.0.2.0/24\n", "192.0.2.7", NULL, NULL,
		    true },
		{ "trusted_networks = 192.0.2.0/24\n", "127.0.0.1", NULL, NULL,
		    false },
		{ "trusted_daemons = ORIGINATING\n", "192.0.2.7", NULL,
		    "originating", true },
		{ "mode = verify\n", "127.0.0.1", "ann", NULL, false },
		{ "mode = sign\n", "192.0.2.7", NULL, NULL, true },
	};
	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct rig r;
		rig_open(&r, rows[i].config, "");
		struct mail m = { .ip = rows[i].ip, .auth = rows[i].auth,
			.daemon = rows[i].daemon, .text = TEXT };
		rig_send(&r, &m);
		if (r.decision->outbound != rows[i].outbound)
			fail_msg("row %zu", i);
		rig_close(&r);
	}
}

/* The client of the hop before chooses its name, and the recipient's: neither
 * may pass for its address. 192.0.2.1 is the liar's wish. */
static void
a_client_cannot_lie_about_the_hop(void **state)
{
	static const struct {
		const char *received, *client; /* NULL: it is not told */
	} rows[] = {
		{ "from a (b [203.0.113.9])\r\n\tby mx2 (Postfix) id 1",
		    "203.0.113.9" },
		{ "from x [192.0.2.1] by y (unknown [203.0.113.9])\r\n\tby mx2 "
		  "(Postfix) id 1", "203.0.113.9" },
		{ "from [192.0.2.1] (unknown [203.0.113.9])\r\n\tby mx2 id 1",
		    "203.0.113.9" },
		{ "from a (b [203.0.113.9])\r\n\tby mx2 id 1\r\n\tfor "
		  "<\"x [192.0.2.1] by y\"@z>", "203.0.113.9" },
		{ "from a (b [203.0.113.9])\r\n\t(using TLSv1.3)\r\n\t(Client CN "
		  "\"[192.0.2.1]\", Issuer \"x\" (not verified))\r\n\tby mx2",
		    "203.0.113.9" },
		/* the one that puts the name behind the address */
		{ "from [203.0.113.9] (helo=[192.0.2.1])\r\n\tby mx2 with esmtp",
		    "203.0.113.9" },
		{ "from a ([203.0.113.9] helo=[192.0.2.1])\r\n\tby mx2",
		    "203.0.113.9" },
		/* in one line it can be told only when nothing else fits */
		{ "from a (b [203.0.113.9]) by mx2 (Postfix) id 1",
		    "203.0.113.9" },
		{ "from x [192.0.2.1] by y (u [203.0.113.9]) by mx2 id 1", NULL },
		{ "from a (b [203.0.113.9]) by mx2 for <\"[192.0.2.1] by y\"@z>",
		    NULL },
		{ "from a\r\n\t(b [203.0.113.9])\r\n\tby mx2 id 1",
		    "203.0.113.9" },
		{ "from a (b [IPv6:2001:db8::9])\r\n\tby mx2 id 1",
		    "2001:db8::9" },
		{ "from a (b [unknown])\r\n\tby mx2 id 1", NULL },
		{ "from a by mx2 id 1", NULL },
		{ "by mx2 id 1", NULL },
	};
	struct rig r;
	rig_open(&r, "trusted_relays = 198.51.100.0/24\n", NULL);
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		char text[512], want[80] = "iprev=";
		struct mail in = inbound;
		in.ip = "198.51.100.5";
		in.text = text;
		snprintf(text, sizeof text,
		    "Received: %s\r\nFrom: ann@example.org\r\n\r\nx\r\n",
		    rows[i].received);
		rig_send(&r, &in);
		if (rows[i].client != NULL)
			snprintf(want, sizeof want,
			    strchr(rows[i].client, ':') != NULL ?
				"policy.iprev=\"%s\"" : "policy.iprev=%s",
			    rows[i].client);
		const char *said =
		    rig_inserted(&r, "Authentication-Results", 0);
		assert_non_null(said);
		if ((strstr(said, want) != NULL) != (rows[i].client != NULL))
			fail_msg("%s: %s", rows[i].received, said);
	}
	rig_close(&r);
	(void)state;
}

static void
a_relay_of_ours_is_seen_through(void **state)
{
	struct rig r;
	(void)state;
	rig_open(&r, "trusted_relays = 198.51.100.0/24\n",
	    "example.org TXT \"v=spf1 ip4:192.0.2.1 -all\"\n"
	    "mail.example.org TXT \"v=spf1 ip4:192.0.2.1 -all\"\n"
	    "mx2.test.example TXT \"v=spf1 ip4:198.51.100.5 -all\"\n");
	struct mail in = inbound;
	in.ip = "198.51.100.5";
	in.helo = "mx2.test.example";
	in.text = "Received: from mail.example.org (unknown [192.0.2.1])\r\n"
		  "\tby mx2.test.example (Postfix) with ESMTP id 1\r\n"
		  "Authentication-Results: mx.test.example; spf=pass\r\n"
		  "From: ann@example.org\r\n\r\nx\r\n";
	rig_send(&r, &in);
	if (r.decision->reply != REPLY_ACCEPT)
		fail_msg("%s", r.decision->text);
	assert_int_equal(r.decision->edit_count, 1); /* the old field stays */
	assert_int_equal(
	    r.decision->spf[r.decision->spf_count - 1].result, AUTH_PASS);
	/* the name is that of the hop before, too; all there is for bounces */
	assert_int_equal(r.decision->spf[0].identity, SPF_HELO);
	assert_int_equal(r.decision->spf[0].result, AUTH_PASS);
	assert_str(r.decision->spf[0].domain, "mail.example.org");
	in.from = "<>";
	rig_send(&r, &in);
	assert_int_equal(r.decision->spf_count, 1);
	assert_int_equal(r.decision->spf[0].result, AUTH_PASS);
	in.from = inbound.from;
	in.text = "Received: by mx2.test.example id 1\r\n"
		  "From: ann@example.org\r\n\r\nx\r\n";
	rig_send(&r, &in);
	assert_int_equal(r.decision->spf[0].result, AUTH_NONE);
	rig_close(&r);
}

static void
long_header_lines_are_refolded_before_signing(void **state)
{
	struct rig r;
	struct buf text;
	(void)state;
	rig_open(&r, "long_lines = refold\nrequire_published_key = no\n", NULL);
	char *key = rig_add_key(&r, KEY_ED25519, "example.org", "s1");
	buf_init(&text, 65536);
	buf_add_c(&text, "From: ann@example.org\r\nReferences:");
	for (int i = 0; i < 60; i++)
		buf_addf(&text, " <%d.0123456789@mail.example.org>", i);
	buf_add_c(&text, "\r\n\r\nx\r\n");
	struct mail out = { .ip = "127.0.0.1", .from = "<ann@example.org>",
		.text = buf_cstr(&text) };
	rig_send(&r, &out);
	const struct flow_edit *e = &r.decision->edits[0];
	assert_int_equal(e->kind, EDIT_KIND_CHANGE);
	assert_string_equal(e->name, "References");
	size_t line = 0;
	for (const char *p = e->value; *p != '\0'; p++) {
		line = *p == '\n' ? 0 : line + 1;
		assert_true(line < 100);
	}
	/* relaxed: the signature fits the message before and after folding */
	char *edited = rig_edited(&r, buf_cstr(&text));
	char *zone = zone_with(key, "");
	rig_zone(&r, zone);
	struct mail in = inbound;
	in.text = edited;
	rig_send(&r, &in);
	assert_int_equal(r.decision->dkim[0].result, AUTH_PASS);
	free(edited);
	free(zone);
	free(key);
	buf_done(&text);
	rig_close(&r);
}

#define FORGED "Authentication-Results: mx.test.example; dkim=pass"
#define FOREIGN "Authentication-Results: other.example; dkim=pass"

/* `octets` of words without the field's first line's beginning. */
static void
add_words(struct buf *b, const char *begin, size_t octets, char filler)
{
	size_t from = b->len;
	buf_add_c(b, begin);
	while (b->len - from < octets)
		buf_add_char(b,
		    filler == ' ' || (b->len - from) % 10 != 0 ? filler : ' ');
}

/* What is done about header lines of 999 octets and more, and to which. */
static void
long_header_lines(void **state)
{
	static const struct {
		const char *config, *before, *begin;
		size_t octets;
		char filler;
		const char *after;
		enum reply_kind reply;
		const char *edits; /* kinds and occurrences */
	} rows[] = {
		{ "tempfail", "", "X: ", 998, 'x', "", REPLY_ACCEPT, "I1" },
		{ "tempfail", "", "X: ", 999, 'x', "", REPLY_TEMPFAIL, "" },
		{ "tempfail", "X:\r\n", " x", 998, 'x', "", REPLY_ACCEPT,
		    "I1" },
		{ "tempfail", "X:\r\n", " x", 999, 'x', "", REPLY_TEMPFAIL,
		    "" },
		{ "tempfail", "", "X: ", 998, 'x', "\r\n y", REPLY_ACCEPT,
		    "I1" },
		{ "tempfail", "", "X: ", 999, 'x', "\r\n y", REPLY_TEMPFAIL,
		    "" },
		{ "warn", "", "X: ", 2000, 'x', "", REPLY_ACCEPT, "I1" },
		{ "refold", "", "X: ", 998, 'x', "", REPLY_ACCEPT, "I1" },
		{ "refold", "", "X: ", 999, 'x', "", REPLY_ACCEPT, "C1 I1" },
		{ "refold", "X: a\r\n", "X: ", 999, 'x', "", REPLY_ACCEPT,
		    "C2 I1" },
		/* no line of blanks alone is made: nothing can be done */
		{ "refold", "", "X: ", 2000, ' ', "x", REPLY_ACCEPT, "I1" },
		{ "refold", "", "X: ", 900, ' ', "x x x x x x x x x x x x x x "
		  "x x x x x x x x x x x x x x x x x x x x x x x x x x x x x x "
		  "x x x x x x x x x x x x x x x x x x x x x x", REPLY_ACCEPT,
		    "C1 I1" },
		{ "refold", "X: x\r\n",
		    "                                                        "
		    "                                                  x", 1100,
		    'x', "", REPLY_ACCEPT, "C1 I1" },
		/* one that goes away needs no care */
		{ "tempfail", "", FORGED, 999, 'x', "", REPLY_ACCEPT, "D1 I1" },
		{ "refold", "", FORGED, 999, 'x', "", REPLY_ACCEPT, "D1 I1" },
		/* occurrences count the fields as they arrived */
		{ "refold", FORGED "\r\n", FOREIGN, 999, 'x', "", REPLY_ACCEPT,
		    "C2 D1 I1" },
	};
	static const char kinds[] = { [EDIT_KIND_INSERT] = 'I',
		[EDIT_KIND_CHANGE] = 'C', [EDIT_KIND_DELETE] = 'D' };
	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct rig r;
		struct buf text, edits;
		char config[128];
		snprintf(config, sizeof config,
		    "long_lines = %s\nrequire_published_key = no\n",
		    rows[i].config);
		rig_open(&r, config, NULL);
		free(rig_add_key(&r, KEY_ED25519, "example.org", "s1"));
		buf_init(&text, 65536);
		buf_init(&edits, 1024);
		buf_add_c(&text, rows[i].before);
		add_words(&text, rows[i].begin, rows[i].octets, rows[i].filler);
		buf_addf(&text, "%s\r\nFrom: a@example.org\r\n\r\nx\r\n",
		    rows[i].after);
		struct mail out = { .ip = "127.0.0.1", .from = "<a@b.example>",
			.text = buf_cstr(&text) };
		rig_send(&r, &out);
		for (size_t n = 0; n < r.decision->edit_count; n++) {
			const struct flow_edit *e = &r.decision->edits[n];
			buf_addf(&edits, "%s%c%u", n != 0 ? " " : "",
			    kinds[e->kind], e->index);
			if (e->kind != EDIT_KIND_CHANGE)
				continue;
			struct str rest = str_c(e->value), line;
			while (str_split(&rest, '\n', &line)) {
				/* the first has the name before it */
				assert_in_range(line.len, 1, 996);
				assert_true(line.ptr == e->value ||
				    str_trim(line).len != 0);
			}
		}
		print_message("# row %zu\n", i);
		assert_int_equal(r.decision->reply, rows[i].reply);
		assert_string_equal(buf_cstr(&edits), rows[i].edits);
		buf_done(&edits);
		buf_done(&text);
		rig_close(&r);
	}
}

static void
open_decisions(struct rig *r, const char *dir)
{
	struct err err = { "" };
	char path[64];
	snprintf(path, sizeof path, "%s/decisions.db", dir);
	struct decisions_options o = { .path = path,
		.keep_us = DECISIONS_KEEP_US,
		.max_bytes = DECISIONS_MAX_BYTES,
		.clock = { (int64_t)RIG_CLOCK * 1000000 } };
	assert_ok(decisions_open(&o, &err, &r->env.decisions));
	assert_ok(token_secret(dir, r->env.secret));
	r->env.has_secret = true;
}

static void
close_decisions(struct rig *r, const char *dir)
{
	char *remove = NULL;
	decisions_close(&r->env.decisions);
	assert_true(asprintf(&remove, "rm -r %s", dir) > 0);
	assert_int_equal(system(remove), 0);
	free(remove);
}

static void
mail_comes_back_with_its_token(void **state)
{
	struct rig r;
	char dir[] = "/tmp/hanaper-flow.XXXXXX";
	(void)state;
	assert_non_null(mkdtemp(dir));
	rig_open(&r, "reinjection = token\n", "");
	open_decisions(&r, dir);
	struct mail in = inbound;
	in.text = TEXT;
	rig_send(&r, &in);
	assert_string_equal(r.decision->direction, "in");
	assert_non_null(rig_inserted(&r, "X-Hanaper-Token", 0));
	char *text = rig_edited(&r, TEXT);

	/* from a filter on this host */
	struct mail back = { .ip = "127.0.0.1", .helo = "localhost",
		.from = inbound.from, .text = text };
	rig_send(&r, &back);
	assert_string_equal(r.decision->direction, "seen");
	assert_int_equal(r.decision->edit_count, 1);
	assert_int_equal(r.decision->edits[0].kind, EDIT_KIND_DELETE);
	assert_string_equal(r.decision->edits[0].name, "X-Hanaper-Token");

	/* from outside: nobody may bring token or results */
	in.text = text;
	rig_send(&r, &in);
	assert_string_equal(r.decision->direction, "in");
	assert_string_equal(r.decision->edits[0].name,
	    "Authentication-Results");
	assert_string_equal(r.decision->edits[1].name, "X-Hanaper-Token");

	/* too late, or not ours */
	r.env.clock.fixed_us += (TOKEN_MAX_AGE_S + 1) * 1000000;
	rig_send(&r, &back);
	assert_string_equal(r.decision->direction, "out");
	r.env.clock.fixed_us -= (TOKEN_MAX_AGE_S + 1) * 1000000;
	r.env.secret[0] ^= 1;
	rig_send(&r, &back);
	assert_string_equal(r.decision->direction, "out");
	free(text);
	close_decisions(&r, dir);
	rig_close(&r);
}

#define SEALING                     \
	"arc = seal\n"              \
	"arc_domain = seal.example\n" \
	"arc_seal = *\n"

/* The text with `old` made `new`, malloc'd. */
static char *
changed(const char *text, const char *old, const char *new)
{
	char *out = NULL;
	const char *at = strstr(text, old);
	assert_non_null(at);
	assert_true(asprintf(&out, "%.*s%s%s", (int)(at - text), text, new,
			at + strlen(old)) > 0);
	return out;
}

/* What a filter on this host made of a sealed message, and how it is sealed
 * when it comes back: by what arrived, as far as that is still there. */
static void
what_comes_back_is_sealed_as_it_arrived(void **state)
{
	static const struct {
		const char *arrived_old, *arrived_new; /* on its way here */
		const char *old, *new;                 /* by the filter */
		const char *seal;  /* the beginning of ours; NULL: none */
		const char *result; /* of a validator, afterwards */
	} rows[] = {
		{ "", "", "", "", " i=2; a=rsa-sha256; t=1700000000; cv=pass;",
		    "pass" },
		/* the body changed: a chain, but for the old message */
		{ "", "", "bye", "bye\r\n-- \r\nfooter",
		    " i=2; a=rsa-sha256; t=1700000000; cv=pass;", "pass" },
		{ "bye", "BYE", "", "",
		    " i=2; a=rsa-sha256; t=1700000000; cv=fail;", "fail" },
		/* part of the chain is gone, or has company */
		{ "", "", "ARC-Seal:", "X-Seal:",
		    " i=2; a=rsa-sha256; t=1700000000; cv=fail;", "fail" },
		{ "", "", "ARC-Seal:", "ARC-Seal: i=1; cv=none\r\nARC-Seal:",
		    " i=2; a=rsa-sha256; t=1700000000; cv=fail;", "fail" },
		{ "", "", "ARC-Seal:", "ARC-Seal: i=9; cv=fail\r\nARC-Seal:",
		    NULL, "fail" },
		{ "cv=none", "cv=fail", "", "", NULL, "fail" },
	};
	struct rig r;
	char dir[] = "/tmp/hanaper-flow.XXXXXX";
	(void)state;
	assert_non_null(mkdtemp(dir));
	rig_open(&r, SEALING, NULL);
	char *key = rig_add_key(&r, KEY_RSA, "seal.example", "s1"), *zone;
	assert_true(asprintf(
	    &zone, "s1._domainkey.seal.example TXT \"%s\"\n", key) > 0);
	rig_zone(&r, zone);
	struct mail in = inbound;
	in.text = TEXT;
	rig_send(&r, &in);
	char *sealed = rig_edited(&r, TEXT);
	rig_config(&r, SEALING "reinjection = token\n");
	open_decisions(&r, dir);
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		char *arrived = changed(
		    sealed, rows[i].arrived_old, rows[i].arrived_new);
		in.text = arrived;
		rig_send(&r, &in);
		assert_null(rig_inserted(&r, "ARC-Seal", 0));
		char *token = rig_edited(&r, arrived);
		char *filtered = changed(token, rows[i].old, rows[i].new);
		struct mail back = { .ip = "127.0.0.1", .helo = "localhost",
			.from = inbound.from, .text = filtered };
		rig_send(&r, &back);
		assert_string_equal(r.decision->direction, "seen");
		const char *seal = rig_inserted(&r, "ARC-Seal", 0);
		if (rows[i].seal == NULL)
			assert_null(seal);
		else
			assert_memory_equal(
			    seal, rows[i].seal, strlen(rows[i].seal));
		char *left = rig_edited(&r, filtered);
		in.text = left;
		rig_send(&r, &in);
		assert_string_equal(
		    auth_result_word(r.decision->arc.result), rows[i].result);
		free(left);
		free(filtered);
		free(token);
		free(arrived);
	}
	/* the whole chain is gone: ours is the first */
	in.text = sealed;
	rig_send(&r, &in);
	char *token = rig_edited(&r, TEXT);
	struct mail back = { .ip = "127.0.0.1", .helo = "localhost",
		.from = inbound.from, .text = token };
	rig_send(&r, &back);
	assert_non_null(
	    strstr(rig_inserted(&r, "ARC-Seal", 0), " i=1; a=rsa-sha256; "
	    "t=1700000000; cv=none;"));
	free(token);
	free(sealed);
	free(zone);
	free(key);
	close_decisions(&r, dir);
	rig_close(&r);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(out_then_in_passes),
		cmocka_unit_test(any_split_of_the_body_is_the_same),
		cmocka_unit_test(a_changed_body_fails),
		cmocka_unit_test(a_dead_dns_is_never_a_fail),
		cmocka_unit_test(
		    forged_results_are_deleted_from_the_highest_down),
		cmocka_unit_test(too_many_forged_results_are_refused),
		cmocka_unit_test(size_limits_are_permanent),
		cmocka_unit_test(stages_out_of_order_end_in_a_tempfail),
		cmocka_unit_test(why_it_was_not_signed),
		cmocka_unit_test(a_login_name_keeps_its_letters),
		cmocka_unit_test(a_key_seen_once_signs_through_an_outage),
		cmocka_unit_test(without_a_signer_mail_waits_or_passes_unsigned),
		cmocka_unit_test(who_is_ours),
		cmocka_unit_test(a_relay_of_ours_is_seen_through),
		cmocka_unit_test(a_client_cannot_lie_about_the_hop),
		cmocka_unit_test(long_header_lines_are_refolded_before_signing),
		cmocka_unit_test(long_header_lines),
		cmocka_unit_test(mail_comes_back_with_its_token),
		cmocka_unit_test(what_comes_back_is_sealed_as_it_arrived),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
