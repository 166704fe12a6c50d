#include "flow/explain.h"

#include "base/clock.h"
#include "base/codec.h"
#include "flow/explain_part.h"
#include "flow/trace.h"

/* --- the message ---------------------------------------------------------------- */

static void
show_list(struct buf *out, struct str t, unsigned wanted)
{
	struct record_reader r;
	unsigned tag;
	struct str v;
	if (record_open(t, &r) != RES_OK)
		return;
	while (record_next(&r, &tag, &v))
		if (tag == wanted) {
			buf_add_char(out, ' ');
			explain_show(out, v);
		}
}

static void
show_envelope(struct buf *out, struct str t)
{
	uint64_t rcpts = explain_number(t, TRACE_RCPT_COUNT);
	buf_add_c(out, "Message ");
	explain_show(out, record_find(t, TRACE_ID));
	explain_pair(out, ", queue id ", t, TRACE_QUEUE_ID);
	buf_add_c(out, ", ");
	clock_format_us(out, (int64_t)explain_number(t, TRACE_TIME));
	buf_add_c(out, "\n  from <");
	explain_show(out, record_find(t, TRACE_MAIL_FROM));
	if (rcpts == 0)
		buf_add_c(out, ">, no recipient given");
	else
		buf_addf(out, "> to %llu recipient%s:",
		    (unsigned long long)rcpts, rcpts == 1 ? "" : "s");
	show_list(out, t, TRACE_RCPT);
	buf_add_c(out, "\n  client");
	if (!explain_has(t, TRACE_CLIENT))
		buf_add_c(out, " without an address");
	explain_pair(out, " ", t, TRACE_CLIENT);
	explain_pair(out, " ", t, TRACE_CLIENT_NAME);
	explain_pair(out, ", HELO ", t, TRACE_HELO);
	explain_pair(out, ", logged in as ", t, TRACE_AUTH);
	explain_pair(out, "\n  a trusted relay; judged as of the client before "
			  "it: ", t, TRACE_JUDGED_CLIENT);
	buf_addf(out, "\n  %s because: ",
	    explain_is(t, TRACE_DIRECTION, "out") ? "outbound" :
	    explain_is(t, TRACE_DIRECTION, "seen") ? "judged before" : "inbound");
	explain_show(out, record_find(t, TRACE_DIRECTION_WHY));
	buf_add_c(out, "\n  author:");
	show_list(out, t, TRACE_AUTHOR);
	if (!explain_is(t, TRACE_AUTHOR_STATE, "one author domain"))
		explain_pair(out, explain_has(t, TRACE_AUTHOR) ? " (" :
		    " none (", t, TRACE_AUTHOR_STATE);
	buf_add_c(out, explain_is(t, TRACE_AUTHOR_STATE, "one author domain") ?
	    "\n\n" : ")\n\n");
}

/* Without an id but with a family: a file that is judged as if it came now, or
 * a store that failed. */
static void
show_archive(struct buf *out, struct str t)
{
	if (explain_has(t, TRACE_ARCHIVE_ID)) {
		uint64_t id = explain_number(t, TRACE_ARCHIVE_ID);
		buf_addf(out, ", archived as %u.%u", (unsigned)(id >> 32),
		    (unsigned)id);
	} else if (explain_has(t, TRACE_ARCHIVE_FAMILY)) {
		buf_add_c(out, ", to be archived");
	}
	explain_pair(out, " in the family ", t, TRACE_ARCHIVE_FAMILY);
	if (explain_has(t, TRACE_ARCHIVE_FAMILY))
		explain_pair(out, ": ", t, TRACE_ARCHIVE_WHY);
	else
		explain_pair(out, "\n  not archived: ", t, TRACE_ARCHIVE_WHY);
}

static void
show_outcome(struct buf *out, struct str t)
{
	static const struct {
		const char *word, *text;
	} rows[] = {
		{ "accept", "accepted" },
		{ "quarantine", "accepted, marked by X-Hanaper-Disposition" },
		{ "hold", "accepted into the MTA's hold queue" },
		{ "tempfail", "refused for now" },
		{ "reject", "refused" },
	};
	buf_add_c(out, "Outcome: ");
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
		if (explain_is(t, TRACE_DISPOSITION, rows[i].word))
			buf_add_c(out, rows[i].text);
	explain_pair(out, ": ", t, TRACE_REPLY);
	show_archive(out, t);
	buf_add_c(out, "\n\n");
}

/* --- verdicts ---------------------------------------------------------------------- */

static void
show_dkim(struct buf *out, struct str d, unsigned n)
{
	buf_addf(out, "  DKIM %u: ", n);
	explain_show(out, record_find(d, PART_RESULT));
	explain_pair(out, ", ", d, PART_REASON);
	explain_pair(out, "; domain ", d, PART_DOMAIN);
	explain_pair(out, ", selector ", d, PART_SELECTOR);
	explain_pair(out, ", ", d, PART_ALGORITHM);
	if (explain_number(d, PART_BITS) != 0)
		buf_addf(out, ", %llu bits",
		    (unsigned long long)explain_number(d, PART_BITS));
	if (explain_number(d, PART_TESTING) != 0)
		buf_add_c(out, ", the key is marked as a test");
	explain_pair(out, "\n          diagnosis: ", d, PART_DIAGNOSIS);
	buf_add_char(out, '\n');
}

static void
show_spf(struct buf *out, struct str s)
{
	buf_addf(out, "  SPF of %s: ",
	    explain_is(s, PART_IDENTITY, "helo") ? "HELO" : "MAIL FROM");
	explain_show(out, record_find(s, PART_RESULT));
	explain_pair(out, ", ", s, PART_REASON);
	explain_pair(out, "; domain ", s, PART_DOMAIN);
	explain_pair(out, ", decided by ", s, PART_MECHANISM);
	explain_pair(out, "\n          the domain says: ", s, PART_EXPLANATION);
	buf_add_char(out, '\n');
}

static void
show_arc(struct buf *out, struct str a)
{
	buf_add_c(out, "  ARC: ");
	explain_show(out, record_find(a, PART_RESULT));
	explain_pair(out, ", ", a, PART_REASON);
	if (explain_number(a, PART_INSTANCES) != 0)
		buf_addf(out, ", %llu set(s)",
		    (unsigned long long)explain_number(a, PART_INSTANCES));
	explain_pair(out, ", newest sealer ", a, PART_DOMAIN);
	buf_add_char(out, '\n');
}

static void
show_dmarc(struct buf *out, struct str d)
{
	buf_add_c(out, "  DMARC: ");
	explain_show(out, record_find(d, PART_RESULT));
	explain_pair(out, ", ", d, PART_REASON);
	explain_pair(out, "; author domain ", d, PART_DOMAIN);
	explain_pair(out, ", organizational domain ", d, PART_ORG_DOMAIN);
	buf_add_char(out, '\n');
	if (explain_has(d, PART_RECORD)) {
		explain_pair(out, "          record at _dmarc.", d,
		    PART_RECORD_DOMAIN);
		explain_pair(out, ": ", d, PART_RECORD);
		explain_pair(out, "\n          it asks for ", d, PART_POLICY);
		explain_pair(out, " (", d, PART_POLICY_TAG);
		buf_add_c(out, ")\n");
	}
	if (explain_has(d, PART_ALIGNED)) {
		explain_pair(out, "          aligned identifier: ", d,
		    PART_ALIGNED);
		buf_addf(out, " by%s%s\n",
		    explain_number(d, PART_DKIM_ALIGNED) != 0 ? " DKIM" : "",
		    explain_number(d, PART_SPF_ALIGNED) != 0 ? " SPF" : "");
	}
}

static void
show_verdicts(struct buf *out, struct str t)
{
	struct record_reader r;
	unsigned tag, signatures = 0;
	struct str v;
	if (record_open(t, &r) != RES_OK)
		return;
	buf_add_c(out, "Verdicts\n");
	while (record_next(&r, &tag, &v)) {
		if (tag == TRACE_IPREV) {
			buf_add_c(out, "  iprev: ");
			explain_show(out, record_find(v, PART_RESULT));
			explain_pair(out, ", ", v, PART_REASON);
			explain_pair(out, "; name ", v, PART_NAME);
			buf_add_char(out, '\n');
		} else if (tag == TRACE_SPF) {
			show_spf(out, v);
		} else if (tag == TRACE_DKIM) {
			show_dkim(out, v, ++signatures);
		} else if (tag == TRACE_ARC) {
			if (signatures == 0)
				buf_add_c(out, "  DKIM: no signature\n");
			show_arc(out, v);
		} else if (tag == TRACE_DMARC) {
			show_dmarc(out, v);
		}
	}
	buf_add_char(out, '\n');
}

/* --- signing --- */

static void
show_signing(struct buf *out, struct str t)
{
	struct record_reader r;
	unsigned tag;
	struct str v;
	bool any = false;
	buf_add_c(out, "Signing\n");
	if (record_open(t, &r) == RES_OK)
		while (record_next(&r, &tag, &v))
			if (tag == TRACE_SIGNED) {
				explain_pair(out, "  signed by ", v, PART_DOMAIN);
				explain_pair(out, ", selector ", v, PART_SELECTOR);
				explain_pair(out, ", ", v, PART_ALGORITHM);
				buf_add_char(out, '\n');
				any = true;
			}
	if (!any) {
		explain_pair(out, "  not signed: ", t, TRACE_UNSIGNED_WHY);
		buf_add_char(out, '\n');
	}
	buf_add_char(out, '\n');
}

/* --- evidence ---------------------------------------------------------------------------- */

static const char *
type_word(struct str v)
{
	if (v.len != 2)
		return "?";
	switch (get_le16((const uint8_t *)v.ptr)) {
	case 1:
		return "A";
	case 12:
		return "PTR";
	case 15:
		return "MX";
	case 16:
		return "TXT";
	case 28:
		return "AAAA";
	}
	return "?";
}

static void
show_answer(struct buf *out, struct str a)
{
	struct record_reader r;
	unsigned tag;
	struct str v;
	buf_add_c(out, "  ");
	explain_show(out, record_find(a, EVIDENCE_NAME));
	buf_addf(out, " %s ", type_word(record_find(a, EVIDENCE_TYPE)));
	explain_show(out, record_find(a, EVIDENCE_STATUS));
	struct str secure = record_find(a, EVIDENCE_SECURE);
	if (secure.len == 1 && secure.ptr[0] == 1)
		buf_add_c(out, ", DNSSEC");
	buf_add_char(out, '\n');
	if (record_open(a, &r) == RES_OK)
		while (record_next(&r, &tag, &v))
			if (tag == EVIDENCE_RECORD) {
				buf_add_c(out, "      ");
				explain_show(out, v);
				buf_add_char(out, '\n');
			}
}

/* Whether it can be read to its end. */
static enum res
look_through(struct str record)
{
	struct record_reader r;
	unsigned tag;
	struct str v;
	enum res result = record_open(record, &r);
	while (result == RES_OK && record_next(&r, &tag, &v))
		;
	return result == RES_OK ? r.error : result;
}

static void
show_evidence(struct buf *out, struct str evidence)
{
	struct record_reader r;
	unsigned tag;
	struct str v;
	buf_add_c(out, "DNS answers used\n");
	if (record_open(evidence, &r) != RES_OK)
		return;
	while (record_next(&r, &tag, &v))
		if (tag == EVIDENCE_DNS_ANSWER)
			show_answer(out, v);
}

enum res
explain_render(struct str trace, struct str evidence, struct buf *out)
{
	enum res result = look_through(trace);
	show_envelope(out, trace);
	show_outcome(out, trace);
	if (explain_is(trace, TRACE_DIRECTION, "in")) {
		show_verdicts(out, trace);
		explain_policy(out, trace);
	} else if (explain_is(trace, TRACE_DIRECTION, "out")) {
		show_signing(out, trace);
	}
	explain_advice(out, trace);
	if (evidence.len != 0) {
		show_evidence(out, evidence);
		if (result == RES_OK)
			result = look_through(evidence);
	}
	return result == RES_OK ? out->error : result;
}
