#include "flow/trace.h"

#include "flow/state.h"

#define MAX_PART ((size_t)1 << 20)

static void
text(struct record *r, unsigned tag, struct str s)
{
	if (s.len != 0)
		record_add(r, tag, s);
}

static void
word(struct record *r, unsigned tag, const char *s)
{
	if (s != NULL)
		record_add(r, tag, str_c(s));
}

static void
flag(struct record *r, unsigned tag, bool on)
{
	if (on)
		record_add_u64(r, tag, 1);
}

static void
close_part(struct record *out, unsigned tag, struct record *part)
{
	record_add_record(out, tag, part);
	record_done(part);
}

static void
add_dkim(struct record *out, const struct dkim_result *d)
{
	struct record r;
	record_init(&r, MAX_PART);
	word(&r, PART_RESULT, auth_result_word(d->result));
	word(&r, PART_REASON, d->reason);
	text(&r, PART_DOMAIN, d->d);
	text(&r, PART_SELECTOR, d->s);
	text(&r, PART_ALGORITHM, d->a);
	text(&r, PART_IDENTITY, d->i);
	text(&r, PART_DIAGNOSIS, d->diagnosis);
	record_add_u64(&r, PART_BITS, d->key_bits);
	flag(&r, PART_TESTING, d->testing);
	close_part(out, TRACE_DKIM, &r);
}

static void
add_spf(struct record *out, const struct spf_result *s)
{
	struct record r;
	record_init(&r, MAX_PART);
	word(&r, PART_RESULT, auth_result_word(s->result));
	word(&r, PART_REASON, s->reason);
	text(&r, PART_DOMAIN, s->domain);
	word(&r, PART_IDENTITY,
	    s->identity == SPF_HELO ? "helo" : "mailfrom");
	text(&r, PART_MECHANISM, s->mechanism);
	text(&r, PART_EXPLANATION, s->explanation);
	close_part(out, TRACE_SPF, &r);
}

static void
add_arc(struct record *out, const struct arc_result *a)
{
	struct record r;
	record_init(&r, MAX_PART);
	word(&r, PART_RESULT, auth_result_word(a->result));
	word(&r, PART_REASON, a->reason);
	record_add_u64(&r, PART_INSTANCES, a->instances);
	record_add_u64(&r, PART_OLDEST_PASS, a->oldest_pass);
	flag(&r, PART_TEMPORARY, a->temporary);
	if (a->sets != NULL && a->instances != 0)
		text(&r, PART_DOMAIN, a->sets[a->instances - 1].d);
	close_part(out, TRACE_ARC, &r);
}

static void
add_dmarc(struct record *out, const struct message *m)
{
	static const char *const settings[] = { [DMARC_ACTION_OFF] = "off",
		[DMARC_ACTION_NOTE] = "note",
		[DMARC_ACTION_QUARANTINE] = "quarantine",
		[DMARC_ACTION_REJECT] = "reject" };
	const struct dmarc_result *d = &m->decision.dmarc;
	struct record r;
	record_init(&r, MAX_PART);
	word(&r, PART_RESULT, auth_result_word(d->result));
	word(&r, PART_REASON, d->reason);
	text(&r, PART_DOMAIN, d->from);
	if (d->has_record) {
		text(&r, PART_RECORD, d->record.text);
		text(&r, PART_RECORD_DOMAIN, d->record_domain);
		word(&r, PART_POLICY, dmarc_policy_word(d->policy));
		word(&r, PART_POLICY_TAG, d->policy_tag);
	}
	text(&r, PART_ORG_DOMAIN, d->org_domain);
	text(&r, PART_ALIGNED, d->aligned_domain);
	flag(&r, PART_DKIM_ALIGNED, d->dkim_aligned);
	flag(&r, PART_SPF_ALIGNED, d->spf_aligned);
	word(&r, PART_SETTING, settings[m->config->dmarc]);
	close_part(out, TRACE_DMARC, &r);
}

static void
add_policy(struct record *out, const struct policy_decision *p)
{
	struct record r;
	record_init(&r, MAX_PART);
	word(&r, PART_ACTION, policy_action_word(p->action));
	word(&r, PART_CAUSE, policy_cause_word(p->cause));
	word(&r, PART_ASKED, policy_action_word(p->asked));
	word(&r, PART_ASKED_CAUSE, policy_cause_word(p->asked_cause));
	if (p->shadowed != POLICY_DELIVER)
		word(&r, PART_SHADOWED, policy_action_word(p->shadowed));
	word(&r, PART_OVERRIDE, p->override_type);
	text(&r, PART_OVERRIDE_REASON, p->override_reason);
	text(&r, PART_RULE, p->override_name);
	flag(&r, PART_DIFFER, p->recipients_differ);
	close_part(out, TRACE_POLICY, &r);
}

static void
add_address(struct record *out, unsigned tag, const struct ip *ip)
{
	struct buf b;
	buf_init(&b, IP_MAX_TEXT);
	ip_format(&b, ip);
	record_add_buf(out, tag, &b);
}

/* Another client than the one that sent it to us. */
static void
add_judged_client(struct record *out, const struct message *m)
{
	if (m->direction != DIRECTION_IN ||
	    ip_eq(&m->client, &m->session->facts.client))
		return;
	if (m->client.family == IP_NONE)
		word(out, TRACE_JUDGED_CLIENT, "unknown");
	else
		add_address(out, TRACE_JUDGED_CLIENT, &m->client);
}

static void
add_envelope(struct record *out, const struct message *m)
{
	const struct session_facts *f = &m->session->facts;
	text(out, TRACE_ID, m->id);
	text(out, TRACE_QUEUE_ID, m->queue_id);
	record_add_u64(out, TRACE_TIME, (uint64_t)m->time_us);
	word(out, TRACE_DIRECTION, m->decision.direction);
	word(out, TRACE_DIRECTION_WHY, m->direction_why);
	record_add(out, TRACE_MAIL_FROM, m->mail_from);
	for (size_t i = 0; i < m->rcpt_count && i < TRACE_MAX_RCPTS; i++)
		text(out, TRACE_RCPT, m->rcpts[i]);
	record_add_u64(out, TRACE_RCPT_COUNT, m->rcpt_count);
	add_address(out, TRACE_CLIENT, &f->client);
	add_judged_client(out, m);
	text(out, TRACE_CLIENT_NAME, f->client_name);
	text(out, TRACE_HELO, f->helo);
	text(out, TRACE_AUTH, m->auth);
	word(out, TRACE_AUTHOR_STATE, from_state_text(m->from.state));
	for (size_t i = 0; i < m->from.count && i < TRACE_MAX_RCPTS; i++)
		text(out, TRACE_AUTHOR, m->from.domains[i]);
	record_add_u64(out, TRACE_BYTES, m->bytes);
}

static void
add_signatures(struct record *out, const struct message *m)
{
	for (size_t i = 0; i < m->signed_count; i++) {
		const struct signing_key *k = m->signings[i].key;
		struct record r;
		record_init(&r, MAX_PART);
		text(&r, PART_DOMAIN, k->domain);
		text(&r, PART_SELECTOR, k->selector);
		word(&r, PART_ALGORITHM,
		    k->type == KEY_RSA ? "rsa-sha256" : "ed25519-sha256");
		record_add_u64(&r, PART_BITS, k->bits);
		close_part(out, TRACE_SIGNED, &r);
	}
	word(out, TRACE_UNSIGNED_WHY, m->unsigned_why);
	if (m->sealed)
		text(out, TRACE_SEALED, m->seal_key->domain);
}

static void
add_verdicts(struct record *out, const struct message *m)
{
	const struct decision *d = &m->decision;
	if (d->iprev_done) {
		struct record r;
		record_init(&r, MAX_PART);
		word(&r, PART_RESULT, auth_result_word(d->iprev.result));
		word(&r, PART_REASON, d->iprev.reason);
		text(&r, PART_NAME, d->iprev.name);
		close_part(out, TRACE_IPREV, &r);
	}
	for (size_t i = 0; i < d->spf_count; i++)
		add_spf(out, &d->spf[i]);
	for (size_t i = 0; i < d->dkim_count; i++)
		add_dkim(out, &d->dkim[i]);
	if (d->arc_done)
		add_arc(out, &d->arc);
	flag(out, TRACE_ARC_SEALED_FAIL, d->arc_done && d->arc.sealed_fail);
	if (d->dmarc_done)
		add_dmarc(out, m);
}

void
trace_encode(const struct message *m, struct record *out)
{
	const struct decision *d = &m->decision;
	add_envelope(out, m);
	add_verdicts(out, m);
	if (m->direction == DIRECTION_IN)
		add_policy(out, &m->policy);
	add_signatures(out, m);
	if (d->reply != REPLY_ACCEPT) {
		struct buf reply;
		buf_init(&reply, MAX_PART);
		buf_addf(&reply, "%s %s %s", d->code, d->enhanced, d->text);
		record_add_buf(out, TRACE_REPLY, &reply);
	}
	word(out, TRACE_REFUSAL, m->refusal.word);
	word(out, TRACE_DISPOSITION, message_disposition(m));
	text(out, TRACE_RESULTS, m->payload);
	if (d->archive_id != 0)
		record_add_u64(out, TRACE_ARCHIVE_ID, d->archive_id);
	if (m->keep.kept)
		text(out, TRACE_ARCHIVE_FAMILY, m->keep.family);
	text(out, TRACE_ARCHIVE_WHY, m->keep.why);
}

/* --- evidence -------------------------------------------------------------- */

static void
add_data(struct record *r, const struct dns_answer *a,
    const struct dns_record *rr)
{
	struct buf out;
	buf_init(&out, DNS_MAX_TXT + 16);
	if (a->type == DNS_A || a->type == DNS_AAAA) {
		ip_format(&out, &rr->ip);
	} else {
		if (a->type == DNS_MX)
			buf_addf(&out, "%u ", rr->preference);
		buf_add_str(&out, rr->data);
	}
	record_add_buf(r, EVIDENCE_RECORD, &out);
}

void
trace_evidence(const struct message *m, struct record *out)
{
	for (size_t i = 0; i < dns_session_count(m->dns); i++) {
		const struct dns_answer *a = dns_session_at(m->dns, i);
		struct record r;
		record_init(&r, out->buf.max);
		record_add(&r, EVIDENCE_NAME, a->name);
		record_add_u16(&r, EVIDENCE_TYPE, (uint16_t)a->type);
		record_add(&r, EVIDENCE_STATUS,
		    str_c(dns_status_text(a->status)));
		record_add(&r, EVIDENCE_SECURE,
		    str_of(a->secure ? "\1" : "\0", 1));
		record_add_u32(&r, EVIDENCE_TTL, a->ttl);
		record_add_u64(&r, EVIDENCE_TIME, (uint64_t)a->time_us);
		for (size_t j = 0; j < a->count; j++)
			add_data(&r, a, &a->records[j]);
		close_part(out, EVIDENCE_DNS_ANSWER, &r);
	}
}
