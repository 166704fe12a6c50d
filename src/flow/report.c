/* One line per message, key=value or JSON; the same pairs in both. */
#include <stdio.h>

#include "base/json.h"
#include "base/log.h"
#include "flow/state.h"

#define MAX_LINE  ((size_t)16384) /* as long as the log's */
#define MAX_VALUE 512 /* of a JSON string, as log_pair cuts the other form */

/* Both forms from one list of calls. */
struct line {
	struct buf buf;
	struct json json;
	bool is_json;
};

static void
pair(struct line *l, const char *key, struct str value)
{
	if (value.len == 0)
		return;
	if (l->is_json)
		json_key_str(&l->json, key, str_sub(value, 0, MAX_VALUE));
	else
		log_pair(&l->buf, key, value);
}

static void
pair_int(struct line *l, const char *key, int64_t n)
{
	if (l->is_json)
		json_key_int(&l->json, key, n);
	else
		buf_addf(&l->buf, "%s%s=%lld", l->buf.len != 0 ? " " : "", key,
		    (long long)n);
}

/* A JSON object has each name once: the second is "dkim2". */
static void
pair_nth(struct line *l, const char *key, size_t i, struct str value)
{
	char name[32];
	if (i > 0 && l->is_json) {
		snprintf(name, sizeof name, "%s%zu", key, i + 1);
		key = name;
	}
	pair(l, key, value);
}

static void
add_envelope(struct line *l, const struct message *m)
{
	const struct session_facts *f = &m->session->facts;
	struct buf ip;
	buf_init(&ip, IP_MAX_TEXT);
	ip_format(&ip, &f->client);
	pair(l, "qid", m->queue_id);
	pair(l, "id", m->id);
	pair(l, "dir", str_c(m->decision.direction));
	pair(l, "from", m->mail_from.len != 0 ? m->mail_from : STR("<>"));
	pair_int(l, "rcpts", (int64_t)m->rcpt_count);
	pair(l, "client", buf_str(&ip));
	pair(l, "helo", f->helo);
	pair(l, "auth", m->auth);
	buf_done(&ip);
}

static void
add_dkim(struct line *l, const struct message *m)
{
	const struct decision *d = &m->decision;
	for (size_t i = 0; i < d->dkim_count; i++) {
		const struct dkim_result *r = &d->dkim[i];
		struct str text = arena_printf(m->arena, "%s%s%.*s%s%s%s%s%.*s",
		    auth_result_word(r->result), r->d.len != 0 ? ":" : "",
		    STR_ARG(r->d), r->reason != NULL ? " (" : "",
		    r->reason != NULL ? r->reason : "",
		    r->reason != NULL ? ")" : "",
		    r->diagnosis.len != 0 ? " " : "", STR_ARG(r->diagnosis));
		pair_nth(l, "dkim", i, text);
	}
	if (d->dkim_count == 0 && m->dkim_verify != NULL)
		pair(l, "dkim", STR("none"));
}

static void
add_verdicts(struct line *l, const struct message *m)
{
	const struct decision *d = &m->decision;
	for (size_t i = 0; i < d->spf_count; i++)
		pair(l, d->spf[i].identity == SPF_HELO ? "spf.helo" : "spf",
		    str_c(auth_result_word(d->spf[i].result)));
	add_dkim(l, m);
	if (d->arc_done)
		pair(l, "arc", str_c(auth_result_word(d->arc.result)));
	if (d->dmarc_done) {
		pair(l, "dmarc", str_c(auth_result_word(d->dmarc.result)));
		pair(l, "author", d->dmarc.from);
		if (d->dmarc.has_record)
			pair(l, "p", str_c(dmarc_policy_word(d->dmarc.policy)));
	}
}

static void
add_signatures(struct line *l, const struct message *m)
{
	for (size_t i = 0; i < m->signed_count; i++) {
		struct str text = arena_printf(m->arena, "%.*s/%.*s",
		    STR_ARG(m->signings[i].key->domain),
		    STR_ARG(m->signings[i].key->selector));
		pair_nth(l, "signed", i, text);
	}
	if (m->direction == DIRECTION_OUT && m->signed_count == 0)
		pair(l, "unsigned", str_c(m->unsigned_why));
}

static void
add_outcome(struct line *l, const struct message *m)
{
	static const char *const words[] = { [REPLY_ACCEPT] = "accept",
		[REPLY_TEMPFAIL] = "tempfail", [REPLY_REJECT] = "reject" };
	const struct decision *d = &m->decision;
	pair(l, "action",
	    str_c(d->quarantine != NULL ? "hold" : words[d->reply]));
	if (m->policy.action != POLICY_DELIVER) {
		pair(l, "policy", str_c(policy_action_word(m->policy.action)));
		pair(l, "cause", str_c(policy_cause_word(m->policy.cause)));
	}
	if (m->policy.asked > m->policy.action)
		pair(l, "asked", str_c(policy_action_word(m->policy.asked)));
	if (m->policy.override_type != NULL) {
		pair(l, "override", str_c(m->policy.override_type));
		pair(l, "reason", m->policy.override_reason);
	}
	if (m->policy.recipients_differ)
		pair(l, "recipients", STR("mildest"));
	if (m->policy.shadowed != POLICY_DELIVER)
		pair(l, "shadow",
		    str_c(policy_action_word(m->policy.shadowed)));
	if (d->reply != REPLY_ACCEPT)
		pair(l, "reply", str_c(d->text));
	if (d->archive_id != 0) {
		struct str text = arena_printf(m->arena, "%u.%u",
		    (unsigned)(d->archive_id >> 32), (unsigned)d->archive_id);
		pair(l, "archive", text);
	}
	pair_int(l, "edits", (int64_t)d->edit_count);
	pair_int(l, "bytes", (int64_t)m->bytes);
	pair_int(l, "ms", (clock_mono_us() - m->begin_mono_us) / 1000);
	pair_int(l, "dns", (int64_t)dns_session_count(m->dns));
}

void
report_line(struct message *m)
{
	struct line l = { .is_json = m->config->log_format == LOG_FORMAT_JSON };
	if (m->session->env->quiet)
		return;
	buf_init(&l.buf, MAX_LINE);
	json_init(&l.json, &l.buf);
	if (l.is_json)
		json_open(&l.json, '{');
	add_envelope(&l, m);
	add_verdicts(&l, m);
	add_signatures(&l, m);
	add_outcome(&l, m);
	if (l.is_json)
		json_close(&l.json, '}');
	m->decision.log_line = arena_dup(m->arena, buf_str(&l.buf));
	if (l.buf.error != RES_OK)
		log_warning("id=%.*s: the line of this message is too long",
		    STR_ARG(m->id));
	else if (l.is_json)
		log_object(buf_str(&l.buf));
	else
		log_line(LOG_LEVEL_INFO, buf_str(&l.buf));
	buf_done(&l.buf);
}
