#include "auth/signfield.h"

#include "auth_test.h"

struct making {
	struct fixture f;
	struct signer *signer;
	struct manifest *manifest;
	struct signfield *field;
};

static void
making_open(struct making *m, const char *message)
{
	fixture_open(&m->f, str_c(message), "");
	m->signer = signer_from_pem(rfc8463_rsa_pem, "example.com", "s");
	m->manifest = m->signer->manifest(m->signer);
	assert_ok(
	    signfield_new(m->f.arena, "X-Signature", m->f.header, &m->field));
}

static struct str
made(struct making *m, enum canon c)
{
	struct str value;
	assert_ok(signfield_sign(
	    m->field, c, m->signer, manifest_at(m->manifest, 0), &value));
	return value;
}

static void
making_close(struct making *m)
{
	manifest_unref(&m->manifest);
	signer_free(&m->signer);
	fixture_close(&m->f);
}

/* No line is longer than it may be, whatever the lengths of the parts. */
static void
width(void **state)
{
	for (size_t len = 1; len < 140; len++) {
		struct making m;
		char long_value[200] = { 0 };
		struct str value, line;
		bool first = true;
		making_open(&m, "From: a@b.c\r\n\r\n");
		memset(long_value, 'x', len);
		signfield_tag(m.field, "v", STR("1"));
		signfield_tag(m.field, "n", str_c(long_value));
		signfield_number(m.field, "t", (int64_t)1 << 40);
		for (int i = 0; i < 8; i++)
			assert_ok(signfield_name(
			    m.field, str_of(long_value, len > 60 ? 60 : len)));
		signfield_names(m.field);
		value = made(&m, CANON_RELAXED);
		while (str_split(&value, '\n', &line)) {
			size_t columns = first
			    ? strlen("X-Signature:") + line.len
			    : line.len + 7;
			bool unbreakable =
			    str_find(line, str_c(long_value)) != SIZE_MAX;
			assert_true(columns <= SIGNFIELD_WIDTH || unbreakable);
			assert_true(line.len > 1);
			assert_int_equal(str_chr(line, '\r'), SIZE_MAX);
			first = false;
		}
		making_close(&m);
	}
}

/* What is signed is the field as it will be read, for both forms. */
static void
signs_itself(void **state)
{
	for (int c = 0; c < 2; c++) {
		struct making m;
		uint8_t digest[32];
		struct buf data, sig;
		bool fits = false;
		making_open(&m, "Subject: a\r\n\tb \r\nFrom: x\r\n\r\n");
		signfield_tag(m.field, "v", STR("1"));
		assert_ok(signfield_name(m.field, STR("SUBJECT")));
		assert_ok(signfield_name(m.field, STR("subject")));
		signfield_names(m.field);
		struct str value =
		    signfield_to_crlf(m.f.arena, made(&m, (enum canon)c));
		size_t b = str_find(value, STR("\tb=")) + 3;
		assert_true(
		    str_find(value, STR("h=subject:subject;")) != SIZE_MAX);
		struct field self = { .name = STR("X-Signature"),
			.raw_name = STR("X-Signature"),
			.value = value };
		buf_init(&data, 65536);
		buf_init(&sig, 1024);
		struct sink *sink = sink_buf(m.f.arena, &data);
		canon_field((enum canon)c, header_at(m.f.header, 0), sink);
		canon_signature_field((enum canon)c, &self, b, value.len, sink);
		assert_ok(digest_sha256(data.ptr, data.len, digest));
		assert_ok(base64_decode(str_skip(value, b), true, &sig));
		struct key_record key;
		assert_ok(
		    key_record_parse(m.f.arena, STR("p=" RFC8463_RSA_P), &key));
		assert_ok(pubkey_verify(key.key, digest, buf_str(&sig), &fits));
		assert_true(fits);
		buf_done(&data);
		buf_done(&sig);
		making_close(&m);
	}
}

static void
limits(void **state)
{
	struct making m;
	making_open(&m, "From: x\r\n\r\n");
	for (int i = 0; i < SIG_MAX_NAMES; i++)
		assert_ok(signfield_name(m.field, STR("from")));
	assert_int_equal(signfield_name(m.field, STR("from")), RES_LIMIT);
	making_close(&m);

	static char huge[SIGNFIELD_MAX];
	struct str value = STR("untouched");
	making_open(&m, "From: x\r\n\r\n");
	memset(huge, 'x', sizeof huge);
	signfield_tag(m.field, "n", str_of(huge, sizeof huge));
	assert_int_equal(signfield_sign(m.field, CANON_SIMPLE, m.signer,
			     manifest_at(m.manifest, 0), &value),
	    RES_LIMIT);
	assert_str(value, "untouched");
	making_close(&m);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(width),
		cmocka_unit_test(signs_itself),
		cmocka_unit_test(limits),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
