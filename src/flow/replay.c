#include "flow/replay.h"

#include "flow/file.h"
#include "flow/state.h"

#define MAX_ARGS 64

/* Verified name or "unknown", as the MTA told. */
static enum res
set_facts(struct session *s, struct str meta)
{
	struct session_facts f = {
		.client_name = record_find(meta, META_CLIENT_NAME),
		.helo = record_find(meta, META_HELO),
		.daemon_name = record_find(meta, META_DAEMON_NAME),
		.hostname = record_find(meta, META_AUTHSERV_ID),
		.leading_space = true,
	};
	struct str ip = record_find(meta, META_CLIENT_IP);
	if (ip.len > 0 && ip_parse(ip, &f.client) != RES_OK)
		return RES_CORRUPT;
	session_set_facts(s, &f);
	return RES_OK;
}

static enum res
begin(struct replay *r, struct str meta)
{
	struct str args[MAX_ARGS], value;
	struct record_reader records;
	unsigned tag;
	struct envelope e = { .mail_from = record_find(meta, META_MAIL_FROM),
		.args = args,
		.auth = record_find(meta, META_AUTH),
		.tls = record_find(meta, META_TLS) };
	enum res res = record_open(meta, &records);
	while (res == RES_OK && record_next(&records, &tag, &value))
		if (tag == META_MAIL_ARGS && e.arg_count < MAX_ARGS)
			args[e.arg_count++] = value;
	if (res == RES_OK)
		res = records.error;
	if (res == RES_OK)
		res = message_begin(r->session, &e, &r->message);
	if (res == RES_OK)
		res = record_open(meta, &records);
	while (res == RES_OK && record_next(&records, &tag, &value))
		if (tag == META_RCPT)
			message_rcpt(r->message, value);
	return res;
}

static enum res
run(const struct replay_options *o, struct replay *r)
{
	struct str dir = record_find(o->meta, META_DIRECTION);
	r->env = (struct flow_env){ .config = o->config,
		.counters = &r->counters,
		.clock = { o->time_us },
		/* who was trusted then is known; today's lists say nothing */
		.mode = str_eq(dir, STR("out")) ? MODE_SIGN : MODE_VERIFY,
		.judge_age = true,
		.quiet = true };
	enum res res = evidence_open(&o->evidence, &r->env.resolver);
	if (res != RES_OK)
		return res;
	r->session = session_new(&r->env);
	if (r->session == NULL)
		return RES_NOMEM;
	res = set_facts(r->session, o->meta);
	if (res == RES_OK)
		res = begin(r, o->meta);
	if (res == RES_OK)
		res = file_feed_from(r->message, o->pour, o->context);
	if (res != RES_OK)
		return res;
	r->decision = message_finish(
	    r->message, record_find(o->meta, META_QUEUE_ID));
	r->disposition = message_disposition(r->message);
	r->cause = policy_cause_word(r->message->policy.cause);
	r->missing = evidence_first_missing(r->env.resolver);
	return RES_OK;
}

enum res
replay_run(const struct replay_options *o, struct replay *out)
{
	*out = (struct replay){ .disposition = "accept" };
	return run(o, out);
}

void
replay_done(struct replay *r)
{
	message_free(&r->message);
	session_free(&r->session);
	resolver_free(&r->env.resolver);
}
