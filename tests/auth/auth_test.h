/* A message, its zone and what is needed to run the signature engine on it. */
#ifndef TESTS_AUTH_AUTH_TEST_H
#define TESTS_AUTH_AUTH_TEST_H

#include "hn_test.h"

#include <stdio.h>

#include "auth/arc_seal.h"
#include "auth/arc_verify.h"
#include "auth/bodyhash.h"
#include "auth/dkim_sign.h"
#include "auth/dkim_verify.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/codec.h"
#include "dns/zone.h"
#include "keys/digest.h"
#include "keys/keyring.h"
#include "mail/reader.h"
#include "vectors.h"

struct fixture {
	struct arena *arena;
	struct resolver *resolver;
	struct dns_session *dns;
	struct header *header;
	struct bodyhash_set *hashes;
	struct buf body;
	struct dkim_verify_options options;
	const struct dkim_result *results;
	size_t count;
	struct arc_result chain;
};

static inline enum res
fixture_eoh(void *context, struct header *h)
{
	return RES_OK;
}

static inline void
fixture_body(void *context, const char *bytes, size_t len)
{
	struct fixture *f = context;
	buf_add(&f->body, bytes, len);
}

static inline void
fixture_open(struct fixture *f, struct str message, const char *zone)
{
	static const struct reader_ops ops = { fixture_eoh, fixture_body };
	static const struct dns_limits limits = { 1000000, 5000000, 0 };
	struct err err = { "" };
	memset(f, 0, sizeof *f);
	f->arena = arena_new(0);
	f->header = header_new(f->arena, 8 << 20);
	f->hashes = bodyhash_new(f->arena);
	buf_init(&f->body, 64 << 20);
	if (zone_from_text(str_c(zone), "zone", false, &err, &f->resolver) !=
	    RES_OK)
		fail_msg("%s", err.text);
	f->dns = dns_session_new(f->arena, f->resolver, &limits);
	struct reader *r =
	    reader_new(f->arena, f->header, READER_CRLF, &ops, f);
	sink_push(reader_sink(r), message.ptr, message.len);
	assert_ok(sink_finish(reader_sink(r)));
	f->options = (struct dkim_verify_options){ .max_signatures = 10,
		.min_rsa_bits = 1024,
		.now_s = -1,
		.clock_skew_s = 300 };
}

static inline void
fixture_close(struct fixture *f)
{
	buf_done(&f->body);
	arena_free(&f->arena);
	resolver_free(&f->resolver);
}

/* Push the body in chunks of `step` bytes (0: at once). */
static inline void
fixture_push(struct fixture *f, size_t step)
{
	struct sink *s = bodyhash_sink(f->hashes);
	assert_non_null(s);
	if (step == 0)
		step = f->body.len + 1;
	for (size_t i = 0; i < f->body.len; i += step) {
		struct str part = str_sub(buf_str(&f->body), i, step);
		sink_push(s, part.ptr, part.len);
	}
	assert_ok(sink_finish(s));
}

/* Verify the DKIM signatures. */
static inline void
fixture_dkim(struct fixture *f, size_t step)
{
	struct dkim_verify *v;
	assert_ok(dkim_verify_begin(
	    f->arena, f->header, &f->options, f->dns, f->hashes, &v));
	fixture_push(f, step);
	assert_ok(dkim_verify_finish(v, &f->results, &f->count));
}

static inline void
fixture_arc(struct fixture *f, size_t step)
{
	struct arc_verify *v;
	assert_ok(arc_verify_begin(
	    f->arena, f->header, &f->options, f->dns, f->hashes, &v));
	fixture_push(f, step);
	assert_ok(arc_verify_finish(v, &f->chain));
}

/* "pass", "fail (body hash did not verify)", … */
static inline void
expect_result(struct fixture *f, size_t i, const char *want)
{
	char got[256];
	assert_true(i < f->count);
	const struct dkim_result *r = &f->results[i];
	snprintf(got, sizeof got, r->reason != NULL ? "%s (%s)" : "%s",
	    auth_result_word(r->result), r->reason);
	assert_string_equal(got, want);
}

/* `text` with the first `from` replaced; `from` must be there. Static memory,
 * two results live at a time. */
static inline const char *
replaced(const char *text, const char *from, const char *to)
{
	static struct buf out[2];
	static int turn;
	const char *at = strstr(text, from);
	assert_non_null(at);
	struct buf fresh, *b = &out[turn = !turn];
	buf_init(&fresh, 1 << 20);
	buf_add(&fresh, text, (size_t)(at - text));
	buf_add_c(&fresh, to);
	buf_add_c(&fresh, at + strlen(from));
	buf_done(b);
	*b = fresh;
	return buf_cstr(b);
}

static inline struct signer *
signer_from_pem(const char *pem, const char *domain, const char *selector)
{
	struct err err = { "" };
	struct privkey *key;
	struct signer *s;
	if (privkey_from_pem(str_c(pem), "test", &err, &key) != RES_OK)
		fail_msg("%s", err.text);
	assert_ok(keyring_single(str_c(domain), str_c(selector), &key, &s));
	return s;
}

#endif
