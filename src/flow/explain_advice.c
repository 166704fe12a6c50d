/* What would have to change for another outcome: at the sender's, and here. */
#include "flow/explain_part.h"
#include "flow/trace.h"
#include "mail/domain.h"

/* --- outbound ------------------------------------------------------------------ */

static void
advise_signing(struct buf *out, struct str t)
{
	static const struct {
		const char *why, *advice;
	} rows[] = {
		{ "no key for the author's domain",
		    "make a key with `hanaper key generate DOMAIN`, or a "
		    "sign_table line that names another domain" },
		{ "key record is not published",
		    "publish what `hanaper key dns DOMAIN` prints; or "
		    "require_published_key = no where our DNS is not the "
		    "world's" },
		{ "published key record is another key",
		    "publish what `hanaper key dns DOMAIN` prints instead of "
		    "the present record" },
		{ "already signed",
		    "nothing; already_signed = add would sign once more" },
		{ "login does not match the author",
		    "log in as the author, or require_login_match = no" },
		{ "no signer",
		    "the keys in key_dir must be there, and readable to whoever "
		    "asks" },
		{ "signer unavailable",
		    "hanaperd's signer must run: its log says why not" },
		{ "no From field", "the program that made it must add From" },
		{ "several From fields", "there must be one From field" },
		{ "several domains in From",
		    "From must name addresses of one domain" },
		{ "no domain in From",
		    "From must name an address with a domain" },
		{ "From does not parse", "From must name a valid address" },
	};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
		if (explain_is(t, TRACE_UNSIGNED_WHY, rows[i].why))
			buf_addf(out, "  To be signed: %s\n", rows[i].advice);
}

/* --- inbound ------------------------------------------------------------------- */

/* The organization that an identifier must belong to. */
static struct str
author_org(struct str d)
{
	struct str org = record_find(d, PART_ORG_DOMAIN);
	return org.len != 0 ? org : record_find(d, PART_DOMAIN);
}

static void
advise_signature(struct buf *out, struct str s, struct str org)
{
	struct str domain = record_find(s, PART_DOMAIN);
	bool pass = explain_is(s, PART_RESULT, "pass");
	if (!domain_equal_or_below(domain, org)) {
		if (pass) {
			explain_pair(out, "  A signature of ", s, PART_DOMAIN);
			buf_add_c(out, " passes, but that is not the author's "
				       "domain\n");
		}
		return;
	}
	explain_pair(out, "  The signature of ", s, PART_DOMAIN);
	explain_pair(out, " (selector ", s, PART_SELECTOR);
	if (pass) {
		buf_add_c(out, ") passes, but the record asks for the very "
			       "same domain (adkim=s), or another policy "
			       "stands in between\n");
		return;
	}
	explain_pair(out, ") would have to pass, and is ", s, PART_RESULT);
	explain_pair(out, ": ", s, PART_REASON);
	explain_pair(out, "; ", s, PART_DIAGNOSIS);
	buf_add_char(out, '\n');
}

static void
advise_spf(struct buf *out, struct str t, struct str s, struct str org)
{
	bool pass = explain_is(s, PART_RESULT, "pass");
	if (explain_is(s, PART_IDENTITY, "helo"))
		return;
	if (domain_equal_or_below(record_find(s, PART_DOMAIN), org) && !pass) {
		explain_pair(out, "  The SPF record of ", s, PART_DOMAIN);
		explain_pair(out, " would have to name ", t,
		    explain_has(t, TRACE_JUDGED_CLIENT) ? TRACE_JUDGED_CLIENT :
							  TRACE_CLIENT);
		explain_pair(out, ", and ends at ", s, PART_MECHANISM);
		buf_add_char(out, '\n');
	} else if (pass) {
		explain_pair(out, "  SPF passes for ", s, PART_DOMAIN);
		buf_add_c(out, ", but that is not the author's domain: MAIL "
			       "FROM would have to be there\n");
	}
}

static void
advise_identifiers(struct buf *out, struct str t, struct str d)
{
	struct record_reader r;
	unsigned tag;
	struct str v, org = author_org(d);
	if (record_open(t, &r) == RES_OK)
		while (record_next(&r, &tag, &v)) {
			if (tag == TRACE_DKIM)
				advise_signature(out, v, org);
			else if (tag == TRACE_SPF)
				advise_spf(out, t, v, org);
		}
	buf_add_c(out, "  To pass: a valid signature with d= of ");
	explain_show(out, org);
	buf_add_c(out, " (or below), or SPF pass for a MAIL FROM there\n");
}

/* What this host could do about a message that fails. */
static void
advise_host(struct buf *out, struct str t, struct str d)
{
	struct str p = record_find(t, TRACE_POLICY);
	struct str arc = record_find(t, TRACE_ARC);
	bool stopped = !explain_is(p, PART_ACTION, "deliver");
	if (stopped && explain_is(arc, PART_RESULT, "pass")) {
		explain_pair(out, "  To believe the forwarder that sealed it: "
				  "trusted_sealers = ", arc, PART_DOMAIN);
		buf_add_char(out, '\n');
	}
	if (stopped)
		buf_add_c(out, "  To let such mail in: an [override] section "
			       "for its author, client, list or sealer\n");
	else if (!explain_is(d, PART_POLICY, "none") &&
	    explain_is(d, PART_SETTING, "note") &&
	    explain_is(d, PART_RESULT, "fail"))
		buf_add_c(out, "  To act on such mail: dmarc = quarantine or "
			       "reject\n");
}

static void
advise_dmarc(struct buf *out, struct str t, struct str d)
{
	if (explain_is(d, PART_RESULT, "fail"))
		advise_identifiers(out, t, d);
	else if (explain_is(d, PART_RESULT, "temperror"))
		buf_add_c(out, "  To be judged: the DNS must answer; "
			       "on_dns_error says what happens meanwhile\n");
	else if (explain_is(d, PART_RESULT, "none"))
		buf_add_c(out, "  To be protected: the author's domain must "
			       "publish a DMARC record\n");
}

static void
advise_inbound(struct buf *out, struct str t)
{
	struct str p = record_find(t, TRACE_POLICY);
	struct str d = record_find(t, TRACE_DMARC);
	if (explain_is(t, TRACE_REFUSAL, "limit"))
		buf_add_c(out, "  max_message_size and max_header_bytes are "
			       "the limits that can be set\n");
	advise_dmarc(out, t, d);
	if (explain_is(p, PART_CAUSE, "from") ||
	    explain_is(t, TRACE_AUTHOR_STATE, "several From fields"))
		buf_add_c(out, "  There must be one From field with valid "
			       "addresses of one domain; multi_from says what "
			       "happens otherwise\n");
	if (explain_is(p, PART_CAUSE, "spf"))
		buf_add_c(out, "  spf_reject lists the results that are "
			       "refused\n");
	advise_host(out, t, d);
}

void
explain_advice(struct buf *out, struct str t)
{
	size_t before;
	buf_add_c(out, "What would have to change\n");
	before = out->len;
	if (explain_is(t, TRACE_DIRECTION, "out"))
		advise_signing(out, t);
	else if (explain_is(t, TRACE_DIRECTION, "in"))
		advise_inbound(out, t);
	if (out->len == before)
		buf_add_c(out, "  Nothing.\n");
	buf_add_char(out, '\n');
}
