#include "flow/aggregate_row.h"

#include "flow/state.h"
#include "mail/domain.h"

#define MAX_PART ((size_t)16 << 10)

/* --- whether ----------------------------------------------------------------- */

/* `address` is report_from, or that with "+…" behind its local part, which
 * goes to *out_detail (empty without). */
static bool
is_report_address(
    const struct config *c, struct str address, struct str *out_detail)
{
	size_t ours = str_rchr(c->report_from, '@');
	size_t theirs = str_rchr(address, '@');
	if (ours == SIZE_MAX || theirs == SIZE_MAX ||
	    !str_case_eq(str_skip(c->report_from, ours),
		str_skip(address, theirs)))
		return false;
	struct str local = str_sub(address, 0, theirs);
	*out_detail = STR_EMPTY;
	if (!str_case_starts(local, str_sub(c->report_from, 0, ours)))
		return false;
	struct str rest = str_skip(local, ours);
	if (rest.len != 0 && rest.ptr[0] != '+')
		return false;
	*out_detail = str_skip(rest, 1);
	return true;
}

static bool
is_to_report_address(const struct message *m, struct str *out_detail)
{
	for (size_t i = 0; i < m->rcpt_count; i++)
		if (is_report_address(m->config, m->rcpts[i], out_detail))
			return true;
	return false;
}

/* By the subject that RFC 9990 §3.5.2 and RFC 7489 prescribe. */
static bool
is_aggregate_report(const struct message *m)
{
	const struct field *f = header_find(m->header, STR("Subject"));
	if (f == NULL)
		return false;
	struct str subject = str_trim(header_unfold(m->arena, f->value));
	return str_case_starts(subject, STR("Report Domain:")) &&
	    str_case_find(subject, STR("Submitter:")) != SIZE_MAX;
}

/* Mail that was put off comes again and is counted then. */
static bool
is_counted(const struct message *m)
{
	struct str detail;
	return m->config->report != REPORT_OFF &&
	    m->direction == DIRECTION_IN && !m->seen &&
	    m->decision.dmarc_done && m->decision.reply != REPLY_TEMPFAIL &&
	    m->client.family != IP_NONE &&
	    !is_to_report_address(m, &detail) && !is_aggregate_report(m);
}

static bool
wants_report(const struct dmarc_result *d)
{
	return d->has_record && d->result != AUTH_NONE &&
	    d->record.rua_count != 0;
}

bool
aggregate_row_bounce(const struct message *m, struct str *out_token)
{
	struct str detail;
	/* of whatever direction: our own MTA's bounces are local mail */
	if (m->config->report != REPORT_SEND || m->mail_from.len != 0 ||
	    !is_to_report_address(m, &detail) || detail.len != ROW_TOKEN_LEN)
		return false;
	/* a reply of a person on holiday says nothing about the address */
	const struct field *f = header_find(m->header, STR("Content-Type"));
	if (f == NULL ||
	    str_case_find(f->value, STR("delivery-status")) == SIZE_MAX)
		return false;
	*out_token = detail;
	return true;
}

/* --- the policy -------------------------------------------------------------- */

static void
word(struct record *r, unsigned tag, const char *s)
{
	record_add(r, tag, str_c(s));
}

static void
close_part(struct record *out, unsigned tag, struct record *part)
{
	record_add_record(out, tag, part);
	record_done(part);
}

static void
add_policy(struct record *out, const struct message *m,
    const struct dmarc_result *d)
{
	const struct dmarc_record *p = &d->record;
	struct record r;
	record_init(&r, ROW_MAX / 2);
	record_add(&r, ROW_DOMAIN, d->record_domain);
	word(&r, ROW_P, dmarc_policy_word(p->p));
	word(&r, ROW_SP, dmarc_policy_word(p->sp));
	word(&r, ROW_NP, dmarc_policy_word(p->np));
	word(&r, ROW_ADKIM, p->strict_dkim ? "s" : "r");
	word(&r, ROW_ASPF, p->strict_spf ? "s" : "r");
	record_add(&r, ROW_FO, p->fo);
	word(&r, ROW_TESTING, p->testing ? "y" : "n");
	word(&r, ROW_METHOD,
	    m->config->org_domain == ORG_DOMAIN_PSL ? "psl" : "treewalk");
	for (size_t i = 0; i < p->rua_count; i++)
		record_add(&r, ROW_RUA, p->rua[i]);
	close_part(out, ROW_POLICY, &r);
}

/* --- what was seen ----------------------------------------------------------- */

/* `pass` is a pass under a policy that would have done something. What another
 * author domain's failure brought about was done to this one's mail, too. */
static const char *
disposition(const struct message *m, const struct dmarc_result *d)
{
	if (d->result == AUTH_PASS &&
	    m->policy.dmarc_disposition == DMARC_NONE)
		return d->policy != DMARC_NONE ? "pass" : "none";
	return dmarc_policy_word(m->policy.dmarc_disposition);
}

/* What the policy record says for this author domain, before t=y. */
static enum dmarc_policy
published_policy(const struct dmarc_result *d)
{
	if (d->policy_tag == NULL)
		return d->record.p;
	return strcmp(d->policy_tag, "np") == 0 ? d->record.np :
	    strcmp(d->policy_tag, "sp") == 0    ? d->record.sp :
						  d->record.p;
}

/* Another author domain of the message decided, and this one neither failed
 * nor asked for the like. */
static bool
is_bystander(const struct message *m, const struct dmarc_result *d)
{
	enum dmarc_policy done = m->policy.dmarc_disposition;
	return done != DMARC_NONE &&
	    !domain_equal(d->from, m->decision.dmarc.from) &&
	    (d->result != AUTH_FAIL || published_policy(d) != done);
}

/* A reason must stand where less, or more, was done than is published. */
static void
add_reason(struct record *out, const struct message *m,
    const struct dmarc_result *d)
{
	enum dmarc_policy done = m->policy.dmarc_disposition;
	const char *type = m->policy.override_type;
	struct str comment = m->policy.override_reason;
	struct record r;
	if (is_bystander(m, d)) {
		type = "local_policy";
		comment = STR("another author domain of the message fails");
	} else if (d->result == AUTH_PASS) {
		return;
	} else if (d->result != AUTH_FAIL) {
		type = "other";
		comment = str_c(d->reason);
	} else if (type == NULL) {
		if (done == published_policy(d))
			return;
		type = "local_policy";
		comment = STR_EMPTY;
	}
	record_init(&r, MAX_PART);
	word(&r, ROW_REASON_TYPE, type);
	if (comment.len != 0)
		record_add(&r, ROW_REASON_COMMENT, comment);
	close_part(out, ROW_REASON, &r);
}

static void
add_human(struct record *r, enum auth_result result, const char *reason)
{
	if (result != AUTH_PASS && reason != NULL)
		word(r, ROW_AUTH_HUMAN, reason);
}

static void
add_dkim(struct record *out, const struct dkim_result *s)
{
	struct record r;
	record_init(&r, MAX_PART);
	record_add(&r, ROW_AUTH_DOMAIN, s->d);
	record_add(&r, ROW_AUTH_SELECTOR, s->s);
	word(&r, ROW_AUTH_RESULT, auth_result_word(s->result));
	add_human(&r, s->result, s->reason);
	close_part(out, ROW_DKIM, &r);
}

/* 0: passes and strictly aligned, 1: within the organization, 2: passes,
 * 3: does not. */
static unsigned
rank(const struct dmarc_result *d, const struct dkim_result *s)
{
	struct str org =
	    d->org_domain.len != 0 ? d->org_domain : d->record_domain;
	if (s->result != AUTH_PASS)
		return 3;
	if (domain_equal(s->d, d->from))
		return 0;
	return domain_equal_or_below(s->d, org) ? 1 : 2;
}
#define RANKS 4

/* The order matters when there are too many (RFC 9990 §3.1.1.13), and makes
 * equal sets of signatures equal bytes. A signature whose d= could not be read
 * has no place in a report. */
static void
add_signatures(struct record *out, const struct message *m,
    const struct dmarc_result *d)
{
	const struct dkim_result *s = m->decision.dkim;
	size_t n = 0;
	for (unsigned want = 0; want < RANKS; want++)
		for (size_t i = 0;
		     i < m->decision.dkim_count && n < ROW_MAX_DKIM; i++)
			if (s[i].d.len != 0 && rank(d, &s[i]) == want) {
				add_dkim(out, &s[i]);
				n++;
			}
}

static void
add_spf(struct record *out, const struct message *m)
{
	const struct decision *d = &m->decision;
	for (size_t i = 0; i < d->spf_count; i++) {
		const struct spf_result *s = &d->spf[i];
		struct record r;
		if (s->identity != SPF_MAILFROM || s->domain.len == 0)
			continue;
		record_init(&r, MAX_PART);
		record_add(&r, ROW_AUTH_DOMAIN, s->domain);
		word(&r, ROW_AUTH_RESULT, auth_result_word(s->result));
		add_human(&r, s->result, s->reason);
		close_part(out, ROW_SPF, &r);
		return;
	}
}

static void
add_record(struct record *out, const struct message *m,
    const struct dmarc_result *d)
{
	struct str sender;
	struct record r;
	struct buf ip;
	record_init(&r, ROW_MAX);
	buf_init(&ip, IP_MAX_TEXT);
	ip_format(&ip, &m->client);
	record_add_buf(&r, ROW_SOURCE_IP, &ip);
	record_add(&r, ROW_HEADER_FROM, d->from);
	if (domain_normalize(m->arena, m->sender_domain, &sender) != RES_OK)
		sender = arena_lower(
		    m->arena, str_sub(m->sender_domain, 0, DOMAIN_MAX));
	record_add(&r, ROW_ENVELOPE_FROM, sender);
	word(&r, ROW_DISPOSITION, disposition(m, d));
	word(&r, ROW_DKIM_ALIGNED, d->dkim_aligned ? "pass" : "fail");
	word(&r, ROW_SPF_ALIGNED, d->spf_aligned ? "pass" : "fail");
	add_reason(&r, m, d);
	add_signatures(&r, m, d);
	add_spf(&r, m);
	close_part(out, ROW_RECORD, &r);
}

size_t
aggregate_row_count(const struct message *m)
{
	if (!is_counted(m))
		return 0;
	return m->decision.dmarc.each != NULL ? m->decision.dmarc.each_count : 1;
}

bool
aggregate_row_encode(const struct message *m, size_t which, struct record *out,
    struct str *out_domain)
{
	const struct dmarc_result *d = &m->decision.dmarc;
	if (d->each != NULL)
		d = &d->each[which];
	if (!wants_report(d))
		return false;
	add_policy(out, m, d);
	add_record(out, m, d);
	*out_domain = d->record_domain;
	return true;
}
