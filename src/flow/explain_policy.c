/* Which rule decided about an inbound message. */
#include "flow/explain_part.h"
#include "flow/trace.h"

static const char *
done_word(struct str policy, unsigned tag)
{
	static const struct {
		const char *word, *text;
	} rows[] = {
		{ "quarantine", "marked as quarantined" },
		{ "hold", "held" },
		{ "tempfail", "put off" },
		{ "reject", "refused" },
	};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
		if (explain_is(policy, tag, rows[i].word))
			return rows[i].text;
	return "delivered";
}

static void
say_dmarc(struct buf *out, struct str d)
{
	explain_pair(out, "DMARC fails, and _dmarc.", d, PART_RECORD_DOMAIN);
	explain_pair(out, " asks for ", d, PART_POLICY);
	explain_pair(out, " (tag ", d, PART_POLICY_TAG);
	buf_add_c(out, ")");
}

static void
say_spf(struct buf *out, struct str t)
{
	struct record_reader r;
	unsigned tag;
	struct str v;
	buf_add_c(out, "SPF of MAIL FROM");
	if (record_open(t, &r) == RES_OK)
		while (record_next(&r, &tag, &v))
			if (tag == TRACE_SPF &&
			    explain_is(v, PART_IDENTITY, "mailfrom"))
				explain_pair(out, " is ", v, PART_RESULT);
	buf_add_c(out, ", which spf_reject names");
}

/* Why the cause in `tag` asks for what it asks for. */
static void
say_cause(struct buf *out, struct str t, unsigned tag)
{
	struct str p = record_find(t, TRACE_POLICY);
	if (explain_is(p, tag, "dmarc")) {
		say_dmarc(out, record_find(t, TRACE_DMARC));
	} else if (explain_is(p, tag, "spf")) {
		say_spf(out, t);
	} else if (explain_is(p, tag, "dns")) {
		buf_add_c(out, "the DNS does not answer what the verdict rests "
			       "on, and on_dns_error = tempfail");
	} else if (explain_has(t, TRACE_AUTHOR)) {
		explain_pair(out, "", t, TRACE_AUTHOR_STATE);
		buf_add_c(out, ", which multi_from forbids");
	} else {
		explain_pair(out, "", t, TRACE_AUTHOR_STATE);
		buf_add_c(out, ": nobody's DMARC policy could cover it, and "
			       "dmarc is quarantine or reject");
	}
}

/* Nothing asked for more than delivery. */
static void
say_nothing(struct buf *out, struct str t)
{
	struct str d = record_find(t, TRACE_DMARC);
	if (d.len == 0) {
		buf_add_c(out, "DMARC is not looked at (dmarc = off)");
	} else if (explain_is(d, PART_RESULT, "pass")) {
		buf_add_c(out, "DMARC passes");
	} else if (explain_is(d, PART_RESULT, "fail") &&
	    explain_is(d, PART_POLICY, "none")) {
		explain_pair(out, "DMARC fails, but _dmarc.", d,
		    PART_RECORD_DOMAIN);
		buf_add_c(out, " asks for nothing");
	} else if (explain_is(d, PART_RESULT, "fail")) {
		say_dmarc(out, d);
		explain_pair(out, "; dmarc = ", d, PART_SETTING);
	} else if (explain_is(d, PART_RESULT, "temperror")) {
		buf_add_c(out, "DMARC could not be judged, which is no fail "
			       "(on_dns_error = accept)");
	} else if (explain_is(d, PART_RESULT, "permerror")) {
		explain_pair(out, "DMARC cannot be judged, ", d, PART_REASON);
		explain_pair(out, "; dmarc = ", d, PART_SETTING);
	} else {
		buf_add_c(out, "the author's domain publishes no DMARC policy");
	}
}

/* Why it is another action than the domain's owner or the settings want. */
static void
say_override(struct buf *out, struct str p)
{
	bool named = explain_has(p, PART_RULE);
	bool told = !named ||
	    !str_eq(record_find(p, PART_RULE),
		record_find(p, PART_OVERRIDE_REASON));
	buf_add_c(out, "  The reason: ");
	if (explain_is(p, PART_OVERRIDE, "policy_test_mode"))
		buf_add_c(out, "the domain is only testing its policy, ");
	if (told)
		explain_pair(out, "", p, PART_OVERRIDE_REASON);
	if (named)
		explain_pair(
		    out, told ? ", [override " : "[override ", p, PART_RULE);
	buf_add_c(out, named ? "]" : "");
	explain_pair(out, " (in reports: ", p, PART_OVERRIDE);
	buf_add_c(out, ")\n");
}

/* What was done, and why nothing or something asked for it. */
static void
say_action(struct buf *out, struct str t, struct str p)
{
	bool delivered = explain_is(p, PART_ACTION, "deliver");
	buf_addf(out, "  It was %s: ", done_word(p, PART_ACTION));
	if (delivered)
		say_nothing(out, t);
	else
		say_cause(out, t, PART_CAUSE);
	buf_add_char(out, '\n');
}

/* The same where exceptions, overrides or shadow made it another action than
 * the settings alone come to. */
static void
say_difference(struct buf *out, struct str t, struct str p)
{
	bool milder = !explain_is(p, PART_ASKED, "deliver");
	buf_addf(out, "  It was %s, where the settings alone would have had it "
		      "%s: ",
	    done_word(p, PART_ACTION), done_word(p, PART_ASKED));
	say_cause(out, t, milder ? PART_ASKED_CAUSE : PART_CAUSE);
	buf_add_char(out, '\n');
	if (milder && !explain_is(p, PART_ACTION, "deliver") &&
	    !str_eq(record_find(p, PART_CAUSE),
		record_find(p, PART_ASKED_CAUSE)))
		say_action(out, t, p);
}

void
explain_policy(struct buf *out, struct str t)
{
	struct str p = record_find(t, TRACE_POLICY);
	buf_add_c(out, "What decided\n");
	if (explain_has(t, TRACE_REFUSAL)) {
		explain_pair(out, "  A limit or fault of this host (", t,
		    TRACE_REFUSAL);
		buf_add_c(out, "), whatever the verdicts say.\n\n");
		return;
	}
	if (str_eq(record_find(p, PART_ASKED), record_find(p, PART_ACTION)))
		say_action(out, t, p);
	else
		say_difference(out, t, p);
	if (explain_has(p, PART_OVERRIDE))
		say_override(out, p);
	if (explain_has(p, PART_SHADOWED))
		buf_addf(out, "  Without shadow it would have been %s\n",
		    done_word(p, PART_SHADOWED));
	if (explain_number(p, PART_DIFFER) != 0)
		buf_add_c(out, "  The recipients have different rules: the "
			       "mildest was applied to all, as there is one "
			       "reply\n");
	buf_add_char(out, '\n');
}
