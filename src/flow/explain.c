#include "flow/explain.h"


#include "base/clock.h"
#include "base/codec.h"
#include "flow/trace.h"

#define MAX_SHOWN 600 /* bytes of one text */

/* --- helpers ------------------------------------------------------------------ */

static uint64_t
number(struct str record, unsigned tag)
{
	struct str v = record_find(record, tag);
	return v.len == 8 ? get_le64((const uint8_t *)v.ptr) : 0;
}

static bool
is(struct str record, unsigned tag, const char *word)
{
	return str_eq(record_find(record, tag), str_c(word));
}

static bool
has(struct str record, unsigned tag)
{
	return record_find(record, tag).len != 0;
}

/* Text from mail, made harmless for a terminal. */
static void
show(struct buf *out, struct str s)
{
	size_t n = s.len < MAX_SHOWN ? s.len : MAX_SHOWN;
	for (size_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)s.ptr[i];
		buf_add_char(out, c < 0x20 || c >= 0x7f ? '?' : (char)c);
	}
	if (n < s.len)
		buf_add_c(out, "...");
}

/* ` word value` when there is a value. */
static void
show_pair(struct buf *out, const char *word, struct str record, unsigned tag)
{
	struct str v = record_find(record, tag);
	if (v.len == 0)
		return;
	buf_add_c(out, word);
	show(out, v);
}

/* --- the message ---------------------------------------------------------------- */

static void
show_envelope(struct buf *out, struct str t)
{
	struct record_reader r;
	unsigned tag;
	struct str v;
	uint64_t rcpts = number(t, TRACE_RCPT_COUNT);
	buf_add_c(out, "Message ");
	show(out, record_find(t, TRACE_ID));
	show_pair(out, ", queue id ", t, TRACE_QUEUE_ID);
	buf_add_c(out, ", ");
	clock_format_us(out, (int64_t)number(t, TRACE_TIME));
	buf_add_c(out, "\n  from <");
	show(out, record_find(t, TRACE_MAIL_FROM));
	buf_addf(out, "> to %llu recipient%s:", (unsigned long long)rcpts,
	    rcpts == 1 ? "" : "s");
	if (record_open(t, &r) == RES_OK)
		while (record_next(&r, &tag, &v))
			if (tag == TRACE_RCPT) {
				buf_add_char(out, ' ');
				show(out, v);
			}
	buf_add_c(out, "\n  client");
	show_pair(out, " ", t, TRACE_CLIENT);
	show_pair(out, " ", t, TRACE_CLIENT_NAME);
	show_pair(out, ", HELO ", t, TRACE_HELO);
	show_pair(out, ", logged in as ", t, TRACE_AUTH);
	buf_addf(out, "\n  %s because: ",
	    is(t, TRACE_DIRECTION, "out") ? "outbound" :
	    is(t, TRACE_DIRECTION, "seen") ? "judged before" : "inbound");
	show(out, record_find(t, TRACE_DIRECTION_WHY));
	buf_add_c(out, "\n");
	show_pair(out, "  author: ", t, TRACE_AUTHOR);
	if (!has(t, TRACE_AUTHOR))
		show_pair(out, "  author: none, ", t, TRACE_AUTHOR_STATE);
	buf_add_c(out, "\n\n");
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
		if (is(t, TRACE_DISPOSITION, rows[i].word))
			buf_add_c(out, rows[i].text);
	show_pair(out, ": ", t, TRACE_REPLY);
	if (has(t, TRACE_ARCHIVE_ID)) {
		uint64_t id = number(t, TRACE_ARCHIVE_ID);
		buf_addf(out, ", archived as %u.%u", (unsigned)(id >> 32),
		    (unsigned)id);
	}
	buf_add_c(out, "\n\n");
}

/* --- verdicts ---------------------------------------------------------------------- */

static void
show_dkim(struct buf *out, struct str d, unsigned n)
{
	buf_addf(out, "  DKIM %u: ", n);
	show(out, record_find(d, PART_RESULT));
	show_pair(out, ", ", d, PART_REASON);
	show_pair(out, "; domain ", d, PART_DOMAIN);
	show_pair(out, ", selector ", d, PART_SELECTOR);
	show_pair(out, ", ", d, PART_ALGORITHM);
	if (number(d, PART_BITS) != 0)
		buf_addf(out, ", %llu bits",
		    (unsigned long long)number(d, PART_BITS));
	if (number(d, PART_TESTING) != 0)
		buf_add_c(out, ", the key is marked as a test");
	show_pair(out, "\n          diagnosis: ", d, PART_DIAGNOSIS);
	buf_add_char(out, '\n');
}

static void
show_spf(struct buf *out, struct str s)
{
	buf_addf(out, "  SPF of %s: ",
	    is(s, PART_IDENTITY, "helo") ? "HELO" : "MAIL FROM");
	show(out, record_find(s, PART_RESULT));
	show_pair(out, ", ", s, PART_REASON);
	show_pair(out, "; domain ", s, PART_DOMAIN);
	show_pair(out, ", decided by ", s, PART_MECHANISM);
	show_pair(out, "\n          the domain says: ", s, PART_EXPLANATION);
	buf_add_char(out, '\n');
}

static void
show_arc(struct buf *out, struct str a)
{
	buf_add_c(out, "  ARC: ");
	show(out, record_find(a, PART_RESULT));
	show_pair(out, ", ", a, PART_REASON);
	if (number(a, PART_INSTANCES) != 0)
		buf_addf(out, ", %llu set(s)",
		    (unsigned long long)number(a, PART_INSTANCES));
	show_pair(out, ", newest sealer ", a, PART_DOMAIN);
	buf_add_char(out, '\n');
}

static void
show_dmarc(struct buf *out, struct str d)
{
	buf_add_c(out, "  DMARC: ");
	show(out, record_find(d, PART_RESULT));
	show_pair(out, ", ", d, PART_REASON);
	show_pair(out, "; author domain ", d, PART_DOMAIN);
	show_pair(out, ", organizational domain ", d, PART_ORG_DOMAIN);
	buf_add_char(out, '\n');
	if (has(d, PART_RECORD)) {
		show_pair(out, "          record at _dmarc.", d,
		    PART_RECORD_DOMAIN);
		show_pair(out, ": ", d, PART_RECORD);
		show_pair(out, "\n          it asks for ", d, PART_POLICY);
		show_pair(out, " (", d, PART_POLICY_TAG);
		buf_add_c(out, ")\n");
	}
	if (has(d, PART_ALIGNED)) {
		show_pair(out, "          aligned identifier: ", d,
		    PART_ALIGNED);
		buf_addf(out, " by%s%s\n",
		    number(d, PART_DKIM_ALIGNED) != 0 ? " DKIM" : "",
		    number(d, PART_SPF_ALIGNED) != 0 ? " SPF" : "");
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
			show(out, record_find(v, PART_RESULT));
			show_pair(out, ", ", v, PART_REASON);
			show_pair(out, "; name ", v, PART_NAME);
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

/* --- what decided --------------------------------------------------------------------- */

static void
show_policy(struct buf *out, struct str t)
{
	struct str p = record_find(t, TRACE_POLICY);
	buf_add_c(out, "What decided\n");
	if (has(t, TRACE_REFUSAL)) {
		show_pair(out, "  a limit or fault of this host (", t,
		    TRACE_REFUSAL);
		buf_add_c(out, "), whatever the verdicts say\n\n");
		return;
	}
	if (is(p, PART_ACTION, "deliver"))
		buf_add_c(out, "  no rule asked for more than delivery\n");
	else {
		show_pair(out, "  ", p, PART_ACTION);
		show_pair(out, ", asked for by ", p, PART_CAUSE);
		buf_add_char(out, '\n');
	}
	if (has(p, PART_ASKED) &&
	    !str_eq(record_find(p, PART_ASKED), record_find(p, PART_ACTION))) {
		show_pair(out, "  the settings alone ask for ", p, PART_ASKED);
		show_pair(out, " by ", p, PART_ASKED_CAUSE);
		buf_add_char(out, '\n');
	}
	if (has(p, PART_OVERRIDE)) {
		show_pair(out, "  less was done: ", p, PART_OVERRIDE);
		show_pair(out, ", ", p, PART_OVERRIDE_REASON);
		buf_add_char(out, '\n');
	}
	show_pair(out, "  held back by shadow: ", p, PART_SHADOWED);
	if (has(p, PART_SHADOWED))
		buf_add_char(out, '\n');
	if (number(p, PART_DIFFER) != 0)
		buf_add_c(out, "  the recipients have different rules: the "
			       "mildest was applied\n");
	buf_add_char(out, '\n');
}

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
				show_pair(out, "  signed by ", v, PART_DOMAIN);
				show_pair(out, ", selector ", v, PART_SELECTOR);
				show_pair(out, ", ", v, PART_ALGORITHM);
				buf_add_char(out, '\n');
				any = true;
			}
	if (!any) {
		show_pair(out, "  not signed: ", t, TRACE_UNSIGNED_WHY);
		buf_add_char(out, '\n');
	}
	buf_add_char(out, '\n');
}

/* --- what would have to change -------------------------------------------------------- */

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
		    "publish what `hanaper key dns DOMAIN` prints" },
		{ "published key record is another key",
		    "publish what `hanaper key dns DOMAIN` prints instead of "
		    "the present record" },
		{ "already signed",
		    "already_signed = add signs once more" },
		{ "login does not match the author",
		    "log in as the author, or require_login_match = no" },
		{ "no signer", "this host runs with mode = verify" },
	};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
		if (is(t, TRACE_UNSIGNED_WHY, rows[i].why))
			buf_addf(out, "  to be signed: %s\n", rows[i].advice);
}

/* A passing identifier that does not belong to the author's organization. */
static void
advise_unaligned(struct buf *out, struct str t)
{
	struct record_reader r;
	unsigned tag;
	struct str v;
	if (record_open(t, &r) != RES_OK)
		return;
	while (record_next(&r, &tag, &v)) {
		if ((tag != TRACE_DKIM && tag != TRACE_SPF) ||
		    !is(v, PART_RESULT, "pass") ||
		    is(v, PART_IDENTITY, "helo"))
			continue;
		buf_addf(out, "  %s passes for ",
		    tag == TRACE_DKIM ? "a signature" : "SPF");
		show(out, record_find(v, PART_DOMAIN));
		buf_add_c(out, ", which does not belong to the author's "
			       "domain\n");
	}
}

static void
advise_dmarc(struct buf *out, struct str t)
{
	struct str d = record_find(t, TRACE_DMARC);
	if (is(d, PART_RESULT, "fail")) {
		advise_unaligned(out, t);
		buf_add_c(out, "  to pass: a valid signature with d= of ");
		show(out, record_find(d, has(d, PART_ORG_DOMAIN) ?
		    PART_ORG_DOMAIN : PART_DOMAIN));
		buf_add_c(out, " (or below), or SPF pass for a MAIL FROM "
			       "there\n");
		if (!is(d, PART_POLICY, "none") && is(d, PART_SETTING, "note"))
			buf_add_c(out, "  to act on it: dmarc = quarantine or "
				       "reject\n");
	} else if (is(d, PART_RESULT, "temperror")) {
		buf_add_c(out, "  to be judged: the DNS must answer; "
			       "on_dns_error says what happens meanwhile\n");
	} else if (is(d, PART_RESULT, "none")) {
		buf_add_c(out, "  to be protected: the author's domain must "
			       "publish a DMARC record\n");
	}
}

static void
show_advice(struct buf *out, struct str t)
{
	struct str p = record_find(t, TRACE_POLICY);
	size_t before;
	buf_add_c(out, "What would have to change\n");
	before = out->len;
	if (is(t, TRACE_DIRECTION, "out"))
		advise_signing(out, t);
	else
		advise_dmarc(out, t);
	if (is(p, PART_CAUSE, "from"))
		buf_add_c(out, "  one From field with one valid address; "
			       "multi_from says what happens otherwise\n");
	if (is(p, PART_CAUSE, "spf"))
		buf_add_c(out, "  spf_reject lists the results that are "
			       "refused\n");
	if ((is(p, PART_ACTION, "reject") || is(p, PART_ACTION, "hold") ||
		is(p, PART_ACTION, "quarantine")))
		buf_add_c(out, "  to let such mail in: an [override] section "
			       "for its author, client, list or sealer\n");
	if (out->len == before)
		buf_add_c(out, "  nothing\n");
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
	show(out, record_find(a, EVIDENCE_NAME));
	buf_addf(out, " %s ", type_word(record_find(a, EVIDENCE_TYPE)));
	show(out, record_find(a, EVIDENCE_STATUS));
	struct str secure = record_find(a, EVIDENCE_SECURE);
	if (secure.len == 1 && secure.ptr[0] == 1)
		buf_add_c(out, ", DNSSEC");
	buf_add_char(out, '\n');
	if (record_open(a, &r) == RES_OK)
		while (record_next(&r, &tag, &v))
			if (tag == EVIDENCE_RECORD) {
				buf_add_c(out, "      ");
				show(out, v);
				buf_add_char(out, '\n');
			}
}

enum res
explain_render(struct str trace, struct str evidence, struct buf *out)
{
	struct record_reader r;
	unsigned tag;
	struct str v;
	enum res result = record_open(trace, &r);
	if (result != RES_OK)
		return result;
	show_envelope(out, trace);
	show_outcome(out, trace);
	if (is(trace, TRACE_DIRECTION, "in")) {
		show_verdicts(out, trace);
		show_policy(out, trace);
	} else {
		show_signing(out, trace);
	}
	show_advice(out, trace);
	if (evidence.len == 0)
		return out->error;
	result = record_open(evidence, &r);
	if (result != RES_OK)
		return result;
	buf_add_c(out, "DNS answers used\n");
	while (record_next(&r, &tag, &v))
		if (tag == EVIDENCE_DNS_ANSWER)
			show_answer(out, v);
	return r.error != RES_OK ? r.error : out->error;
}
