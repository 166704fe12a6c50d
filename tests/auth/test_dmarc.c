/* DMARC by RFC 9989: record, tree walk, policy discovery, alignment and
 * result over zone files; libopendmarc must agree everywhere. */
#include "hn_test.h"

#include <stdio.h>

#include "auth/dmarc.h"
#include "auth/dmarc_discover.h"
#include "dns/zone.h"
#include "mail/domain.h"

struct fixture {
	struct arena *a;
	struct resolver *resolver;
	struct dns_session *dns;
};

static void
begin(struct fixture *f, const char *zone)
{
	static const struct dns_limits limits = { 1000000, 1000000, 0 };
	struct err err = { "" };
	f->a = arena_new(0);
	if (zone_from_text(str_c(zone), "zone", false, &err, &f->resolver) !=
	    RES_OK)
		fail_msg("%s", err.text);
	f->dns = dns_session_new(f->a, f->resolver, &limits);
	assert_non_null(f->dns);
}

static void
end(struct fixture *f)
{
	arena_free(&f->a);
	resolver_free(&f->resolver);
}

/* "domain=result", empty or NULL for none. */
static struct dmarc_identifier
identifier(const char *text)
{
	struct str s = str_c(text);
	size_t at = str_chr(s, '=');
	struct dmarc_identifier id = { STR_EMPTY, AUTH_NONE };
	if (at == SIZE_MAX)
		return id;
	id.domain = str_sub(s, 0, at);
	for (enum auth_result r = AUTH_NONE; r <= AUTH_PERMERROR; r++)
		if (str_eq(str_skip(s, at + 1), str_c(auth_result_word(r))))
			id.result = r;
	return id;
}

static struct dmarc_result
evaluate(struct fixture *f, enum org_method method, const char *from,
    const char *spf, const char *dkim)
{
	struct str domains[10], rest = str_c(from), part;
	struct dmarc_identifier ids[10];
	struct dmarc_input in = { .from_domains = domains,
		.dkim = ids,
		.spf = identifier(spf),
		.method = method };
	struct dmarc_result r;
	while (rest.len != 0 && str_split(&rest, ' ', &part))
		domains[in.from_count++] = part;
	for (rest = str_c(dkim); rest.len != 0 && str_split(&rest, ' ', &part);)
		ids[in.dkim_count++] = identifier(arena_cstr(f->a, part));
	assert_ok(dmarc_evaluate(f->a, f->dns, &in, &r));
	return r;
}

struct row {
	const char *zone, *from, *spf, *dkim;
	const char *result, *policy; /* policy NULL: not looked at */
	const char *record_domain;   /* NULL: none found */
	int dkim_aligned, spf_aligned;
};

static void
check_row(const struct row *row, enum org_method method)
{
	struct fixture f;
	begin(&f, row->zone);
	struct dmarc_result r =
	    evaluate(&f, method, row->from, row->spf, row->dkim);
	if (strcmp(auth_result_word(r.result), row->result) != 0)
		fail_msg("%s from %s: %s (%s), not %s", row->zone, row->from,
		    auth_result_word(r.result),
		    r.reason != NULL ? r.reason : "", row->result);
	if (row->policy != NULL)
		assert_string_equal(dmarc_policy_word(r.policy), row->policy);
	if (row->record_domain != NULL)
		assert_str(r.record_domain, row->record_domain);
	assert_int_equal(r.has_record, row->record_domain != NULL);
	assert_int_equal(r.dkim_aligned, row->dkim_aligned);
	assert_int_equal(r.spf_aligned, row->spf_aligned);
	if (r.result == AUTH_PASS || r.result == AUTH_FAIL) {
		bool pass;
		enum dmarc_policy policy;
		assert_ok(dmarc_library_verdict(&r, &pass, &policy));
		assert_int_equal(pass, r.result == AUTH_PASS);
		if (!pass)
			assert_int_equal(policy, r.policy);
	}
	end(&f);
}

#define EXAMPLE   "_dmarc.example.com TXT \"v=DMARC1; p=reject\"\n"
#define LONG_NAME "a.b.c.d.e.f.g.h.i.j.k.example.com"

static const struct row walk_rows[] = {
	/* standards' worked examples (RFC 9989 App. B.4) */
	{ EXAMPLE "_dmarc.signing.example.com TXT \"v=DMARC1; p=none\"\n",
	    "example.com", "example.com=pass", "signing.example.com=pass",
	    "pass", "reject", "example.com", 1, 1 },
	{ EXAMPLE
	    "_dmarc.signing.example.com TXT \"v=DMARC1; p=none\"\n" LONG_NAME
	    " A 192.0.2.1\n",
	    LONG_NAME, "example.com=pass", "signing.example.com=pass", "pass",
	    "reject", "example.com", 1, 1 },
	{ "_dmarc.bank.example TXT \"v=DMARC1; p=reject; psd=y\"\n"
	  "_dmarc.giant.bank.example TXT \"v=DMARC1; p=quarantine\"\n",
	    "giant.bank.example", "mail.giant.bank.example=pass",
	    "mail.mega.bank.example=pass", "pass", "quarantine",
	    "giant.bank.example", 0, 1 },
	{ EXAMPLE "_dmarc.mail.example.com TXT \"v=DMARC1; p=none; psd=n\"\n",
	    "a.mail.example.com", "example.com=pass", "b.mail.example.com=pass",
	    "pass", "none", "mail.example.com", 1, 0 },
	{ "_dmarc.com TXT \"v=DMARC1; p=reject; sp=quarantine; psd=y\"\n"
	  "a.mail.example.com A 192.0.2.1\n",
	    "a.mail.example.com", "example.com=fail", "example.org=pass",
	    "fail", "quarantine", "com", 0, 0 },
	{ "_dmarc.com TXT \"v=DMARC1; p=reject; psd=y\"\n",
	    "a.mail.example.com", "", "example.com=pass", "pass", "reject",
	    "com", 1, 0 },
	{ "_dmarc.com TXT \"v=DMARC1; p=reject; psd=y\"\n", "a.example.com", "",
	    "b.example.com=pass other.com=pass com=pass", "pass", "reject",
	    "com", 1, 0 },
	{ "_dmarc.com TXT \"v=DMARC1; p=reject; psd=y\"\n", "a.example.com",
	    "com=pass", "other.com=pass", "fail", "reject", "com", 0, 0 },
	{ "", "a.example.com", "a.example.com=pass", "", "none", NULL, NULL, 0,
	    0 },
	{ EXAMPLE "_dmarc.example.com TXT \"v=DMARC1; p=none\"\n",
	    "example.com", "", "", "none", NULL, NULL, 0, 0 },
	{ EXAMPLE "_dmarc.example.com TXT \"v=DMARC1; p=none\"\n"
		  "_dmarc.com TXT \"v=DMARC1; p=quarantine; psd=y\"\n"
		  "example.com A 192.0.2.1\n",
	    "example.com", "", "", "fail", "quarantine", "com", 0, 0 },
	{ "_dmarc.example.com TXT \"v=DMARC1; p=reject; t=y\"\n", "example.com",
	    "", "", "fail", "quarantine", "example.com", 0, 0 },
	{ "_dmarc.example.com TXT \"v=DMARC1; p=quarantine; t=Y\"\n",
	    "example.com", "", "", "fail", "none", "example.com", 0, 0 },
	{ "_dmarc.example.com TXT "
	  "\"v=DMARC1; p=reject; sp=none; np=quarantine\"\n",
	    "ghost.example.com", "", "", "fail", "quarantine", "example.com", 0,
	    0 },
	{ "_dmarc.example.com TXT "
	  "\"v=DMARC1; p=reject; sp=none; np=quarantine\"\n"
	  "real.example.com MX 10 mail.example.com\n",
	    "real.example.com", "", "", "fail", "none", "example.com", 0, 0 },
	/* an existence that cannot be told is taken as given */
	{ "_dmarc.example.com TXT \"v=DMARC1; p=none; np=reject\"\n"
	  "x.example.com A !SERVFAIL\n",
	    "x.example.com", "", "", "fail", "none", "example.com", 0, 0 },
	/* policy falls from np to sp to p */
	{ EXAMPLE, "ghost.example.com", "", "", "fail", "reject", "example.com",
	    0, 0 },
	{ "_dmarc.example.com TXT \"v=DMARC1; p=none; sp=quarantine\"\n",
	    "ghost.example.com", "", "", "fail", "quarantine", "example.com", 0,
	    0 },
	/* strict and relaxed */
	{ "_dmarc.example.com TXT \"v=DMARC1; p=reject; adkim=s; aspf=s\"\n",
	    "example.com", "mail.example.com=pass", "mail.example.com=pass",
	    "fail", "reject", "example.com", 0, 0 },
	{ "_dmarc.example.com TXT \"v=DMARC1; p=reject; adkim=S\"\n",
	    "example.com", "mail.example.com=pass", "mail.example.com=pass",
	    "pass", "reject", "example.com", 0, 1 },
	{ "_dmarc.example.com TXT \"v=DMARC1; p=reject; aspf=s\"\n",
	    "a.example.com", "b.example.com=pass", "b.example.com=pass", "pass",
	    "reject", "example.com", 1, 0 },
	{ EXAMPLE, "a.example.com", "", "example.com=pass", "pass", "reject",
	    "example.com", 1, 0 },
	{ EXAMPLE, "example.com", "notexample.com=pass", "com=pass", "fail",
	    "reject", "example.com", 0, 0 },
	/* results of identifiers that are no pass */
	{ EXAMPLE, "example.com", "example.com=softfail",
	    "example.com=fail example.com=policy example.com=permerror", "fail",
	    "reject", "example.com", 0, 0 },
	{ EXAMPLE, "example.com", "", "example.com=fail example.com=pass",
	    "pass", "reject", "example.com", 1, 0 },
	{ EXAMPLE, "example.com", "", "example.com=pass example.com=fail",
	    "pass", "reject", "example.com", 1, 0 },
	/* a DNS failure is never a fail (DMARC-D-08) */
	{ "_dmarc.example.com TXT !SERVFAIL\n", "example.com",
	    "example.com=pass", "", "temperror", NULL, NULL, 0, 0 },
	{ "_dmarc.com TXT !TIMEOUT\n", "example.com", "", "", "temperror", NULL,
	    NULL, 0, 0 },
	{ "_dmarc.com TXT !SERVFAIL\n" EXAMPLE, "example.com",
	    "example.com=pass", "mail.example.com=pass", "pass", "reject",
	    "example.com", 0, 1 },
	{ "_dmarc.com TXT !SERVFAIL\n" EXAMPLE, "example.com", "",
	    "mail.example.com=pass", "temperror", NULL, "example.com", 0, 0 },
	{ "_dmarc.com TXT !SERVFAIL\n" EXAMPLE, "example.com", "",
	    "mail.example.org=pass", "fail", "reject", "example.com", 0, 0 },
	{ EXAMPLE, "example.com", "mail.example.com=temperror", "", "temperror",
	    NULL, "example.com", 0, 0 },
	{ EXAMPLE, "example.com", "example.org=temperror",
	    "other.net=temperror", "fail", "reject", "example.com", 0, 0 },
	{ EXAMPLE, "example.com", "example.com=temperror", "example.com=pass",
	    "pass", "reject", "example.com", 1, 0 },
	/* invalid policies (DMARC-D-07) */
	{ "_dmarc.example.com TXT \"v=DMARC1; p=nonsense\"\n", "example.com",
	    "", "", "none", NULL, "example.com", 0, 0 },
	{ "_dmarc.example.com TXT "
	  "\"v=DMARC1; p=nonsense; rua=mailto:a@example.com\"\n",
	    "example.com", "", "", "fail", "none", "example.com", 0, 0 },
	{ "_dmarc.example.com TXT "
	  "\"v=DMARC1; p=reject; sp=bad; rua=mailto:a@example.com\"\n",
	    "example.com", "example.com=pass", "", "pass", "none",
	    "example.com", 0, 1 },
	{ "_dmarc.example.com TXT \"v=DMARC1; p=reject; np=\"\n", "example.com",
	    "", "", "none", NULL, "example.com", 0, 0 },
	{ "_dmarc.example.com TXT \"v=DMARC1\"\n", "example.com", "", "",
	    "fail", "none", "example.com", 0, 0 },
	/* several author domains: the strictest failing one */
	{ EXAMPLE "_dmarc.example.net TXT \"v=DMARC1; p=quarantine\"\n",
	    "example.com example.net", "", "example.com=pass", "fail",
	    "quarantine", "example.net", 0, 0 },
	{ EXAMPLE "_dmarc.example.net TXT \"v=DMARC1; p=quarantine\"\n",
	    "example.net example.com", "", "", "fail", "reject", "example.com",
	    0, 0 },
	{ EXAMPLE "_dmarc.example.net TXT \"v=DMARC1; p=quarantine\"\n",
	    "example.net example.com", "", "example.com=pass example.net=pass",
	    "pass", NULL, "example.net", 1, 0 },
	{ EXAMPLE, "example.net example.com", "", "example.com=pass", "none",
	    NULL, NULL, 0, 0 },
	{ EXAMPLE "_dmarc.example.net TXT !SERVFAIL\n",
	    "example.net example.com", "", "example.com=pass", "temperror",
	    NULL, NULL, 0, 0 },
	{ EXAMPLE "_dmarc.example.net TXT !SERVFAIL\n",
	    "example.net example.com", "", "", "fail", "reject", "example.com",
	    0, 0 },
	{ EXAMPLE, "a.b c.d e.f g.h i.j k.l m.n o.p q.r", "", "", "permerror",
	    NULL, NULL, 0, 0 },
	{ EXAMPLE, "", "", "", "permerror", NULL, NULL, 0, 0 },
};

static void
results_by_tree_walk(void **state)
{
	for (size_t i = 0; i < sizeof walk_rows / sizeof *walk_rows; i++)
		check_row(&walk_rows[i], ORG_TREEWALK);
}

static const struct row list_rows[] = {
	{ EXAMPLE, "a.example.com", "", "b.example.com=pass", "pass", "reject",
	    "example.com", 1, 0 },
	{ EXAMPLE, "example.com", "", "com=pass", "fail", "reject",
	    "example.com", 0, 0 },
	/* only the name and its organizational domain are asked */
	{ "_dmarc.b.example.com TXT \"v=DMARC1; p=reject\"\n",
	    "a.b.example.com", "", "", "none", NULL, NULL, 0, 0 },
	{ "_dmarc.com TXT \"v=DMARC1; p=reject; psd=y\"\n", "example.com", "",
	    "", "none", NULL, NULL, 0, 0 },
	/* PSL-02: several records end the search */
	{ EXAMPLE "_dmarc.a.example.com TXT \"v=DMARC1; p=none\"\n"
		  "_dmarc.a.example.com TXT \"v=DMARC1; p=reject\"\n",
	    "a.example.com", "", "", "none", NULL, NULL, 0, 0 },
	/* PSL-03 */
	{ "_dmarc.co.uk TXT \"v=DMARC1; p=reject\"\n", "co.uk",
	    "bank.co.uk=pass", "co.uk=pass", "pass", "reject", "co.uk", 1, 0 },
	{ "_dmarc.a.github.io TXT \"v=DMARC1; p=reject\"\n", "a.github.io", "",
	    "b.github.io=pass", "fail", "reject", "a.github.io", 0, 0 },
	{ "_dmarc.example.com TXT !TIMEOUT\n", "a.example.com", "", "",
	    "temperror", NULL, NULL, 0, 0 },
	{ "_dmarc.example.com TXT \"v=DMARC1; p=reject; sp=none\"\n",
	    "a.example.com", "", "", "fail", "none", "example.com", 0, 0 },
};

static void
results_by_suffix_list(void **state)
{
	for (size_t i = 0; i < sizeof list_rows / sizeof *list_rows; i++)
		check_row(&list_rows[i], ORG_PSL);
}

/* B.4.2: eight queries, with the jump to seven labels. */
static void
a_walk_asks_the_right_names(void **state)
{
	static const char *const want[] = {
		"_dmarc.a.b.c.d.e.f.g.h.i.j.mail.example.com",
		"_dmarc.g.h.i.j.mail.example.com",
		"_dmarc.h.i.j.mail.example.com", "_dmarc.i.j.mail.example.com",
		"_dmarc.j.mail.example.com", "_dmarc.mail.example.com",
		"_dmarc.example.com", "_dmarc.com"
	};
	struct fixture f;
	struct str org;
	begin(&f, "");
	struct str start = STR("a.b.c.d.e.f.g.h.i.j.mail.example.com");
	assert_ok(dmarc_org_domain(f.a, f.dns, ORG_TREEWALK, start, &org));
	assert_str(org, "a.b.c.d.e.f.g.h.i.j.mail.example.com");
	assert_int_equal(dns_session_count(f.dns), 8);
	for (size_t i = 0; i < 8; i++)
		assert_str(dns_session_at(f.dns, i)->name, want[i]);
	end(&f);
	/* seven and eight labels: no jump, and never the root */
	begin(&f, "");
	assert_ok(dmarc_org_domain(
	    f.a, f.dns, ORG_TREEWALK, STR("1.2.3.4.5.6.7.8"), &org));
	assert_int_equal(dns_session_count(f.dns), 8);
	assert_str(dns_session_at(f.dns, 1)->name, "_dmarc.2.3.4.5.6.7.8");
	end(&f);
	begin(&f, "");
	assert_ok(dmarc_org_domain(f.a, f.dns, ORG_TREEWALK, STR("com"), &org));
	assert_int_equal(dns_session_count(f.dns), 1);
	end(&f);
}

static const struct {
	const char *zone, *domain, *org; /* org NULL: RES_AGAIN */
} orgs[] = {
	{ EXAMPLE, "mail.example.com", "example.com" },
	{ EXAMPLE "_dmarc.mail.example.com TXT \"v=DMARC1; psd=n\"\n",
	    "a.mail.example.com", "mail.example.com" },
	{ "_dmarc.psd.example TXT \"v=DMARC1; psd=y\"\n", "sub.psd.example",
	    "sub.psd.example" },
	{ "_dmarc.psd.example TXT \"v=DMARC1; psd=y\"\n", "a.b.psd.example",
	    "b.psd.example" },
	{ "_dmarc.psd.example TXT \"v=DMARC1; psd=y\"\n", "psd.example",
	    "psd.example" },
	/* the label below a psd=y may never have been asked for */
	{ "_dmarc.example TXT \"v=DMARC1; psd=y\"\n",
	    "1.2.3.4.5.6.7.8.9.example", "9.example" },
	/* a record behind psd=y is not seen */
	{ "_dmarc.b.c.example TXT \"v=DMARC1; psd=y\"\n"
	  "_dmarc.example TXT \"v=DMARC1\"\n",
	    "x.a.b.c.example", "a.b.c.example" },
	{ "", "a.example", "a.example" },
	{ "_dmarc.example TXT !SERVFAIL\n", "a.example", NULL },
	/* decided before the failure is reached */
	{ "_dmarc.example TXT !SERVFAIL\n"
	  "_dmarc.a.example TXT \"v=DMARC1; psd=n\"\n",
	    "a.example", "a.example" },
};

static void
organizational_domains(void **state)
{
	for (size_t i = 0; i < sizeof orgs / sizeof *orgs; i++) {
		struct fixture f;
		struct str org;
		begin(&f, orgs[i].zone);
		enum res r = dmarc_org_domain(
		    f.a, f.dns, ORG_TREEWALK, str_c(orgs[i].domain), &org);
		assert_int_equal(r, orgs[i].org != NULL ? RES_OK : RES_AGAIN);
		if (r == RES_OK)
			assert_str(org, orgs[i].org);
		end(&f);
	}
}

/* A pass by an equal identifier costs one query, wherever it stands. */
static void
few_questions_are_asked(void **state)
{
	struct fixture f;
	begin(&f, EXAMPLE);
	struct dmarc_result r = evaluate(&f, ORG_TREEWALK, "example.com",
	    "other.org=pass", "mail.example.com=pass example.com=pass");
	assert_int_equal(dns_session_count(f.dns), 1);
	assert_str(r.aligned_domain, "example.com");
	end(&f);
	begin(&f, EXAMPLE);
	r = evaluate(&f, ORG_TREEWALK, "example.com", "mail.example.com=pass",
	    "www.example.com=pass");
	assert_str(r.aligned_domain, "mail.example.com");
	assert_str(r.org_domain, "example.com");
	end(&f);
}

static void
reasons_and_what_was_acted_on(void **state)
{
	struct fixture f;
	begin(&f,
	    "_dmarc.example.com TXT \"v=DMARC1; p=reject; sp=bad; "
	    "np=reject; rua=mailto:a@example.com\"\n");
	struct dmarc_result r = evaluate(&f, ORG_TREEWALK, "", "", "");
	assert_string_equal(r.reason, "no author domain");
	r = evaluate(
	    &f, ORG_TREEWALK, "a.b c.d e.f g.h i.j k.l m.n o.p q.r", "", "");
	assert_string_equal(r.reason, "too many author domains");
	r = evaluate(&f, ORG_TREEWALK, "example.com", "", "");
	assert_string_equal(r.reason, "no aligned identifier");
	assert_true(r.record.has_p && !r.record.has_sp && !r.record.has_np);
	assert_int_equal(r.record.np, DMARC_NONE);
	assert_string_equal(r.policy_tag, "p");
	end(&f);
}

static uint32_t
next_random(uint32_t *seed)
{
	*seed = *seed * 1664525 + 1013904223;
	return *seed >> 8;
}

/* Records and identifiers put together at random: the two engines agree on
 * every one, and only a temporary error makes a temperror. */
static void
the_library_agrees_on_random_records(void **state)
{
	static const char *const tags[] = { "p=none", "p=quarantine",
		"p=REJECT", "p=x", "sp=none", "sp=reject", "sp=", "np=none",
		"np=reject", "np=quarantine", "adkim=s", "aspf=s", "adkim=r",
		"adkim=bogus", "t=y", "t=n", "psd=n", "psd=y", "psd=u",
		"rua=mailto:a@b.example", "ruf=mailto:a@b.example!10m", "pct=0",
		"fo=1:d", "rf=iodef", "bogus", "x=y", "" };
	static const char *const names[] = { "example.com", "a.example.com",
		"b.example.com", "c.b.example.com", "com", "other.com",
		"example.net" };
	static const char *const words[] = { "pass", "pass", "fail", "none",
		"permerror" };
	uint32_t seed = 1;
	unsigned passes = 0, fails = 0;
	for (int round = 0; round < 20000; round++) {
		char zone[2048] = "", ids[4][64];
		for (unsigned k = 0; k < 3; k++) {
			char record[512] = "v=DMARC1";
			for (unsigned n = next_random(&seed) % 6; n > 0; n--) {
				size_t have = strlen(record);
				snprintf(record + have, sizeof record - have,
				    "; %s",
				    tags[next_random(&seed) %
					(sizeof tags / sizeof *tags)]);
			}
			size_t have = strlen(zone);
			snprintf(zone + have, sizeof zone - have,
			    "_dmarc.%s TXT \"%s\"\n",
			    names[next_random(&seed) % 7], record);
		}
		for (unsigned k = 0; k < 4; k++)
			snprintf(ids[k], sizeof ids[k], "%s=%s",
			    names[next_random(&seed) % 7],
			    words[next_random(&seed) % 5]);
		char dkim[200];
		snprintf(dkim, sizeof dkim, "%s %s", ids[1], ids[2]);
		struct fixture f;
		begin(&f, zone);
		struct dmarc_result r = evaluate(&f,
		    next_random(&seed) % 4 != 0 ? ORG_TREEWALK : ORG_PSL,
		    names[next_random(&seed) % 7], ids[0], dkim);
		assert_int_not_equal(r.result, AUTH_TEMPERROR);
		if (r.result == AUTH_PASS || r.result == AUTH_FAIL) {
			bool pass;
			enum dmarc_policy policy;
			assert_ok(dmarc_library_verdict(&r, &pass, &policy));
			assert_int_equal(pass, r.result == AUTH_PASS);
			if (!pass)
				assert_int_equal(policy, r.policy);
			passes += pass;
			fails += !pass;
		}
		end(&f);
	}
	/* the generator reaches both sides */
	assert_true(passes > 1000 && fails > 1000);
}

/* What libraries' notes say it gets wrong cannot reach it. */
static void
the_library_sees_checked_input_only(void **state)
{
	struct dmarc_result r = { .result = AUTH_TEMPERROR,
		.from = STR("example.com") };
	bool pass;
	enum dmarc_policy policy;
	assert_int_equal(
	    dmarc_library_verdict(&r, &pass, &policy), RES_INVALID);
	r.result = AUTH_FAIL;
	r.from = STR("example.com;x");
	assert_int_equal(
	    dmarc_library_verdict(&r, &pass, &policy), RES_INVALID);
	r.from = STR_EMPTY;
	assert_int_equal(
	    dmarc_library_verdict(&r, &pass, &policy), RES_INVALID);
	r.from = STR("com");
	r.policy = DMARC_QUARANTINE;
	assert_ok(dmarc_library_verdict(&r, &pass, &policy));
	assert_false(pass);
	assert_int_equal(policy, DMARC_QUARANTINE);
}

static void
names_too_long_are_no_records(void **state)
{
	char name[254];
	struct fixture f;
	struct str org;
	for (size_t i = 0; i < 253; i++)
		name[i] = i % 50 == 49 ? '.' : 'a';
	name[253] = '\0';
	begin(&f, "");
	struct dmarc_result r = evaluate(&f, ORG_TREEWALK, name, "", "");
	assert_int_equal(r.result, AUTH_NONE);
	assert_ok(
	    dmarc_org_domain(f.a, f.dns, ORG_TREEWALK, str_c(name), &org));
	end(&f);
}

static void
reports_go_where_they_are_wanted(void **state)
{
	static const char zone[] =
	    "example.com._report._dmarc.a.example TXT \"v=DMARC1\"\n"
	    "example.com._report._dmarc.b.example TXT \"v=DMARC1; "
	    "rua=mailto:x@b.example\"\n"
	    "example.com._report._dmarc.c.example TXT \"other\"\n"
	    "example.com._report._dmarc.d.example TXT !SERVFAIL\n";
	static const struct {
		const char *receiver;
		enum auth_result want;
	} rows[] = { { "a.example", AUTH_PASS }, { "b.example", AUTH_PASS },
		{ "c.example", AUTH_FAIL }, { "d.example", AUTH_TEMPERROR },
		{ "e.example", AUTH_FAIL } };
	struct fixture f;
	struct dmarc_record record = { .rua_count = 0 };
	begin(&f, zone);
	for (size_t i = 0; i < 5; i++) {
		enum auth_result got;
		assert_ok(dmarc_accepts_reports(f.a, f.dns, STR("example.com"),
		    str_c(rows[i].receiver), &got, i == 1 ? &record : NULL));
		assert_int_equal(got, rows[i].want);
	}
	assert_int_equal(record.rua_count, 1);
	assert_str(record.rua[0], "mailto:x@b.example");
	end(&f);
}

/* Too little memory is told as such, at whatever allocation it ends. */
static void
memory_can_run_out(void **state)
{
	static const char zone[] =
	    "_dmarc.example.com TXT \"v=DMARC1; p=reject; "
	    "rua=mailto:a@example.com\"\n";
	struct str from = STR("a.example.com");
	struct dmarc_identifier dkim = identifier("b.example.com=pass");
	struct dmarc_input in = { .from_domains = &from,
		.from_count = 1,
		.dkim = &dkim,
		.dkim_count = 1 };
	struct fixture f;
	unsigned failures = 0;
	enum res r = RES_NOMEM;
	begin(&f, zone);
	for (size_t room = 16; r != RES_OK; room += 64) {
		struct dmarc_result d = { .reason = "untouched" };
		struct arena *a = arena_new(room);
		r = dmarc_evaluate(a, f.dns, &in, &d);
		if (r != RES_OK) {
			assert_int_equal(r, RES_NOMEM);
			assert_string_equal(d.reason, "untouched");
			failures++;
		} else {
			assert_int_equal(d.result, AUTH_PASS);
		}
		arena_free(&a);
		assert_true(room < (size_t)1 << 20);
	}
	assert_true(failures > 10);
	end(&f);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(results_by_tree_walk),
		cmocka_unit_test(results_by_suffix_list),
		cmocka_unit_test(a_walk_asks_the_right_names),
		cmocka_unit_test(organizational_domains),
		cmocka_unit_test(few_questions_are_asked),
		cmocka_unit_test(reasons_and_what_was_acted_on),
		cmocka_unit_test(the_library_agrees_on_random_records),
		cmocka_unit_test(the_library_sees_checked_input_only),
		cmocka_unit_test(names_too_long_are_no_records),
		cmocka_unit_test(memory_can_run_out),
		cmocka_unit_test(reports_go_where_they_are_wanted),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
