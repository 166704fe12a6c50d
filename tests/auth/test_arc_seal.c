#include "auth/arc_seal.h"

#include "auth_test.h"

#define NOW 1700000000

struct sealing {
	struct fixture f;
	size_t body;
	struct signer *signer;
	struct manifest *manifest;
	struct arc_seal_options options;
	struct str aar, ams, as;
};

static void
sealing_open(struct sealing *s, const char *message, const char *zone)
{
	struct arc_verify *v;
	fixture_open(&s->f, str_c(message), zone);
	assert_ok(bodyhash_want(
	    s->f.hashes, CANON_RELAXED, BODYHASH_WHOLE, &s->body));
	assert_ok(arc_verify_begin(
	    s->f.arena, s->f.header, &s->f.options, s->f.dns, s->f.hashes, &v));
	fixture_push(&s->f, 0);
	assert_ok(arc_verify_finish(v, &s->f.chain));
	s->signer =
	    signer_from_pem(rfc8463_rsa_pem, "football.example.com", "test");
	s->manifest = s->signer->manifest(s->signer);
	s->options = (struct arc_seal_options){
		.authserv_id = STR("mx3.example.org"),
		.results = STR("spf=pass smtp.mailfrom=football.example.com; "
			       "dkim=none; dmarc=pass "
			       "header.from=football.example.com"),
		.now_s = NOW,
		.header_canon = CANON_RELAXED,
		.body_canon = CANON_RELAXED,
	};
}

static enum res
sealing_run(struct sealing *s)
{
	return arc_seal_fields(s->f.arena, s->f.header, &s->f.chain,
	    &s->options, s->f.hashes, s->body, s->signer,
	    manifest_at(s->manifest, 0), &s->aar, &s->ams, &s->as);
}

static void
sealing_close(struct sealing *s)
{
	manifest_unref(&s->manifest);
	signer_free(&s->signer);
	fixture_close(&s->f);
}

static void
add_field(struct buf *b, const char *name, struct str value)
{
	buf_addf(b, "%s:", name);
	for (size_t i = 0; i < value.len; i++) {
		if (value.ptr[i] == '\n')
			buf_add_char(b, '\r');
		buf_add_char(b, value.ptr[i]);
	}
	buf_add_c(b, "\r\n");
}

/* The new set on top, in the order of §5.1. */
static const char *
sealed(struct sealing *s, const char *message)
{
	static struct buf b;
	buf_done(&b);
	buf_init(&b, 1 << 20);
	add_field(&b, "ARC-Seal", s->as);
	add_field(&b, "ARC-Message-Signature", s->ams);
	add_field(&b, "ARC-Authentication-Results", s->aar);
	buf_add_c(&b, message);
	return buf_cstr(&b);
}

static void
expect_chain(const char *message, enum auth_result want, unsigned instances)
{
	struct fixture f;
	fixture_open(&f, str_c(message), RFC8463_ZONE);
	fixture_arc(&f, 0);
	if (f.chain.result != want)
		fail_msg("%s: %s", auth_result_word(f.chain.result),
		    f.chain.reason != NULL ? f.chain.reason : "");
	assert_int_equal(f.chain.instances, instances);
	fixture_close(&f);
}

static const char *
message(const char *above)
{
	static char m[16384];
	snprintf(
	    m, sizeof m, "%s%s\r\n%s", above, rfc8463_header, rfc8463_body);
	return m;
}

static void
exact_form(void **state)
{
	struct sealing s;
	sealing_open(&s, message(""), RFC8463_ZONE);
	assert_ok(sealing_run(&s));
	assert_str(s.aar,
	    " i=1; mx3.example.org; spf=pass\n"
	    "\tsmtp.mailfrom=football.example.com; dkim=none; dmarc=pass\n"
	    "\theader.from=football.example.com");
	assert_str(str_sub(s.ams, 0, str_find(s.ams, STR("\n\tb="))),
	    " i=1; a=rsa-sha256; c=relaxed/relaxed;\n"
	    "\td=football.example.com; s=test; t=1700000000;\n"
	    "\th=from:to:subject:date:message-id;\n"
	    "\tbh=2jUSOH9NhtVGCQWNr9BrIAPreKQjO6Sn7XIkfJVOzv8=;");
	assert_str(str_sub(s.as, 0, str_find(s.as, STR("\n\tb="))),
	    " i=1; a=rsa-sha256; t=1700000000; cv=none; "
	    "d=football.example.com;\n"
	    "\ts=test;");
	expect_chain(sealed(&s, message("")), AUTH_PASS, 1);
	sealing_close(&s);
}

/* Seal again and again, up to the last instance there may be. */
static void
fifty_instances(void **state)
{
	char *text = strdup(message(""));
	for (unsigned i = 1; i <= ARC_MAX_INSTANCES + 1; i++) {
		struct sealing s;
		sealing_open(&s, text, RFC8463_ZONE);
		if (i > ARC_MAX_INSTANCES) {
			assert_int_equal(sealing_run(&s), RES_INVALID);
			sealing_close(&s);
			break;
		}
		assert_ok(sealing_run(&s));
		char *next = strdup(sealed(&s, text));
		sealing_close(&s);
		free(text);
		text = next;
	}
	expect_chain(text, AUTH_PASS, ARC_MAX_INSTANCES);
	free(text);
}

static void
covers_signatures_not_results(void **state)
{
	static const char above[] = "Authentication-Results: x; none\r\n"
				    "DKIM-Signature: a\r\n"
				    "DKIM-Signature: b\r\n"
				    "Received: c\r\n";
	static const struct str forbidden[] = { STR("subject"), STR("ARC-Seal"),
		STR("Authentication-results") };
	struct sealing s;
	sealing_open(&s, message(above), RFC8463_ZONE);
	assert_ok(sealing_run(&s));
	assert_true(str_find(s.ams,
			STR("h=from:to:subject:date:message-id:"
			    "dkim-signature:dkim-signature;")) != SIZE_MAX);
	expect_chain(sealed(&s, message(above)), AUTH_PASS, 1);
	s.options.headers = forbidden;
	s.options.header_count = 3;
	assert_ok(sealing_run(&s));
	assert_true(str_find(s.ams, STR("\n\th=subject:from;")) != SIZE_MAX);
	expect_chain(sealed(&s, message(above)), AUTH_PASS, 1);
	sealing_close(&s);
}

/* A failed chain is sealed with cv=fail over the new set alone: the fields
 * below do not matter to it. */
static void
failed_chain(void **state)
{
	char above[8192];
	struct sealing s;
	snprintf(above, sizeof above, "%s%s", arc_set2, arc_set1);
	const char *broken =
	    replaced(message(above), "Subject: Is", "Subject: [tag] Is");
	sealing_open(&s, broken, RFC8463_ZONE);
	assert_int_equal(s.f.chain.result, AUTH_FAIL);
	assert_ok(sealing_run(&s));
	assert_true(str_find(s.as, STR(" i=3; ")) == 0);
	assert_true(str_find(s.as, STR("cv=fail;")) != SIZE_MAX);
	/* As if alone: turned into a first set, the seal's own arithmetic
	 * holds over its three fields. */
	struct fixture f;
	fixture_open(&f, str_c(sealed(&s, broken)), RFC8463_ZONE);
	fixture_arc(&f, 0);
	assert_int_equal(f.chain.result, AUTH_FAIL);
	assert_true(f.chain.sealed_fail);
	fixture_close(&f);
	/* … and nobody goes on from there. */
	struct sealing again;
	sealing_open(&again, sealed(&s, broken), RFC8463_ZONE);
	assert_int_equal(sealing_run(&again), RES_INVALID);
	sealing_close(&again);
	sealing_close(&s);
}

/* The signature of a cv=fail seal, checked by hand. */
static void
failed_chain_signature(void **state)
{
	struct sealing s;
	const char *broken = replaced(message(arc_set1), "hungry", "angry");
	sealing_open(&s, broken, RFC8463_ZONE);
	assert_ok(sealing_run(&s));
	struct fixture f;
	fixture_open(&f, str_c(sealed(&s, broken)), RFC8463_ZONE);
	struct buf data, sig;
	buf_init(&data, 65536);
	buf_init(&sig, 1024);
	struct sink *sink = sink_buf(f.arena, &data);
	const struct field *as = header_at(f.header, 0);
	canon_field(CANON_RELAXED, header_at(f.header, 2), sink);
	canon_field(CANON_RELAXED, header_at(f.header, 1), sink);
	size_t b = str_find(as->value, STR("\tb=")) + 3;
	canon_signature_field(CANON_RELAXED, as, b, as->value.len, sink);
	assert_ok(base64_decode(str_skip(as->value, b), true, &sig));
	struct key_record key;
	assert_ok(key_record_parse(f.arena, STR("p=" RFC8463_RSA_P), &key));
	uint8_t digest[32];
	bool fits = false;
	assert_ok(digest_sha256(data.ptr, data.len, digest));
	assert_ok(pubkey_verify(key.key, digest, buf_str(&sig), &fits));
	assert_true(fits);
	buf_done(&data);
	buf_done(&sig);
	fixture_close(&f);
	sealing_close(&s);
}

static void
not_sealed(void **state)
{
	struct sealing s;
	/* temporary */
	sealing_open(&s, message(arc_set1),
	    "test._domainkey.football.example.com TXT !SERVFAIL\n");
	assert_int_equal(sealing_run(&s), RES_INVALID);
	sealing_close(&s);
	/* no From */
	sealing_open(&s, "To: x\r\n\r\nbody\r\n", "");
	assert_int_equal(sealing_run(&s), RES_INVALID);
	sealing_close(&s);
	/* not RSA */
	sealing_open(&s, message(""), "");
	struct signing_key key = *manifest_at(s.manifest, 0);
	key.type = KEY_ED25519;
	assert_int_equal(
	    arc_seal_fields(s.f.arena, s.f.header, &s.f.chain, &s.options,
		s.f.hashes, s.body, s.signer, &key, &s.aar, &s.ams, &s.as),
	    RES_UNSUPPORTED);
	sealing_close(&s);
}

static void
long_results_are_folded(void **state)
{
	struct sealing s;
	struct str line, rest;
	struct buf b;
	buf_init(&b, 32768);
	for (int i = 0; i < 40; i++)
		buf_addf(&b,
		    "%sdkim=fail reason=\"body; \\\"hash\\\" did not verify\" "
		    "header.d=d%d.football.example.com",
		    i > 0 ? "; " : "", i);
	sealing_open(&s, message(""), RFC8463_ZONE);
	s.options.results = buf_str(&b);
	assert_ok(sealing_run(&s));
	rest = s.aar;
	size_t quotes = 0;
	while (str_split(&rest, '\n', &line)) {
		assert_true(line.len < 78);
		for (size_t i = 0; i < line.len; i++)
			quotes += line.ptr[i] == '"' && line.ptr[i - 1] != '\\';
		assert_int_equal(quotes % 2, 0); /* no fold inside quotes */
	}
	expect_chain(sealed(&s, message("")), AUTH_PASS, 1);
	sealing_close(&s);
	buf_done(&b);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(exact_form),
		cmocka_unit_test(fifty_instances),
		cmocka_unit_test(covers_signatures_not_results),
		cmocka_unit_test(failed_chain),
		cmocka_unit_test(failed_chain_signature),
		cmocka_unit_test(not_sealed),
		cmocka_unit_test(long_results_are_folded),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
