/* The table of design §5: configuration and verdicts in, decision out. */
#include "hn_test.h"

#include <stdio.h>

#include "flow/policy.h"

struct given {
	struct policy_facts facts;
	struct dmarc_result dmarc;
	struct spf_result spf;
	struct arc_result arc;
	struct dkim_result dkim[8];
	struct str recipients[8], from[16];
};

static enum auth_result
result_of(struct str word)
{
	for (enum auth_result r = AUTH_NONE; r <= AUTH_PERMERROR; r++)
		if (str_eq(word, str_c(auth_result_word(r))))
			return r;
	fail_msg("no result: %.*s", STR_ARG(word));
	return AUTH_NONE;
}

static void
read_from(struct given *g, struct str value)
{
	struct policy_facts *f = &g->facts;
	struct str part;
	static const char *const states[] = { [FROM_MISSING] = "missing",
		[FROM_MANY_FIELDS] = "many-fields",
		[FROM_NO_DOMAIN] = "no-domain",
		[FROM_UNPARSABLE] = "unparsable" };
	for (size_t i = 0; i < sizeof states / sizeof *states; i++)
		if (states[i] != NULL && str_eq(value, str_c(states[i]))) {
			f->from_state = (enum from_state)i;
			return;
		}
	while (str_split(&value, ',', &part))
		g->from[f->from_domain_count++] = part;
	f->from_state = f->from_domain_count > 1 ? FROM_MANY_DOMAINS : FROM_OK;
	f->match.from_domains = g->from;
	f->match.from_count = f->from_domain_count;
	g->dmarc.from = g->from[0];
}

/* One word of a row: "name=value" or "name". */
static void
read_word(struct given *g, struct str word)
{
	struct policy_facts *f = &g->facts;
	size_t equal = str_chr(word, '=');
	struct str name = str_sub(word, 0, equal);
	struct str value =
	    equal != SIZE_MAX ? str_skip(word, equal + 1) : STR("");
	struct str part;
	size_t colon = str_chr(value, ':');
	struct str before = str_sub(value, 0, colon);
	struct str after = str_skip(value, before.len + 1);
	if (str_eq(name, STR("from"))) {
		read_from(g, value);
	} else if (str_eq(name, STR("dmarc"))) {
		g->dmarc.result = result_of(before);
		g->dmarc.has_record = after.len != 0;
		for (enum dmarc_policy p = DMARC_NONE; p <= DMARC_REJECT; p++)
			if (str_eq(after, str_c(dmarc_policy_word(p))))
				g->dmarc.policy = g->dmarc.record.p = p;
		f->dmarc = &g->dmarc;
	} else if (str_eq(name, STR("testing"))) {
		g->dmarc.record.testing = true;
	} else if (str_eq(name, STR("spf"))) {
		g->spf.result = result_of(before);
		g->spf.domain = after;
		f->spf = &g->spf;
	} else if (str_eq(name, STR("says"))) {
		g->spf.explanation = value;
	} else if (str_eq(name, STR("dkim"))) {
		g->dkim[f->dkim_count].result = result_of(before);
		g->dkim[f->dkim_count++].d = after;
	} else if (str_eq(name, STR("list"))) {
		f->mailing_list = true;
		f->match.list_id = value;
	} else if (str_eq(name, STR("sealer"))) {
		g->arc.result = AUTH_PASS;
		f->match.sealer = value;
		f->arc = &g->arc;
	} else if (str_eq(name, STR("arctemp"))) {
		g->arc.result = AUTH_FAIL;
		g->arc.temporary = true;
		f->arc = &g->arc;
	} else if (str_eq(name, STR("client"))) {
		assert_int_equal(ip_parse(value, &f->match.client), RES_OK);
	} else if (str_eq(name, STR("ptr"))) {
		f->match.ptr = value;
	} else if (str_eq(name, STR("rcpt"))) {
		while (str_split(&value, ',', &part))
			g->recipients[f->recipient_count++] = part;
	} else if (str_eq(name, STR("outbound"))) {
		f->judged = false;
		f->match.outbound = true;
	} else {
		fail_msg("unknown word %.*s", STR_ARG(word));
	}
}

static void
read_facts(struct given *g, const char *text)
{
	struct str rest = str_c(text), word;
	memset(g, 0, sizeof *g);
	g->facts.judged = true;
	g->facts.recipients = g->recipients;
	g->facts.dkim = g->dkim;
	g->facts.id = STR("ID1");
	while (rest.len != 0 && str_split(&rest, ' ', &word))
		read_word(g, word);
}

/* "action cause", then what else is worth telling. */
static void
describe(const struct policy_decision *d, char *out, size_t size)
{
	int n = snprintf(out, size, "%s %s", policy_action_word(d->action),
	    policy_cause_word(d->cause));
	if (d->override_type != NULL)
		n += snprintf(out + n, size - (size_t)n, " [%s: %.*s]",
		    d->override_type, STR_ARG(d->override_reason));
	if (d->shadowed != POLICY_DELIVER)
		n += snprintf(out + n, size - (size_t)n, " shadow=%s",
		    policy_action_word(d->shadowed));
	if (d->asked != d->action)
		n += snprintf(out + n, size - (size_t)n, " asked=%s/%s",
		    policy_action_word(d->asked),
		    policy_cause_word(d->asked_cause));
	if (d->recipients_differ)
		n += snprintf(out + n, size - (size_t)n, " differ");
	if (d->dmarc_disposition != DMARC_NONE)
		n += snprintf(out + n, size - (size_t)n, " disposition=%s",
		    dmarc_policy_word(d->dmarc_disposition));
	if (d->code != NULL)
		snprintf(
		    out + n, size - (size_t)n, " %s %s", d->code, d->enhanced);
}

static struct config *
load(const char *text)
{
	struct err err = { "" };
	struct config *c = NULL;
	if (config_from_text(str_c(text), "test.conf", &err, &c) != RES_OK)
		fail_msg("%s", err.text);
	return c;
}

#define FAIL_REJECT "from=a.example dmarc=fail:reject spf=fail:b.example "

static const struct {
	const char *config, *facts, *want;
} rows[] = {
	/* DMARC: what the owner asks for, at most what the file says */
	{ "", "from=a.example dmarc=pass:reject", "deliver none" },
	{ "", "from=a.example dmarc=none", "deliver none" },
	{ "", FAIL_REJECT, "deliver none [local_policy: dmarc = note]" },
	{ "", "from=a.example dmarc=fail:none", "deliver none" },
	{ "dmarc = off\n", FAIL_REJECT,
	    "deliver none [local_policy: dmarc = off]" },
	{ "dmarc = off\n", "from=a.example", "deliver none" },
	{ "dmarc = quarantine\n", FAIL_REJECT,
	    "quarantine dmarc [local_policy: dmarc = quarantine] "
	    "disposition=quarantine" },
	{ "dmarc = quarantine\n", "from=a.example dmarc=fail:quarantine",
	    "quarantine dmarc disposition=quarantine" },
	{ "dmarc = quarantine\nquarantine = hold\n",
	    "from=a.example dmarc=fail:quarantine",
	    "hold dmarc disposition=quarantine" },
	{ "dmarc = reject\n", FAIL_REJECT,
	    "reject dmarc disposition=reject 550 5.7.26" },
	/* RFC 7372: what passes for somebody else, what is missing */
	{ "dmarc = reject\n", FAIL_REJECT "dkim=pass:c.example",
	    "reject dmarc disposition=reject 550 5.7.22" },
	{ "dmarc = reject\n", "from=a.x dmarc=fail:reject spf=pass:c.x",
	    "reject dmarc disposition=reject 550 5.7.20" },
	{ "dmarc = reject\n",
	    "from=a.x dmarc=fail:reject spf=pass:c.x dkim=policy:a.x",
	    "reject dmarc disposition=reject 550 5.7.21" },
	{ "dmarc = reject\n",
	    "from=a.x dmarc=fail:reject spf=pass:c.x dkim=pass:c.x",
	    "reject dmarc disposition=reject 550 5.7.22" },
	{ "dmarc = reject\n", "from=a.example dmarc=fail:quarantine",
	    "quarantine dmarc disposition=quarantine" },
	{ "dmarc = reject\n", "from=a.example dmarc=fail:none",
	    "deliver none" },
	{ "dmarc = reject\n", "from=a.example dmarc=fail:quarantine testing",
	    "quarantine dmarc [policy_test_mode: t=y] "
	    "disposition=quarantine" },
	{ "dmarc = reject\n", "from=a.example dmarc=permerror",
	    "deliver none" },
	{ "dmarc = off\n[override f]\nfrom_domain = a.example\n"
	  "dmarc = reject\n",
	    FAIL_REJECT,
	    "reject dmarc [local_policy: f] asked=deliver/none "
	    "disposition=reject 550 5.7.26" },
	/* exemptions */
	{ "dmarc = reject\ntrusted_sealers = .lists.example\n",
	    FAIL_REJECT "sealer=x.lists.example",
	    "deliver none [trusted_forwarder: sealed by a trusted sealer] "
	    "asked=reject/dmarc" },
	{ "dmarc = reject\ntrusted_sealers = .lists.example\n",
	    FAIL_REJECT "sealer=xlists.example",
	    "reject dmarc disposition=reject 550 5.7.26" },
	{ "dmarc = reject\n", FAIL_REJECT "sealer=lists.example",
	    "reject dmarc disposition=reject 550 5.7.26" },
	{ "dmarc = reject\n", FAIL_REJECT "list=l.example",
	    "quarantine dmarc [mailing_list: sent by a mailing list] "
	    "asked=reject/dmarc disposition=quarantine" },
	{ "dmarc = reject\n", "from=a.example dmarc=fail:quarantine list",
	    "quarantine dmarc disposition=quarantine" },
	{ "dmarc = reject\ndmarc_lists = enforce\n", FAIL_REJECT "list",
	    "reject dmarc disposition=reject 550 5.7.26" },
	/* outbound and judged mail is never judged as inbound */
	{ "dmarc = reject\nspf_reject = fail\n", FAIL_REJECT "outbound",
	    "deliver none" },
	{ "", "from=many-fields outbound", "deliver none" },
	/* several From fields or domains, unparsable */
	{ "", "from=many-fields dmarc=pass:none", "reject from 550 5.7.1" },
	{ "multi_from = quarantine\n", "from=many-fields", "quarantine from" },
	{ "multi_from = quarantine\nquarantine = hold\n", "from=many-fields",
	    "hold from" },
	{ "multi_from = evaluate\n", "from=many-fields dmarc=fail:reject",
	    "deliver none [local_policy: dmarc = note]" },
	{ "multi_from = evaluate\ndmarc = reject\n",
	    "from=many-fields dmarc=fail:reject",
	    "reject dmarc disposition=reject 550 5.7.26" },
	{ "", "from=a.x,b.x dmarc=fail:reject",
	    "deliver none [local_policy: dmarc = note]" },
	{ "dmarc = reject\n", "from=a.x,b.x dmarc=fail:quarantine",
	    "quarantine dmarc disposition=quarantine" },
	{ "", "from=a.x,b.x,c.x,d.x,e.x,f.x,g.x,h.x dmarc=pass",
	    "deliver none" },
	{ "", "from=a.x,b.x,c.x,d.x,e.x,f.x,g.x,h.x,i.x dmarc=permerror",
	    "reject from 550 5.7.1" },
	{ "", "from=unparsable dmarc=permerror", "deliver none" },
	{ "dmarc = quarantine\n", "from=unparsable dmarc=permerror",
	    "quarantine from" },
	{ "dmarc = reject\n", "from=missing dmarc=permerror",
	    "quarantine from" },
	{ "dmarc = shadow reject\n", "from=no-domain dmarc=permerror",
	    "deliver none [local_policy: shadow] shadow=quarantine "
	    "asked=quarantine/from" },
	/* SPF */
	{ "spf_reject = fail\n", "from=a.x dmarc=none spf=fail:b.example",
	    "reject spf 550 5.7.23" },
	{ "spf_reject = fail\n", "from=a.x dmarc=none spf=softfail:b.example",
	    "deliver none" },
	{ "spf_reject = fail softfail permerror\n",
	    "from=a.x dmarc=none spf=permerror:b.example",
	    "reject spf 550 5.7.24" },
	{ "spf_reject = fail\n", "from=a.x dmarc=pass:none spf=fail:b.example",
	    "deliver none [local_policy: dmarc passes] asked=reject/spf" },
	{ "spf_reject = fail\ntrusted_sealers = s.example\n",
	    "from=a.x dmarc=none spf=fail:b.example sealer=s.example",
	    "deliver none [trusted_forwarder: sealed by a trusted sealer] "
	    "asked=reject/spf" },
	{ "spf_reject = shadow fail\n",
	    "from=a.x dmarc=none spf=fail:b.example",
	    "deliver none [local_policy: shadow] shadow=reject "
	    "asked=reject/spf" },
	/* DNS failures of something decisive */
	{ "", "from=a.x dmarc=temperror", "deliver none" },
	{ "dmarc = reject\n", "from=a.x dmarc=temperror", "deliver none" },
	{ "on_dns_error = tempfail\n", "from=a.x dmarc=temperror",
	    "tempfail dns 451 4.4.3" },
	{ "on_dns_error = tempfail\n",
	    "from=a.x dmarc=temperror spf=temperror:b.example",
	    "tempfail dns 451 4.4.3" },
	{ "on_dns_error = tempfail\n",
	    "from=a.x dmarc=temperror spf=fail:b.x dkim=temperror:a.x",
	    "tempfail dns 451 4.7.5" },
	{ "on_dns_error = tempfail\ndmarc = off\n", "from=a.x dmarc=temperror",
	    "deliver none" },
	{ "on_dns_error = tempfail\n",
	    "from=a.x dmarc=pass:none spf=temperror:b.x dkim=temperror:c.x",
	    "deliver none" },
	{ "on_dns_error = tempfail\n", "from=a.x dmarc=none spf=temperror:b.x",
	    "deliver none" },
	{ "on_dns_error = tempfail\nspf_reject = fail\n",
	    "from=a.x dmarc=none spf=temperror:b.x", "tempfail dns 451 4.4.3" },
	{ "on_dns_error = tempfail\nspf_reject = fail\n",
	    "from=a.x dmarc=temperror spf=fail:b.x", "reject spf 550 5.7.23" },
	{ "on_dns_error = tempfail\nshadow = yes\n", "from=a.x dmarc=temperror",
	    "deliver none [local_policy: shadow] shadow=tempfail "
	    "asked=tempfail/dns" },
	/* a trusted sealer that could not be seen is no reason to reject */
	{ "dmarc = reject\ntrusted_sealers = s.example\n",
	    FAIL_REJECT "arctemp",
	    "deliver none [other: the ARC chain could not be checked now] "
	    "asked=reject/dns" },
	{ "dmarc = reject\ntrusted_sealers = s.example\n"
	  "on_dns_error = tempfail\n",
	    FAIL_REJECT "arctemp",
	    "tempfail dns [other: the ARC chain could not be checked now] "
	    "asked=reject/dns 451 4.7.5" },
	{ "dmarc = reject\n", FAIL_REJECT "arctemp",
	    "reject dmarc disposition=reject 550 5.7.26" },
	/* shadow */
	{ "shadow = yes\ndmarc = reject\n", FAIL_REJECT,
	    "deliver none [local_policy: shadow] shadow=reject "
	    "asked=reject/dmarc" },
	{ "dmarc = shadow reject\nspf_reject = fail\n", FAIL_REJECT,
	    "reject spf 550 5.7.23" },
	{ "dmarc = quarantine\nspf_reject = shadow fail\n",
	    "from=a.x dmarc=fail:quarantine spf=fail:b.x",
	    "quarantine dmarc [local_policy: shadow] shadow=reject "
	    "asked=reject/spf disposition=quarantine" },
	{ "multi_from = shadow reject\n", "from=many-fields",
	    "deliver none [local_policy: shadow] shadow=reject "
	    "asked=reject/from" },
	/* overrides */
	{ "dmarc = reject\n[override f]\nfrom_domain = a.example\n"
	  "dmarc = note\nreason = known broken\n",
	    FAIL_REJECT,
	    "deliver none [local_policy: known broken] asked=reject/dmarc" },
	{ "dmarc = reject\n[override f]\nclient = 192.0.2.0/24\n"
	  "dmarc = quarantine\n",
	    FAIL_REJECT "client=192.0.2.7",
	    "quarantine dmarc [trusted_forwarder: f] asked=reject/dmarc "
	    "disposition=quarantine" },
	{ "dmarc = reject\n[override f]\nclient = 192.0.2.0/24\n"
	  "dmarc = quarantine\n",
	    FAIL_REJECT "client=192.0.3.7",
	    "reject dmarc disposition=reject 550 5.7.26" },
	{ "dmarc = reject\n[override f]\nptr = .fwd.example\ndmarc = note\n",
	    FAIL_REJECT "ptr=mx1.fwd.example",
	    "deliver none [trusted_forwarder: f] asked=reject/dmarc" },
	{ "dmarc = reject\n[override f]\nlist_id = l.example\ndmarc = off\n",
	    FAIL_REJECT "list=l.example",
	    "deliver none [mailing_list: f] asked=reject/dmarc" },
	{ "dmarc = reject\n[override f]\nsealer = s.example\ndmarc = note\n",
	    FAIL_REJECT "sealer=s.example",
	    "deliver none [trusted_forwarder: f] asked=reject/dmarc" },
	{ "dmarc = note\n[override f]\nfrom_domain = a.example\n"
	  "dmarc = reject\nreason = phished\n",
	    FAIL_REJECT,
	    "reject dmarc [local_policy: phished] asked=deliver/none "
	    "disposition=reject 550 5.7.26" },
	{ "dmarc = reject\n[override f]\nfrom_domain = a.example\n"
	  "dmarc = shadow reject\n",
	    FAIL_REJECT,
	    "deliver none [local_policy: f] shadow=reject "
	    "asked=reject/dmarc" },
	{ "spf_reject = fail\n[override f]\nclient = 192.0.2.1\n"
	  "spf_reject = none\n",
	    "from=a.x dmarc=none spf=fail:b.x client=192.0.2.1",
	    "deliver none [trusted_forwarder: f] asked=reject/spf" },
	{ "[override f]\nclient = 192.0.2.1\nmulti_from = evaluate\n",
	    "from=many-fields client=192.0.2.1",
	    "deliver none [trusted_forwarder: f] asked=reject/from" },
	{ "dmarc = quarantine\n[override f]\nfrom_domain = .example\n"
	  "quarantine = hold\n",
	    "from=a.example dmarc=fail:quarantine",
	    "hold dmarc [local_policy: f] asked=quarantine/dmarc "
	    "disposition=quarantine" },
	/* all named lists must match, and the first section that sets wins */
	{ "dmarc = reject\n[override f]\nfrom_domain = a.example\n"
	  "client = 192.0.2.1\ndmarc = note\n",
	    FAIL_REJECT "client=192.0.2.2",
	    "reject dmarc disposition=reject 550 5.7.26" },
	{ "dmarc = reject\n[override f]\nfrom_domain = a.example\n"
	  "quarantine = hold\n[override g]\nfrom_domain = a.example\n"
	  "dmarc = quarantine\nquarantine = header\n",
	    FAIL_REJECT,
	    "hold dmarc [local_policy: g] asked=reject/dmarc "
	    "disposition=quarantine" },
	{ "dmarc = reject\n[override f]\ndirection = out\ndmarc = off\n",
	    FAIL_REJECT, "reject dmarc disposition=reject 550 5.7.26" },
	/* recipients: the mildest for all */
	{ "dmarc = reject\n[override f]\nrecipient = abuse@h.example\n"
	  "dmarc = note\n",
	    FAIL_REJECT "rcpt=joe@h.example,Abuse@H.example",
	    "deliver none [local_policy: f] asked=reject/dmarc differ" },
	{ "dmarc = reject\n[override f]\nrecipient = abuse@h.example\n"
	  "dmarc = note\n",
	    FAIL_REJECT "rcpt=abuse@h.example,joe@h.example",
	    "deliver none [local_policy: f] asked=reject/dmarc differ" },
	{ "dmarc = reject\n[override f]\nrecipient = abuse@h.example\n"
	  "dmarc = note\n",
	    FAIL_REJECT "rcpt=joe@h.example,jim@h.example",
	    "reject dmarc disposition=reject 550 5.7.26" },
	{ "dmarc = reject\n[override f]\nrecipient = .h.example\n"
	  "dmarc = note\n",
	    FAIL_REJECT "rcpt=joe@h.example",
	    "reject dmarc disposition=reject 550 5.7.26" },
	{ "dmarc = reject\n[override f]\nrecipient = .h.example\n"
	  "dmarc = note\n",
	    FAIL_REJECT "rcpt=joe@x.h.example",
	    "deliver none [local_policy: f] asked=reject/dmarc" },
	{ "dmarc = reject\n[override f]\nrecipient = h.example\n"
	  "dmarc = note\n",
	    FAIL_REJECT, "reject dmarc disposition=reject 550 5.7.26" },
	{ "dmarc = note\n[override f]\nrecipient = h.example\n"
	  "dmarc = reject\n",
	    FAIL_REJECT "rcpt=a@h.example,b@g.example",
	    "deliver none [local_policy: dmarc = note] differ" },
	/* an exemption for one author is none for two */
	{ "dmarc = reject\n[override f]\nfrom_domain = a.x\ndmarc = note\n",
	    "from=a.x,b.x dmarc=fail:reject",
	    "reject dmarc disposition=reject 550 5.7.26" },
};

static void
every_situation_of_the_table(void **state)
{
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct config *c = load(rows[i].config);
		struct arena *a = arena_new(0);
		struct policy_decision d;
		struct given g;
		char got[400];
		read_facts(&g, rows[i].facts);
		assert_ok(policy_decide(a, c, &g.facts, &d));
		describe(&d, got, sizeof got);
		if (strcmp(got, rows[i].want) != 0)
			print_error("row %zu: %s / %s\n", i, rows[i].config,
			    rows[i].facts);
		assert_string_equal(got, rows[i].want);
		bool refused = d.action >= POLICY_TEMPFAIL;
		assert_int_equal(d.code != NULL, refused);
		assert_int_equal(d.text.len != 0, refused);
		if (refused) {
			assert_true(str_find(d.text, STR("ID1")) != SIZE_MAX);
			assert_true(d.text.len <= POLICY_MAX_TEXT);
		}
		arena_free(&a);
		config_unref(&c);
	}
}

static const struct {
	const char *config, *facts, *want;
} texts[] = {
	{ "dmarc = reject\n",
	    "from=a.example dmarc=fail:reject spf=pass:b.example "
	    "dkim=fail:a.example dkim=pass:c.example",
	    "Email rejected per DMARC policy for a.example; SPF: pass "
	    "b.example; DKIM: fail a.example, pass c.example; id ID1" },
	{ "dmarc = reject\n", "from=a.example dmarc=fail:reject",
	    "Email rejected per DMARC policy for a.example; SPF: not checked; "
	    "DKIM: none; id ID1" },
	{ "dmarc = reject\nreject_text = No, {from}. 100% sure\n",
	    "from=a.example dmarc=fail:reject",
	    "No, a.example. 100? sure; id ID1" },
	{ "dmarc = reject\nreject_text = {id}: {spf} {dkim}\n",
	    "from=a.x dmarc=fail:reject spf=permerror dkim=fail:a dkim=fail:b "
	    "dkim=fail:c dkim=fail:d",
	    "ID1: permerror fail a, fail b, fail c, ..." },
	{ "spf_reject = fail\n",
	    "from=a.x dmarc=none spf=fail:b.example says=50%\xc3\xa9",
	    "SPF fail for b.example, which says: 50???; id ID1" },
	{ "", "from=many-fields",
	    "Message has more than one From field; id ID1" },
	{ "on_dns_error = tempfail\n", "from=a.x dmarc=temperror",
	    "Temporary DNS failure while looking for the DMARC policy of a.x; "
	    "id ID1" },
	{ "on_dns_error = tempfail\n",
	    "from=a.x dmarc=temperror dkim=temperror:d.x",
	    "DKIM key unavailable now for d.x; id ID1" },
};

static void
refusals_say_why(void **state)
{
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		struct config *c = load(texts[i].config);
		struct arena *a = arena_new(0);
		struct policy_decision d;
		struct given g;
		read_facts(&g, texts[i].facts);
		assert_ok(policy_decide(a, c, &g.facts, &d));
		assert_str(d.text, texts[i].want);
		arena_free(&a);
		config_unref(&c);
	}
}

/* The longest names there are: the text stays within its bound and keeps the
 * author's domain and the id. */
static void
long_names_fit(void **state)
{
	struct config *c =
	    load("dmarc = reject\nreject_text = "
		 "{from}{from}{from}{from}{from}{spf}{dkim}{dkim}\n");
	struct arena *a = arena_new(0);
	struct policy_decision d;
	struct given g;
	char name[254];
	for (size_t i = 0; i < 253; i++)
		name[i] = i % 50 == 49 ? '.' : 'a';
	name[253] = '\0';
	read_facts(&g,
	    "from=a.x dmarc=fail:reject spf=fail dkim=fail "
	    "dkim=fail dkim=fail dkim=fail");
	g.dmarc.from = g.spf.domain = str_c(name);
	for (size_t i = 0; i < 4; i++)
		g.dkim[i].d = str_c(name);
	assert_ok(policy_decide(a, c, &g.facts, &d));
	assert_true(d.text.len <= POLICY_MAX_TEXT);
	assert_true(str_starts(
	    d.text, STR("Email rejected per DMARC policy for ...aaa")));
	assert_true(str_ends(d.text, STR("; id ID1")));
	arena_free(&a);
	config_unref(&c);
}

static void
dmarc_is_wanted_where_it_is_looked_at(void **state)
{
	static const struct {
		const char *config;
		bool want;
	} wants[] = {
		{ "", true },
		{ "dmarc = off\n", false },
		{ "dmarc = off\n[override f]\nptr = a\ndmarc = note\n", true },
		{ "dmarc = off\n[override f]\nptr = a\ndmarc = off\n", false },
		{ "dmarc = off\n[override f]\nptr = a\nquarantine = hold\n",
		    false },
	};
	for (size_t i = 0; i < sizeof wants / sizeof *wants; i++) {
		struct config *c = load(wants[i].config);
		assert_int_equal(policy_wants_dmarc(c), wants[i].want);
		config_unref(&c);
	}
}

/* Too little memory gives RES_NOMEM, never half a decision. */
static void
memory_can_run_out(void **state)
{
	struct config *c = load("dmarc = reject\n[override f]\n"
				"client = 192.0.2.1\ndmarc = off\n");
	struct policy_decision d;
	struct given g;
	enum res r = RES_NOMEM;
	read_facts(&g, FAIL_REJECT);
	for (size_t room = 16; r != RES_OK; room += 16) {
		struct arena *a = arena_new(room);
		d = (struct policy_decision){ .code = "untouched" };
		r = policy_decide(a, c, &g.facts, &d);
		assert_true(room < 4096);
		if (r != RES_OK) {
			assert_int_equal(r, RES_NOMEM);
			assert_string_equal(d.code, "untouched");
		}
		arena_free(&a);
	}
	assert_string_equal(d.code, "550");
	config_unref(&c);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_situation_of_the_table),
		cmocka_unit_test(refusals_say_why),
		cmocka_unit_test(long_names_fit),
		cmocka_unit_test(dmarc_is_wanted_where_it_is_looked_at),
		cmocka_unit_test(memory_can_run_out),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
