#include "engine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/codec.h"
#include "dns/zone.h"
#include "keys/keyring.h"

#define CHUNK 65535 /* what a milter gets */
#define NOW   ENGINE_NOW

static void
die(const char *what)
{
	fprintf(stderr, "bench: %s\n", what);
	exit(1);
}

void
engine_open(struct engine *e)
{
	struct privkey *key = NULL;
	struct err err = { "" };
	struct buf der, text;
	*e = (struct engine){ .signer = NULL };
	if (privkey_generate(KEY_RSA, 2048, &err, &key) != RES_OK)
		die(err.text);
	buf_init(&der, 4096);
	buf_init(&text, 8192);
	if (privkey_to_pem(key, &text) != RES_OK ||
	    privkey_public(key, &der) != RES_OK)
		die("key");
	e->pem = strdup(buf_cstr(&text));
	buf_reset(&text);
	buf_add_c(&text, "v=DKIM1; k=rsa; p=");
	base64_encode(&text, der.ptr, der.len);
	e->record = strdup(buf_cstr(&text));
	buf_reset(&text);
	buf_addf(&text,
	    "s1._domainkey.bench.example TXT \"%s\"\n"
	    "bench.example TXT \"%s\"\n"
	    "_spf.bench.example TXT \"%s\"\n"
	    "_dmarc.bench.example TXT \"%s\"\n",
	    e->record, ENGINE_SPF, ENGINE_SPF_INCLUDED, ENGINE_DMARC);
	if (zone_from_text(
		buf_str(&text), "bench", false, &err, &e->resolver) != RES_OK)
		die(err.text);
	if (keyring_single(STR("bench.example"), STR("s1"), &key,
		&e->signer) != RES_OK)
		die("keyring");
	e->keys = key_cache_new(0);
	if (e->keys == NULL)
		die("key cache");
	e->manifest = e->signer->manifest(e->signer);
	e->key = manifest_at(e->manifest, 0);
	buf_done(&der);
	buf_done(&text);
}

void
engine_close(struct engine *e)
{
	manifest_unref(&e->manifest);
	signer_free(&e->signer);
	key_cache_free(&e->keys);
	resolver_free(&e->resolver);
	free(e->pem);
	free(e->record);
}

/* --- messages -------------------------------------------------------------- */

static const char words[] = "the hanaper kept the rolls and charters of the "
			    "chancery until they were fetched and paid for ";

static size_t
text_line(char *out, size_t at, bool dirty)
{
	size_t n = 0;
	for (; n < 68; n++) {
		char c = words[(at + n) % (sizeof words - 1)];
		out[n] = dirty && c == ' ' ? '\t' : c;
		if (dirty && n % 9 == 8)
			out[n] = ' ';
	}
	if (dirty)
		out[n++] = ' ';
	out[n++] = '\r';
	out[n++] = '\n';
	return n;
}

static size_t
base64_line(char *out, size_t at)
{
	uint8_t bytes[57];
	struct buf b;
	for (size_t i = 0; i < sizeof bytes; i++)
		bytes[i] = (uint8_t)((at + i) * 2654435761u >> 13);
	buf_init(&b, 128);
	base64_encode(&b, bytes, sizeof bytes);
	memcpy(out, b.ptr, b.len);
	memcpy(out + b.len, "\r\n", 2);
	size_t n = b.len + 2;
	buf_done(&b);
	return n;
}

void
mail_make(struct bench_mail *m, size_t bytes, enum body_kind kind)
{
	static const char *const fields[][2] = {
		{ "Received", " from client.bench.example (client.bench.example "
			      "[192.0.2.1])\r\n\tby mx.bench.example with ESMTP "
			      "id 4XyZ;\r\n\tTue, 14 Nov 2023 22:13:20 +0000" },
		{ "From", " Bench <sender@bench.example>" },
		{ "To", " somebody@receiver.example" },
		{ "Subject", " The rolls of the year" },
		{ "Date", " Tue, 14 Nov 2023 22:13:20 +0000" },
		{ "Message-ID", " <20231114221320.1@bench.example>" },
		{ "MIME-Version", " 1.0" },
		{ "Content-Type", " text/plain; charset=utf-8" },
	};
	*m = (struct bench_mail){ .field_count = 0 };
	for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++)
		m->fields[m->field_count++] = (struct bench_field){
			str_c(fields[i][0]), str_c(strdup(fields[i][1])) };
	m->body = malloc(bytes + 128);
	while (m->body_len < bytes)
		m->body_len += kind == BODY_BASE64 ?
		    base64_line(m->body + m->body_len, m->body_len) :
		    text_line(m->body + m->body_len, m->body_len,
			kind == BODY_DIRTY);
}

void
mail_free(struct bench_mail *m)
{
	for (size_t i = 0; i < m->field_count; i++)
		free((char *)m->fields[i].value.ptr);
	free(m->body);
}

void
mail_prepend(struct bench_mail *m, const char *name, char *value)
{
	memmove(&m->fields[1], &m->fields[0],
	    m->field_count * sizeof m->fields[0]);
	m->fields[0] = (struct bench_field){ str_c(name), str_c(value) };
	m->field_count++;
}

/* --- our side ---------------------------------------------------------------- */

static struct header *
header_of(struct arena *a, const struct bench_mail *m)
{
	struct header *h = header_new(a, 0);
	for (size_t i = 0; i < m->field_count; i++)
		if (header_add(h, m->fields[i].name, m->fields[i].value) !=
		    RES_OK)
			die("header");
	return h;
}

static void
push_body(struct bodyhash_set *hashes, const struct bench_mail *m)
{
	struct sink *s = bodyhash_sink(hashes);
	for (size_t at = 0; at < m->body_len; at += CHUNK)
		sink_push(s, m->body + at,
		    m->body_len - at < CHUNK ? m->body_len - at : CHUNK);
	if (sink_finish(s) != RES_OK)
		die("body hash");
}

static struct dkim_verify_options
verify_options(const struct engine *e)
{
	return (struct dkim_verify_options){ .max_signatures = 10,
		.min_rsa_bits = 1024,
		.now_s = NOW,
		.clock_skew_s = 300,
		.keys = e->keys };
}

struct dns_session *
engine_session(struct engine *e, struct arena *a)
{
	static const struct dns_limits limits = { 5000000, 20000000, 0 };
	return dns_session_new(a, e->resolver, &limits);
}

char *
engine_sign(struct engine *e, const struct bench_mail *m)
{
	struct arena *a = arena_new(0);
	struct header *h = header_of(a, m);
	struct bodyhash_set *hashes = bodyhash_new(a);
	struct dkim_sign_options o = { .header_canon = CANON_RELAXED,
		.body_canon = CANON_RELAXED, .now_s = NOW };
	struct str value;
	size_t index;
	if (bodyhash_want(hashes, CANON_RELAXED, BODYHASH_WHOLE, &index) !=
	    RES_OK)
		die("want");
	push_body(hashes, m);
	if (dkim_sign_field(a, h, &o, hashes, index, e->signer, e->key,
		&value) != RES_OK)
		die("sign");
	char *copy = strndup(value.ptr, value.len);
	arena_free(&a);
	return copy;
}

void
engine_verify(struct engine *e, const struct bench_mail *m)
{
	struct arena *a = arena_new(0);
	struct header *h = header_of(a, m);
	struct bodyhash_set *hashes = bodyhash_new(a);
	struct dkim_verify_options o = verify_options(e);
	struct dkim_verify *v;
	const struct dkim_result *r;
	size_t count;
	if (dkim_verify_begin(a, h, &o, engine_session(e, a), hashes, &v) != RES_OK)
		die("verify");
	push_body(hashes, m);
	if (dkim_verify_finish(v, &r, &count) != RES_OK || count != 1 ||
	    r[0].result != AUTH_PASS)
		die("the signature does not verify");
	arena_free(&a);
}

static void
arc_chain(struct engine *e, struct arena *a, struct header *h,
    struct bodyhash_set *hashes, struct arc_verify **out)
{
	struct dkim_verify_options o = verify_options(e);
	if (arc_verify_begin(a, h, &o, engine_session(e, a), hashes, out) != RES_OK)
		die("arc");
}

void
engine_seal(struct engine *e, const struct bench_mail *m, char *out[3])
{
	struct arena *a = arena_new(0);
	struct header *h = header_of(a, m);
	struct bodyhash_set *hashes = bodyhash_new(a);
	struct arc_seal_options o = { .authserv_id = STR("mx.bench.example"),
		.results = STR("spf=pass smtp.mailfrom=bench.example"),
		.now_s = NOW, .header_canon = CANON_RELAXED,
		.body_canon = CANON_RELAXED };
	struct arc_verify *v;
	struct arc_result chain;
	struct str value[3];
	size_t index;
	arc_chain(e, a, h, hashes, &v);
	if (bodyhash_want(hashes, CANON_RELAXED, BODYHASH_WHOLE, &index) !=
	    RES_OK)
		die("want");
	push_body(hashes, m);
	if (arc_verify_finish(v, &chain) != RES_OK ||
	    arc_seal_fields(a, h, &chain, &o, hashes, index, e->signer, e->key,
		&value[0], &value[1], &value[2]) != RES_OK)
		die("seal");
	for (int i = 0; i < 3; i++)
		out[i] = strndup(value[i].ptr, value[i].len);
	arena_free(&a);
}

void
engine_arc_verify(struct engine *e, const struct bench_mail *m)
{
	struct arena *a = arena_new(0);
	struct header *h = header_of(a, m);
	struct bodyhash_set *hashes = bodyhash_new(a);
	struct arc_verify *v;
	struct arc_result chain;
	arc_chain(e, a, h, hashes, &v);
	push_body(hashes, m);
	if (arc_verify_finish(v, &chain) != RES_OK ||
	    chain.result != AUTH_PASS)
		die("the chain does not verify");
	arena_free(&a);
}
