#include "flow_rig.h"

#include <stdio.h>

#include "base/codec.h"
#include "mail/reader.h"

static struct config *
config_of(const char *text)
{
	struct config *c = NULL;
	struct err err = { "" };
	enum res r = config_from_text(
	    str_c(text != NULL ? text : ""), "test.conf", &err, &c);
	if (r != RES_OK)
		fail_msg("%s", err.text);
	return c;
}

/* The last message holds on to resolver and keys. */
static void
drop(struct rig *r)
{
	message_free(&r->message);
	session_free(&r->session);
	r->decision = NULL;
}

void
rig_zone(struct rig *r, const char *zone)
{
	struct err err = { "" };
	drop(r);
	resolver_free(&r->env.resolver);
	if (zone_from_text(str_c(zone != NULL ? zone : ""), "test.zone", false,
		&err, &r->env.resolver) != RES_OK)
		fail_msg("%s", err.text);
}

void
rig_config(struct rig *r, const char *config)
{
	drop(r);
	config_unref(&r->env.config);
	r->env.config = config_of(config);
}

void
rig_open(struct rig *r, const char *config, const char *zone)
{
	*r = (struct rig){ .message = NULL };
	r->env.config = config_of(config);
	r->env.counters = &r->counters;
	r->env.clock = (struct clock){ (int64_t)RIG_CLOCK * 1000000 };
	r->env.judge_age = true;
	r->env.quiet = true;
	rig_zone(r, zone);
}

char *
rig_add_key(struct rig *r, enum key_type type, const char *domain,
    const char *selector)
{
	struct privkey *key = NULL;
	struct err err = { "" };
	struct buf der, text;
	if (privkey_generate(type, 2048, &err, &key) != RES_OK)
		fail_msg("%s", err.text);
	buf_init(&der, 4096);
	buf_init(&text, 8192);
	assert_ok(privkey_public(key, &der));
	buf_addf(&text, "v=DKIM1; k=%s; p=",
	    type == KEY_RSA ? "rsa" : "ed25519");
	base64_encode(&text, der.ptr, der.len);
	drop(r);
	signer_free(&r->env.signer);
	assert_ok(keyring_single(
	    str_c(domain), str_c(selector), &key, &r->env.signer));
	char *out = strdup(buf_cstr(&text));
	buf_done(&der);
	buf_done(&text);
	return out;
}

static enum res
end_of_header(void *context, struct header *h)
{
	struct rig *r = context;
	for (size_t i = 0; i < header_count(h); i++)
		message_header(r->message, header_at(h, i)->name,
		    header_at(h, i)->value);
	message_end_of_header(r->message);
	return RES_OK;
}

static void
push_body(void *context, const char *bytes, size_t len)
{
	struct rig *r = context;
	message_body(r->message, bytes, len);
}

void
rig_send(struct rig *r, const struct mail *m)
{
	static const struct reader_ops ops = { end_of_header, push_body };
	struct session_facts facts = { .helo = str_c(m->helo),
		.hostname = STR("mx.test.example"),
		.daemon_name = str_c(m->daemon),
		.leading_space = true };
	struct envelope e = { .mail_from = str_c(m->from),
		.auth = str_c(m->auth) };
	drop(r);
	if (m->ip != NULL)
		assert_ok(ip_parse(str_c(m->ip), &facts.client));
	r->session = session_new(&r->env);
	assert_non_null(r->session);
	session_set_facts(r->session, &facts);
	assert_ok(message_begin(r->session, &e, &r->message));
	message_rcpt(r->message,
	    str_c(m->rcpt != NULL ? m->rcpt : "<rcpt@test.example>"));
	if (m->rcpt2 != NULL)
		message_rcpt(r->message, str_c(m->rcpt2));
	struct arena *a = arena_new(0);
	struct header *h = header_new(a, 0);
	struct reader *reader = reader_new(a, h, READER_CRLF, &ops, r);
	size_t len = m->text_len != 0 ? m->text_len : strlen(m->text);
	size_t step = m->chunk != 0 ? m->chunk : len + 1;
	for (size_t at = 0; at < len; at += step)
		sink_push(reader_sink(reader), m->text + at,
		    len - at < step ? len - at : step);
	assert_ok(sink_finish(reader_sink(reader)));
	arena_free(&a);
	r->decision = message_finish(r->message, STR("QUEUEID1"));
}

void
rig_close(struct rig *r)
{
	drop(r);
	signer_free(&r->env.signer);
	published_free(&r->env.published);
	resolver_free(&r->env.resolver);
	config_unref(&r->env.config);
}

const char *
rig_inserted(const struct rig *r, const char *name, unsigned n)
{
	for (size_t i = 0; i < r->decision->edit_count; i++) {
		const struct flow_edit *e = &r->decision->edits[i];
		if (e->kind == EDIT_KIND_INSERT && strcmp(e->name, name) == 0 &&
		    n-- == 0)
			return e->value;
	}
	return NULL;
}

/* Deletes are looked up by occurrence in the text as it came; the tests here
 * delete from the highest down, so plain rewriting is enough. */
char *
rig_edited(const struct rig *r, const char *text)
{
	struct buf out;
	buf_init(&out, (size_t)64 << 20);
	/* inserts stack upward: the last one stands on top */
	for (size_t i = r->decision->edit_count; i > 0; i--) {
		const struct flow_edit *e = &r->decision->edits[i - 1];
		if (e->kind != EDIT_KIND_INSERT)
			continue;
		buf_addf(&out, "%s:", e->name);
		for (const char *p = e->value; *p != '\0'; p++)
			buf_add_c(&out, *p == '\n' ? "\r\n" :
			    (char[]){ *p, '\0' });
		buf_add_c(&out, "\r\n");
	}
	buf_add_c(&out, text);
	char *copy = strdup(buf_cstr(&out));
	buf_done(&out);
	return copy;
}
