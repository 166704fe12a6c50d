#include "keys/pubkey.h"

#include <openssl/bn.h>
#include <openssl/evp.h>
#include <openssl/x509.h>
#include <pthread.h>

#include "base/codec.h"
#include "hn_test.h"
#include "keys/privkey.h"

/* --- an independent DER writer --- */

static void
der(struct buf *out, uint8_t tag, struct str content)
{
	buf_add_char(out, (char)tag);
	if (content.len < 0x80) {
		buf_add_char(out, (char)content.len);
	} else if (content.len < 0x100) {
		buf_add_char(out, (char)0x81);
		buf_add_char(out, (char)content.len);
	} else {
		buf_add_char(out, (char)0x82);
		buf_add_char(out, (char)(content.len >> 8));
		buf_add_char(out, (char)content.len);
	}
	buf_add_str(out, content);
}

struct shape {
	size_t n_len;          /* bytes of modulus */
	uint8_t n_first;       /* its first byte */
	const char *e;         /* content of the exponent's INTEGER */
	size_t e_len;
	bool bare;             /* RSAPublicKey without the wrapping */
	const char *algorithm; /* content of AlgorithmIdentifier */
	size_t algorithm_len;
	bool no_sign_byte;     /* n without the zero it needs */
};

#define OID  "\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x01\x01"
#define E_OK "\x01\x00\x01", 3
#define WITH_NULL OID "\x05\x00", 13, false
#define BARE true, NULL, 0, false

static void
build(const struct shape *s, struct buf *out)
{
	struct buf n, inner, key, bits;
	char modulus[2048];
	buf_init(&n, 8192);
	buf_init(&inner, 8192);
	buf_init(&key, 8192);
	buf_init(&bits, 8192);
	memset(modulus, 0xa5, sizeof modulus); /* odd */
	modulus[0] = (char)s->n_first;
	if (s->n_first >= 0x80 && !s->no_sign_byte)
		buf_add_char(&n, 0);
	buf_add(&n, modulus, s->n_len);
	der(&inner, 2, buf_str(&n));
	der(&inner, 2, str_of(s->e, s->e_len));
	der(&key, 0x30, buf_str(&inner));
	if (s->bare) {
		buf_add_str(out, buf_str(&key));
	} else {
		buf_reset(&inner);
		der(&inner, 0x30, str_of(s->algorithm, s->algorithm_len));
		buf_add_char(&bits, 0);
		buf_add_str(&bits, buf_str(&key));
		der(&inner, 3, buf_str(&bits));
		der(out, 0x30, buf_str(&inner));
	}
	buf_done(&n);
	buf_done(&inner);
	buf_done(&key);
	buf_done(&bits);
}

static const struct {
	const char *label;
	struct shape shape;
	enum res want;
	unsigned bits;
} shapes[] = {
	{ "spki 2048", { 256, 0x80, E_OK, false, WITH_NULL }, RES_OK, 2048 },
	{ "spki without NULL", { 256, 0xff, E_OK, false, OID, 11, false }, RES_OK,
	    2048 },
	{ "bare", { 256, 0xc0, E_OK, BARE }, RES_OK, 2048 },
	{ "2047 bits", { 256, 0x40, E_OK, BARE }, RES_OK, 2047 },
	{ "512 bits are the caller's", { 64, 0x80, E_OK, BARE }, RES_OK, 512 },
	{ "8192 bits", { 1024, 0x80, E_OK, BARE }, RES_OK, 8192 },
	{ "8193 bits", { 1025, 0x01, E_OK, BARE }, RES_LIMIT, 0 },
	{ "e of 64 bits",
	    { 256, 0x80, "\x00\xff\x00\x00\x00\x00\x00\x00\x01", 9, BARE },
	    RES_OK, 2048 },
	{ "e of 65 bits",
	    { 256, 0x80, "\x01\x00\x00\x00\x00\x00\x00\x00\x01", 9, BARE },
	    RES_LIMIT, 0 },
	{ "e = 3", { 256, 0x80, "\x03", 1, BARE }, RES_OK, 2048 },
	{ "e = 1", { 256, 0x80, "\x01", 1, BARE }, RES_INVALID, 0 },
	{ "e = 2", { 256, 0x80, "\x02", 1, BARE }, RES_INVALID, 0 },
	{ "e even", { 256, 0x80, "\x01\x00\x00", 3, BARE }, RES_INVALID, 0 },
	{ "e = 0", { 256, 0x80, "\x00", 1, BARE }, RES_SYNTAX, 0 },
	{ "e empty", { 256, 0x80, "", 0, BARE }, RES_SYNTAX, 0 },
	{ "e negative", { 256, 0x80, "\x81", 1, BARE }, RES_SYNTAX, 0 },
	{ "e not minimal", { 256, 0x80, "\x00\x03", 2, BARE }, RES_SYNTAX, 0 },
	{ "n negative", { 256, 0x80, E_OK, true, NULL, 0, true }, RES_SYNTAX,
	    0 },
	{ "another algorithm",
	    { 256, 0x80, E_OK, false, "\x06\x03\x2b\x65\x70", 5,
		false }, RES_SYNTAX,
	    0 },
	{ "parameters that are no NULL",
	    { 256, 0x80, E_OK, false, OID "\x05\x01\x00", 14,
		false }, RES_SYNTAX,
	    0 },
};

static void
forms(void **state)
{
	for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
		struct buf b;
		struct pubkey *k = NULL;
		buf_init(&b, 8192);
		build(&shapes[i].shape, &b);
		assert_ok(b.error);
		enum res r = pubkey_from_rsa(buf_str(&b), &k);
		if (r != shapes[i].want)
			fail_msg("%s: %s", shapes[i].label, res_text(r));
		if (r == RES_OK) {
			assert_int_equal(pubkey_bits(k), shapes[i].bits);
			assert_int_equal(pubkey_type(k), KEY_RSA);
		} else {
			assert_null(k);
		}
		pubkey_unref(&k);
		buf_done(&b);
	}
}

static void
every_truncation_and_trailing_byte(void **state)
{
	for (int bare = 0; bare < 2; bare++) {
		struct buf b;
		struct pubkey *k = NULL;
		struct shape s = { 128, 0x80, E_OK, bare != 0, WITH_NULL };
		buf_init(&b, 8192);
		build(&s, &b);
		for (size_t n = 0; n < b.len; n++) {
			/* on the heap, so that a read beyond is noticed */
			char *copy = malloc(n > 0 ? n : 1);
			memcpy(copy, b.ptr, n);
			assert_int_equal(
			    pubkey_from_rsa(str_of(copy, n), &k), RES_SYNTAX);
			free(copy);
		}
		buf_add_char(&b, 0);
		assert_int_equal(pubkey_from_rsa(buf_str(&b), &k), RES_SYNTAX);
		buf_done(&b);
	}
}

static void
long_length_forms(void **state)
{
	static const struct str rows[] = {
		{ "\x30\x80\x02\x01\x05\x02\x01\x03\x00\x00", 10 },
		{ "\x30\x81\x06\x02\x01\x05\x02\x01\x03", 9 },
		{ "\x30\x82\x00\x06\x02\x01\x05\x02\x01\x03", 10 },
		{ "\x30\x84\x00\x00\x00\x06\x02\x01\x05\x02\x01\x03", 12 },
		{ "\x30\xff\xff", 3 },
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct pubkey *k = NULL;
		assert_int_equal(pubkey_from_rsa(rows[i], &k), RES_SYNTAX);
	}
}

static void
ed25519_raw(void **state)
{
	char raw[45] = "0123456789abcdef0123456789abcdef0123456789ab";
	struct pubkey *k = NULL;
	assert_int_equal(
	    pubkey_from_ed25519(str_of(raw, 31), &k), RES_SYNTAX);
	assert_int_equal(
	    pubkey_from_ed25519(str_of(raw, 33), &k), RES_SYNTAX);
	/* KEY-06: a SubjectPublicKeyInfo where the raw key belongs */
	assert_int_equal(
	    pubkey_from_ed25519(str_of(raw, 44), &k), RES_SYNTAX);
	assert_ok(pubkey_from_ed25519(str_of(raw, 32), &k));
	assert_int_equal(pubkey_bits(k), 256);
	assert_int_equal(pubkey_type(k), KEY_ED25519);
	pubkey_unref(&k);
}

struct pair {
	struct privkey *private;
	struct pubkey *public;
	struct buf signature;
	uint8_t digest[32];
};

static void
pair_init(struct pair *p, enum key_type type, unsigned bits)
{
	struct buf b;
	buf_init(&b, 4096);
	buf_init(&p->signature, 2048);
	memset(p->digest, 0x5a, sizeof p->digest);
	assert_ok(privkey_generate(type, bits, NULL, &p->private));
	assert_ok(privkey_public(p->private, &b));
	if (type == KEY_RSA)
		assert_ok(pubkey_from_rsa(buf_str(&b), &p->public));
	else
		assert_ok(pubkey_from_ed25519(buf_str(&b), &p->public));
	assert_ok(privkey_sign(p->private, p->digest, &p->signature));
	buf_done(&b);
}

static void
pair_done(struct pair *p)
{
	privkey_free(&p->private);
	pubkey_unref(&p->public);
	buf_done(&p->signature);
}

static bool
fits(struct pair *p, const uint8_t *digest, struct str signature)
{
	bool yes = false;
	assert_ok(pubkey_verify(p->public, digest, signature, &yes));
	return yes;
}

static void
verify(void **state)
{
	static const struct {
		enum key_type type;
		unsigned bits;
	} rows[] = { { KEY_RSA, 1024 }, { KEY_RSA, 2048 }, { KEY_ED25519, 0 } };
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct pair p;
		pair_init(&p, rows[i].type, rows[i].bits);
		struct str s = buf_str(&p.signature);
		assert_true(fits(&p, p.digest, s));
		uint8_t other[32] = { 1 };
		assert_false(fits(&p, other, s));
		assert_false(fits(&p, p.digest, STR_EMPTY));
		assert_false(fits(&p, p.digest, str_sub(s, 0, s.len - 1)));
		buf_add_char(&p.signature, 0);
		assert_false(fits(&p, p.digest, buf_str(&p.signature)));
		p.signature.len--;
		s = buf_str(&p.signature);
		for (size_t at = 0; at < s.len; at += 13) {
			p.signature.ptr[at] ^= 1;
			assert_false(fits(&p, p.digest, s));
			p.signature.ptr[at] ^= 1;
		}
		memset(p.signature.ptr, 0xff, s.len); /* above the modulus */
		assert_false(fits(&p, p.digest, s));
		memset(p.signature.ptr, 0, s.len);
		assert_false(fits(&p, p.digest, s));
		pair_done(&p);
	}
}

/* A good one after a bad one: the kept context carries nothing over. */
static void
context_is_reusable(void **state)
{
	struct pair p;
	uint8_t other[32] = { 0 };
	pair_init(&p, KEY_RSA, 1024);
	for (int i = 0; i < 5; i++) {
		assert_false(fits(&p, other, buf_str(&p.signature)));
		assert_true(fits(&p, p.digest, buf_str(&p.signature)));
	}
	pair_done(&p);
}

static void
recover(void **state)
{
	struct pair p, other;
	uint8_t got[32];
	pair_init(&p, KEY_RSA, 1024);
	pair_init(&other, KEY_RSA, 1024);
	struct str signature = buf_str(&p.signature);
	assert_ok(pubkey_recover(p.public, signature, got));
	assert_memory_equal(got, p.digest, 32);
	assert_int_equal(
	    pubkey_recover(other.public, signature, got), RES_NOTFOUND);
	signature.len--;
	assert_int_equal(
	    pubkey_recover(p.public, signature, got), RES_NOTFOUND);
	pair_done(&other);
	pair_done(&p);
	pair_init(&p, KEY_ED25519, 0);
	assert_int_equal(pubkey_recover(p.public, buf_str(&p.signature), got),
	    RES_UNSUPPORTED);
	pair_done(&p);
}

static void *
verify_often(void *arg)
{
	struct pair *p = arg;
	size_t good = 0;
	for (int i = 0; i < 300; i++) {
		struct pubkey *mine = pubkey_ref(p->public);
		bool yes = false;
		if (pubkey_verify(mine, p->digest, buf_str(&p->signature),
			&yes) == RES_OK && yes)
			good++;
		pubkey_unref(&mine);
	}
	return (void *)good;
}

static void
shared_by_threads(void **state)
{
	struct pair p;
	pthread_t threads[4];
	pair_init(&p, KEY_RSA, 1024);
	for (size_t i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&threads[i], NULL,
				     verify_often, &p), 0);
	for (size_t i = 0; i < 4; i++) {
		void *good;
		pthread_join(threads[i], &good);
		assert_int_equal((size_t)good, 300);
	}
	pair_done(&p);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(forms),
		cmocka_unit_test(every_truncation_and_trailing_byte),
		cmocka_unit_test(long_length_forms),
		cmocka_unit_test(ed25519_raw),
		cmocka_unit_test(verify),
		cmocka_unit_test(context_is_reusable),
		cmocka_unit_test(recover),
		cmocka_unit_test(shared_by_threads),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
