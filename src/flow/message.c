#include "flow/message.h"

#include <stdio.h>
#include <stdlib.h>

#include "flow/longline.h"
#include "flow/state.h"
#include "keys/digest.h"

/* --- sessions ---------------------------------------------------------- */

struct session *
session_new(const struct flow_env *env)
{
	struct session *s = calloc(1, sizeof *s);
	struct arena *a = arena_new(0);
	if (s == NULL || a == NULL) {
		free(s);
		arena_free(&a);
		return NULL;
	}
	s->env = env;
	s->arena = a;
	s->config = config_ref(env->config);
	return s;
}

void
session_free(struct session **sp)
{
	struct session *s = *sp;
	if (s == NULL)
		return;
	config_unref(&s->config);
	arena_free(&s->arena);
	free(s);
	*sp = NULL;
}

void
session_set_facts(struct session *s, const struct session_facts *f)
{
	s->facts = *f;
	s->facts.client_name = arena_dup(s->arena, f->client_name);
	s->facts.client_ptr = arena_dup(s->arena, f->client_ptr);
	s->facts.helo = arena_dup(s->arena, f->helo);
	s->facts.daemon_name = arena_dup(s->arena, f->daemon_name);
	s->facts.hostname = arena_dup(s->arena, f->hostname);
}

void
session_set_helo(struct session *s, struct str helo)
{
	/* HELO may be repeated for ever: the arena is only used on change */
	if (!str_eq(s->facts.helo, helo))
		s->facts.helo = arena_dup(s->arena, helo);
}

/* --- refusals ------------------------------------------------------------ */

void
message_refuse(struct message *m, enum reply_kind reply, const char *code,
    const char *enhanced, const char *word, const char *text)
{
	if (m->refusal.reply != REPLY_ACCEPT)
		return;
	m->refusal = (struct refusal){ reply, code, enhanced, text, word };
}

void
message_internal(struct message *m, const char *what)
{
	atomic_fetch_add(&m->session->env->counters->internal_errors, 1);
	if (m->config->on_internal_error == ON_ERROR_TEMPFAIL)
		message_refuse(m, REPLY_TEMPFAIL, "451", "4.3.0", "internal",
		    what);
}

const char *
message_disposition(const struct message *m)
{
	switch (m->decision.reply) {
	case REPLY_TEMPFAIL:
		return "tempfail";
	case REPLY_REJECT:
		return "reject";
	case REPLY_ACCEPT:
		break;
	}
	if (m->decision.quarantine != NULL)
		return "hold";
	return m->policy.action == POLICY_MARK ? "quarantine" : "accept";
}

/* --- stages -------------------------------------------------------------- */

/* A short id that is unique enough to be asked for later: the arrival time in
 * base 32 and 15 random bits. */
static struct str
new_id(struct arena *a, int64_t time_us)
{
	static const char alphabet[] = "0123456789abcdefghjkmnpqrstvwxyz";
	uint16_t noise;
	char text[14];
	if (digest_random(&noise, sizeof noise) != RES_OK)
		noise = 0;
	uint64_t v = (uint64_t)time_us;
	for (int i = 10; i >= 0; i--) {
		text[i] = alphabet[v & 31];
		v >>= 5;
	}
	for (int i = 11; i < 14; i++) {
		text[i] = alphabet[noise & 31];
		noise >>= 5;
	}
	return arena_dup(a, str_of(text, sizeof text));
}

static void
copy_envelope(struct message *m, const struct envelope *e)
{
	struct str address, local, domain;
	address_envelope(e->mail_from, &address, &local, &domain);
	m->mail_from = arena_dup(m->arena, address);
	m->sender_local = arena_dup(m->arena, local);
	m->sender_domain = arena_dup(m->arena, domain);
	m->auth = arena_dup(m->arena, e->auth);
	m->auth_type = arena_dup(m->arena, e->auth_type);
	m->tls = arena_dup(m->arena, e->tls);
	struct str *args = arena_array(m->arena, e->arg_count, sizeof *args);
	for (size_t i = 0; args != NULL && i < e->arg_count; i++)
		args[i] = arena_dup(m->arena, e->args[i]);
	m->args = args;
	m->arg_count = args != NULL ? e->arg_count : 0;
}

enum res
message_begin(struct session *s, const struct envelope *e,
    struct message **out)
{
	const struct config *c = s->config;
	struct arena *a =
	    arena_new(ARENA_DEFAULT_MAX + 8 * (size_t)c->max_header_bytes);
	struct message *m = a != NULL ? ARENA_NEW(a, struct message) : NULL;
	if (m == NULL) {
		arena_free(&a);
		return RES_NOMEM;
	}
	m->session = s;
	m->config = c;
	m->arena = a;
	m->begin_mono_us = clock_mono_us();
	m->time_us = clock_now_us(&s->env->clock);
	m->id = new_id(a, m->time_us);
	m->header = header_new(a, (size_t)c->max_header_bytes);
	m->hashes = bodyhash_new(a);
	struct dns_limits limits = { c->dns_timeout_us, c->dns_budget_us, 0 };
	m->dns = dns_session_new(a, s->env->resolver, &limits);
	copy_envelope(m, e);
	if (m->header == NULL || m->hashes == NULL || m->dns == NULL ||
	    (e->mail_from.len != 0 && m->mail_from.ptr == NULL)) {
		arena_free(&a);
		return RES_NOMEM;
	}
	direction_decide(m);
	*out = m;
	return RES_OK;
}

void
message_free(struct message **mp)
{
	struct message *m = *mp;
	*mp = NULL;
	if (m == NULL)
		return;
	if (m->stage != STAGE_DONE)
		atomic_fetch_add(&m->session->env->counters->aborted, 1);
	struct arena *a = m->arena; /* m lives in it */
	manifest_unref(&m->manifest);
	arena_free(&a);
}

static bool
in_stage(struct message *m, enum stage wanted)
{
	if (m->stage == wanted)
		return true;
	message_refuse(m, REPLY_TEMPFAIL, "451", "4.3.0", "internal",
	    "Commands came out of order");
	return false;
}

void
message_rcpt(struct message *m, struct str rcpt)
{
	struct str address, local, domain;
	if (!in_stage(m, STAGE_ENVELOPE))
		return;
	if (m->rcpt_count >= FLOW_MAX_RCPTS) {
		message_refuse(m, REPLY_TEMPFAIL, "452", "4.5.3", "limit",
		    "Too many recipients");
		return;
	}
	if (m->rcpt_count == m->rcpt_cap) {
		size_t cap = m->rcpt_cap != 0 ? 2 * m->rcpt_cap : 8;
		struct str *more = arena_array(m->arena, cap, sizeof *more);
		if (more == NULL) {
			message_internal(m, "Out of memory");
			return;
		}
		if (m->rcpt_count != 0)
			memcpy(more, m->rcpts, m->rcpt_count * sizeof *more);
		m->rcpts = more;
		m->rcpt_cap = cap;
	}
	address_envelope(rcpt, &address, &local, &domain);
	struct str copy = arena_dup(m->arena, address);
	if (copy.ptr == NULL)
		message_internal(m, "Out of memory");
	else
		m->rcpts[m->rcpt_count++] = copy;
}

void
message_header(struct message *m, struct str name, struct str value)
{
	if (m->stage == STAGE_ENVELOPE)
		m->stage = STAGE_HEADER;
	if (!in_stage(m, STAGE_HEADER))
		return;
	/* Without HDR_LEADSPC the MTA took one space away (SPC-03). */
	if (!m->session->facts.leading_space) {
		char *p = arena_alloc(m->arena, value.len + 1);
		if (p == NULL) {
			message_internal(m, "Out of memory");
			return;
		}
		p[0] = ' ';
		memcpy(p + 1, value.ptr, value.len);
		value = str_of(p, value.len + 1);
	}
	switch (header_add(m->header, name, value)) {
	case RES_OK:
		break;
	case RES_LIMIT:
		message_refuse(m, REPLY_REJECT, "554", "5.6.0", "limit",
		    "Header is larger than this site accepts");
		break;
	default:
		message_internal(m, "Out of memory");
	}
}

/* Body bytes go to the hashes and, where it is archived, to the spool. */
static struct sink *
body_sink(struct message *m)
{
	struct sink *all[3];
	size_t n = 0;
	struct sink *hashes = bodyhash_sink(m->hashes);
	if (hashes == NULL)
		return NULL;
	all[n++] = hashes;
	if (m->spool != NULL)
		all[n++] = spool_sink(m->spool);
	if (m->signing_count != 0) {
		all[n] = longline_sink(m->arena, &m->long_body_line);
		if (all[n++] == NULL)
			return NULL;
	}
	struct sink *tee = sink_tee(m->arena, all, n);
	return tee != NULL ?
	    sink_limit(m->arena, m->config->max_message_size, &m->bytes, tee) :
	    NULL;
}

void
message_end_of_header(struct message *m)
{
	if (m->stage == STAGE_ENVELOPE)
		m->stage = STAGE_HEADER;
	if (!in_stage(m, STAGE_HEADER))
		return;
	m->stage = STAGE_BODY;
	/* each field with its colon and CRLF, and the empty line */
	m->header_bytes =
	    header_bytes(m->header) - header_count(m->header) + 2;
	if (address_from_domains(m->arena, m->header, &m->from) != RES_OK)
		message_internal(m, "Out of memory");
	reinject_recognize(m);
	if (m->seen)
		verify_chain_begin(m);
	else if (m->direction == DIRECTION_IN)
		verify_begin(m);
	else
		sign_begin(m);
	if (m->direction == DIRECTION_IN)
		seal_begin(m);
	if (keep_wanted(m))
		keep_begin(m);
	m->body = body_sink(m);
	if (m->body == NULL) {
		message_internal(m, "Out of memory");
		m->body = sink_limit(m->arena, UINT64_MAX, &m->bytes, NULL);
	}
	m->bytes = 0;
}

void
message_body(struct message *m, const char *bytes, size_t len)
{
	if (m->stage == STAGE_BODY && m->body != NULL)
		sink_push(m->body, bytes, len);
	else
		in_stage(m, STAGE_BODY);
}

/* --- end of message ------------------------------------------------------ */

static void
count_verdict(
    struct flow_counters *n, enum flow_method method, enum auth_result result)
{
	atomic_fetch_add(&n->verdicts[method][result], 1);
}

static void
count_verdicts(struct flow_counters *n, const struct decision *d)
{
	for (size_t i = 0; i < d->spf_count; i++)
		if (d->spf[i].identity == SPF_MAILFROM)
			count_verdict(n, METHOD_SPF, d->spf[i].result);
	for (size_t i = 0; i < d->dkim_count; i++)
		count_verdict(n, METHOD_DKIM, d->dkim[i].result);
	if (d->dmarc_done)
		count_verdict(n, METHOD_DMARC, d->dmarc.result);
	if (d->arc_done)
		count_verdict(n, METHOD_ARC, d->arc.result);
}

static void
count(struct message *m)
{
	struct flow_counters *n = m->session->env->counters;
	const struct decision *d = &m->decision;
	atomic_fetch_add(&n->messages, 1);
	switch (d->reply) {
	case REPLY_ACCEPT:
		atomic_fetch_add(&n->accepted, 1);
		break;
	case REPLY_TEMPFAIL:
		atomic_fetch_add(&n->tempfailed, 1);
		break;
	case REPLY_REJECT:
		atomic_fetch_add(&n->rejected, 1);
		break;
	}
	if (d->quarantine != NULL)
		atomic_fetch_add(&n->quarantined, 1);
	if (m->signed_count != 0)
		atomic_fetch_add(&n->signed_messages, 1);
	else if (m->direction == DIRECTION_OUT)
		atomic_fetch_add(&n->unsigned_outbound, 1);
	if (d->archive_id != 0)
		atomic_fetch_add(&n->archived, 1);
	count_verdicts(n, d);
}

/* A refusal of ours outweighs what policy would have done. */
static void
reply_from_refusal(struct message *m)
{
	struct decision *d = &m->decision;
	if (m->refusal.reply == REPLY_ACCEPT)
		return;
	d->reply = m->refusal.reply;
	d->code = m->refusal.code;
	d->enhanced = m->refusal.enhanced;
	d->text = m->refusal.text;
	d->quarantine = NULL;
}

static void
judge(struct message *m)
{
	if (m->seen) {
		verify_chain_finish(m);
		return;
	}
	if (m->direction == DIRECTION_IN)
		verify_finish(m);
	else
		sign_finish(m);
	if (m->refusal.reply == REPLY_ACCEPT)
		judge_message(m);
}

static void
insert_fields(struct message *m)
{
	struct decision *d = &m->decision;
	if (m->seen) {
		seal_finish(m);
		return;
	}
	struct str value = results_make(m, &m->payload);
	if (value.ptr == NULL) {
		message_internal(m, "Out of memory");
		return;
	}
	d->results = value;
	if (m->policy.action == POLICY_MARK)
		edits_add(m, EDIT_KIND_INSERT, 0, "X-Hanaper-Disposition",
		    STR(" quarantine"));
	struct str spf = results_received_spf(m);
	if (m->config->received_spf && spf.ptr != NULL)
		edits_add(m, EDIT_KIND_INSERT, 0, "Received-SPF", spf);
	if (m->direction == DIRECTION_IN || m->config->outbound_results)
		edits_add(m, EDIT_KIND_INSERT, 0, "Authentication-Results",
		    value);
	seal_finish(m);
	reinject_mark(m);
	if (m->edits.nomem)
		message_internal(m, "Out of memory");
}

/* Whether the MTA takes what the decision asks of it. */
static bool
is_granted(const struct message *m)
{
	const struct session_facts *f = &m->session->facts;
	if (f->no_hold && m->decision.quarantine != NULL)
		return false;
	for (size_t i = 0; i < m->edits.count; i++)
		if (m->edits.items[i].kind == EDIT_KIND_INSERT ? f->no_insert :
								 f->no_change)
			return false;
	return true;
}

const struct decision *
message_finish(struct message *m, struct str queue_id)
{
	struct decision *d = &m->decision;
	if (m->stage < STAGE_BODY)
		message_end_of_header(m);
	if (m->stage != STAGE_BODY)
		return d;
	m->stage = STAGE_DONE;
	m->queue_id = arena_dup(m->arena, queue_id);
	d->decision_id = m->id;
	d->outbound = m->direction == DIRECTION_OUT;
	d->direction = m->seen ? "seen" : d->outbound ? "out" : "in";

	enum res r = sink_finish(m->body);
	m->bytes += m->header_bytes;
	if (r == RES_LIMIT || m->bytes > m->config->max_message_size)
		message_refuse(m, REPLY_REJECT, "552", "5.3.4", "limit",
		    "Message is larger than this site accepts");
	else if (r != RES_OK && m->spool == NULL)
		message_internal(m, "Message could not be processed");

	if (m->refusal.reply == REPLY_ACCEPT) {
		edits_strip_forged(m);
		judge(m);
		insert_fields(m);
	}
	if (m->edits.over)
		message_refuse(m, REPLY_REJECT, "550", "5.7.1", "limit",
		    "Too many forged result fields");
	/* told before it is archived: it will come again */
	if (d->reply == REPLY_ACCEPT && !is_granted(m))
		message_refuse(m, REPLY_TEMPFAIL, "451", "4.3.0", "internal",
		    "The mail server does not let its filter do its work");
	reply_from_refusal(m);
	if (d->reply == REPLY_ACCEPT) {
		d->edits = m->edits.items;
		d->edit_count = m->edits.count;
	}
	keep_choose(m);
	if (m->spool != NULL && m->keep.kept)
		keep_finish(m);
	reply_from_refusal(m);
	if (d->reply != REPLY_ACCEPT)
		d->edit_count = 0;
	count(m);
	remember(m);
	report_line(m);
	return d;
}
