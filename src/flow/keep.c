/* The archive's record of a message: what was presented, what was known of
 * it, on which DNS answers, and what we changed (archive.md §3). */
#include <stdio.h>
#include <unistd.h>

#include "archive/keeping/audit.h"
#include "base/log.h"
#include "flow/state.h"
#include "flow/trace.h"

#define MAX_RECORD ((size_t)16 << 20)

static void
failed(struct message *m, const char *what)
{
	atomic_fetch_add(&m->session->env->counters->archive_errors, 1);
	log_error("id=%.*s not archived: %s", STR_ARG(m->id), what);
	if (m->config->archive_on_error == ON_ERROR_TEMPFAIL)
		message_refuse(m, REPLY_TEMPFAIL, "451", "4.3.1", "archive",
		    "Message could not be archived now");
}

void
keep_begin(struct message *m)
{
	m->spool = spool_new(m->arena, m->session->env->store);
	if (m->spool == NULL) {
		failed(m, "out of memory");
		return;
	}
	struct sink *out = spool_sink(m->spool);
	for (size_t i = 0; i < header_count(m->header); i++) {
		const struct field *f = header_at(m->header, i);
		sink_push(out, f->raw_name.ptr, f->raw_name.len);
		sink_push(out, ":", 1);
		sink_push(out, f->value.ptr, f->value.len);
		sink_push(out, "\r\n", 2);
	}
	sink_push(out, "\r\n", 2);
}

static void
fact(struct record *r, const char *key, struct str value)
{
	char text[512];
	if (value.len == 0)
		return;
	int n = snprintf(text, sizeof text, "%s=%.*s", key,
	    (int)(value.len < 256 ? value.len : 256), value.ptr);
	if (n > 0 && (size_t)n < sizeof text)
		record_add(r, META_FACT, str_of(text, (size_t)n));
}

static void
fact_result(struct record *r, const char *key, enum auth_result result)
{
	fact(r, key, str_c(auth_result_word(result)));
}

/* What `reason:` finds: one word for the common causes. */
static const char *
reason_word(const struct dkim_result *r)
{
	static const struct {
		const char *reason, *word;
	} words[] = {
		{ "body hash did not verify", "bodyhash" },
		{ "signature did not verify", "signature" },
		{ "key unavailable", "dns" },
		{ "no key", "nokey" },
		{ "key revoked", "revoked" },
	};
	for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
		if (r->reason != NULL && strcmp(r->reason, words[i].reason) == 0)
			return words[i].word;
	return r->reason;
}

static void
add_verdicts(struct record *r, const struct message *m)
{
	const struct decision *d = &m->decision;
	for (size_t i = 0; i < d->dkim_count; i++) {
		fact_result(r, "dkim", d->dkim[i].result);
		fact(r, "dkim.d", d->dkim[i].d);
		fact(r, "dkim.s", d->dkim[i].s);
		fact(r, "reason", str_c(reason_word(&d->dkim[i])));
		if (d->dkim[i].reason != NULL)
			record_add(r, META_REASON, str_c(d->dkim[i].reason));
		if (d->dkim[i].diagnosis.len != 0)
			record_add(r, META_REASON, d->dkim[i].diagnosis);
	}
	if (m->dkim_verify != NULL && d->dkim_count == 0)
		fact_result(r, "dkim", AUTH_NONE);
	for (size_t i = 0; i < d->spf_count; i++)
		fact_result(r, d->spf[i].identity == SPF_HELO ? "spf.helo" :
		    "spf", d->spf[i].result);
	if (d->iprev_done)
		fact_result(r, "iprev", d->iprev.result);
	if (d->arc_done)
		fact_result(r, "arc", d->arc.result);
	if (d->dmarc_done)
		fact_result(r, "dmarc", d->dmarc.result);
	for (size_t i = 0; i < m->signed_count; i++)
		fact(r, "signed", m->signings[i].key->domain);
}

static void
add_envelope(struct record *r, const struct message *m)
{
	const struct session_facts *f = &m->session->facts;
	struct buf ip;
	buf_init(&ip, IP_MAX_TEXT);
	ip_format(&ip, &f->client);
	record_add(r, META_DIRECTION, str_c(m->decision.direction));
	record_add(r, META_QUEUE_ID, m->queue_id);
	record_add(r, META_MAIL_FROM, m->mail_from);
	for (size_t i = 0; i < m->rcpt_count; i++)
		record_add(r, META_RCPT, m->rcpts[i]);
	record_add_buf(r, META_CLIENT_IP, &ip);
	record_add(r, META_CLIENT_NAME, f->client_name);
	record_add(r, META_HELO, f->helo);
	record_add(r, META_AUTH, m->auth);
	record_add(r, META_TLS, m->tls);
	record_add(r, META_DAEMON_NAME, f->daemon_name);
	for (size_t i = 0; i < m->arg_count; i++)
		record_add(r, META_MAIL_ARGS, m->args[i]);
}

static void
fill_meta(struct record *r, const struct message *m)
{
	add_envelope(r, m);
	record_add(r, META_AUTHSERV_ID, results_authserv_id(m));
	record_add(r, META_RESULTS, m->payload);
	add_verdicts(r, m);
	record_add(r, META_DISPOSITION, str_c(message_disposition(m)));
	record_add(r, META_DECISION_ID, m->id);
	record_add_u64(r, META_HEADER_BYTES, m->header_bytes);
	struct buf all;
	buf_init(&all, MAX_RECORD);
	buf_addf(&all,
	    "engine=" PACKAGE_VERSION " now=%lld skew=%lld signatures=%llu "
	    "bits=%llu body_length=%d",
	    (long long)(m->time_us / 1000000),
	    (long long)m->config->clock_skew_s,
	    (unsigned long long)m->config->max_signatures,
	    (unsigned long long)m->config->min_rsa_bits,
	    (int)m->config->body_length);
	const struct strlist *must = &m->config->required_signed_headers;
	for (size_t i = 0; i < must->count; i++) {
		buf_add_c(&all, i == 0 ? " headers=" : ",");
		buf_add_str(&all, must->items[i]);
	}
	record_add_buf(r, META_VERIFY_OPTIONS, &all);
}

static void
fill_edits(struct record *r, const struct message *m)
{
	static const unsigned tags[] = { [EDIT_KIND_INSERT] = EDIT_INSERT,
		[EDIT_KIND_CHANGE] = EDIT_CHANGE,
		[EDIT_KIND_DELETE] = EDIT_DELETE };
	for (size_t i = 0; i < m->decision.edit_count; i++) {
		const struct flow_edit *e = &m->decision.edits[i];
		struct record one;
		record_init(&one, MAX_RECORD);
		record_add_u32(&one, EDIT_INDEX, e->index);
		record_add(&one, EDIT_NAME, str_c(e->name));
		if (e->value != NULL)
			record_add(&one, EDIT_VALUE, str_c(e->value));
		record_add_record(r, tags[e->kind], &one);
		record_done(&one);
	}
}

void
keep_finish(struct message *m)
{
	struct record meta, evidence, edits;
	const char *family = arena_cstr(m->arena, m->keep.family);
	record_init(&meta, MAX_RECORD);
	record_init(&evidence, MAX_RECORD);
	record_init(&edits, MAX_RECORD);
	fill_meta(&meta, m);
	trace_evidence(m, &evidence);
	fill_edits(&edits, m);
	enum res r = family != NULL ? meta.buf.error : RES_NOMEM;
	if (r == RES_OK)
		r = evidence.buf.error;
	if (r == RES_OK)
		r = edits.buf.error;
	struct store_message sm = {
		.family = family,
		.time_us = m->time_us,
		.meta = buf_str(&meta.buf),
		.evidence = buf_str(&evidence.buf),
		.edits = buf_str(&edits.buf),
		.body = m->spool,
	};
	if (r == RES_OK)
		r = store_submit(
		    m->session->env->store, &sm, &m->decision.archive_id);
	if (r != RES_OK)
		failed(m, res_text(r));
	record_done(&meta);
	record_done(&evidence);
	record_done(&edits);
}

void
message_withdrawn(struct message *m, const char *why)
{
	uint64_t id = m->decision.archive_id, event;
	if (id == 0)
		return;
	const struct audit_event e = { .action = STR("withdrawn"),
		.who = { (uint32_t)getuid(), STR("hanaperd") },
		.reason = str_c(why),
		.ids = &id,
		.id_count = 1 };
	enum res r = audit_write(m->session->env->store, &e, false,
	    clock_now_us(&m->session->env->clock), &event);
	log_warning("id=%.*s archived, but %s%s%s", STR_ARG(m->id), why,
	    r == RES_OK ? "" : "; this is not written down: ",
	    r == RES_OK ? "" : res_text(r));
}
