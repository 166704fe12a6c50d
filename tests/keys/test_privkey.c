#include "keys/privkey.h"

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/pem.h>

#include "hn_test.h"

static const uint8_t digest[32] = { 7, 1, 2, 3 };

/* RFC 8032 §7.1 test 1, as PKCS#8 */
static const char ed25519_pem[] =
    "-----BEGIN PRIVATE KEY-----\n"
    "MC4CAQAwBQYDK2VwBCIEIJ1hsZ3v/VpguoRK9JLsLMREScVpezJpGXA7rAMcrn9g\n"
    "-----END PRIVATE KEY-----\n";

static struct privkey *
generated(enum key_type type, unsigned bits)
{
	struct privkey *k = NULL;
	assert_ok(privkey_generate(type, bits, NULL, &k));
	return k;
}

static struct pubkey *
public_of(const struct privkey *k)
{
	struct pubkey *pub = NULL;
	struct buf b;
	buf_init(&b, 4096);
	assert_ok(privkey_public(k, &b));
	if (privkey_type(k) == KEY_RSA)
		assert_ok(pubkey_from_rsa(buf_str(&b), &pub));
	else
		assert_ok(pubkey_from_ed25519(buf_str(&b), &pub));
	buf_done(&b);
	return pub;
}

static void
signs_what_verifies(const struct privkey *k)
{
	struct pubkey *pub = public_of(k);
	struct buf s;
	buf_init(&s, 2048);
	buf_add_c(&s, "x");
	assert_ok(privkey_sign(k, digest, &s));
	assert_int_equal(s.ptr[0], 'x'); /* appended, not replaced */
	bool fits = false;
	struct str signature = str_skip(buf_str(&s), 1);
	assert_ok(pubkey_verify(pub, digest, signature, &fits));
	assert_true(fits);
	assert_int_equal(pubkey_bits(pub), privkey_bits(k));
	buf_done(&s);
	pubkey_unref(&pub);
}

static void
generate_and_pem_round_trip(void **state)
{
	static const struct {
		enum key_type type;
		unsigned bits;
	} rows[] = { { KEY_RSA, 1024 }, { KEY_RSA, 2048 }, { KEY_ED25519, 0 } };
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct privkey *k = generated(rows[i].type, rows[i].bits);
		assert_int_equal(privkey_type(k), rows[i].type);
		signs_what_verifies(k);
		struct buf pem;
		buf_init(&pem, PRIVKEY_MAX_FILE);
		assert_ok(privkey_to_pem(k, &pem));
		assert_true(str_starts(
		    buf_str(&pem), STR("-----BEGIN PRIVATE KEY-----\n")));
		struct privkey *again = NULL;
		assert_ok(privkey_from_pem(buf_str(&pem), "k", NULL, &again));
		signs_what_verifies(again);
		struct buf p1, p2;
		buf_init(&p1, 4096);
		buf_init(&p2, 4096);
		assert_ok(privkey_public(k, &p1));
		assert_ok(privkey_public(again, &p2));
		assert_true(str_eq(buf_str(&p1), buf_str(&p2)));
		buf_done(&p1);
		buf_done(&p2);
		buf_done(&pem);
		privkey_free(&again);
		privkey_free(&k);
		assert_null(k);
		privkey_free(&k);
	}
}

static void
ed25519_is_the_rfc_key(void **state)
{
	static const uint8_t want[32] = { 0xd7, 0x5a, 0x98, 0x01, 0x82, 0xb1,
		0x0a, 0xb7, 0xd5, 0x4b, 0xfe, 0xd3, 0xc9, 0x64, 0x07, 0x3a,
		0x0e, 0xe1, 0x72, 0xf3, 0xda, 0xa6, 0x23, 0x25, 0xaf, 0x02,
		0x1a, 0x68, 0xf7, 0x07, 0x51, 0x1a };
	struct privkey *k = NULL;
	struct buf b;
	assert_ok(privkey_from_pem(str_c(ed25519_pem), "k", NULL, &k));
	buf_init(&b, 64);
	assert_ok(privkey_public(k, &b));
	assert_int_equal(b.len, 32);
	assert_memory_equal(b.ptr, want, 32);
	assert_int_equal(privkey_bits(k), 256);
	buf_done(&b);
	privkey_free(&k);
}

/* Any key of libcrypto as PEM, in a buffer for str_of. */
static struct str
foreign_pem(EVP_PKEY *pkey, const EVP_CIPHER *cipher, bool traditional,
    char *to, size_t room)
{
	BIO *bio = BIO_new(BIO_s_mem());
	char *text;
	assert_non_null(pkey);
	if (traditional)
		assert_int_equal(PEM_write_bio_PrivateKey_traditional(
				     bio, pkey, NULL, NULL, 0, NULL, NULL), 1);
	else
		assert_int_equal(PEM_write_bio_PKCS8PrivateKey(bio, pkey,
				     cipher, cipher != NULL ? "secret" : NULL,
				     cipher != NULL ? 6 : 0, NULL, NULL), 1);
	long len = BIO_get_mem_data(bio, &text);
	assert_true(len > 0 && (size_t)len <= room);
	memcpy(to, text, (size_t)len);
	BIO_free(bio);
	return str_of(to, (size_t)len);
}

static void
traditional_form(void **state)
{
	char text[8192];
	EVP_PKEY *rsa = EVP_RSA_gen(2048);
	struct str pem = foreign_pem(rsa, NULL, true, text, sizeof text);
	assert_true(str_starts(pem, STR("-----BEGIN RSA PRIVATE KEY")));
	struct privkey *k = NULL;
	assert_ok(privkey_from_pem(pem, "k", NULL, &k));
	signs_what_verifies(k);
	privkey_free(&k);
	EVP_PKEY_free(rsa);
}

static void
expect(struct str pem, enum res want, const char *words)
{
	struct privkey *k = NULL;
	struct err e = { "" };
	assert_int_equal(privkey_from_pem(pem, "dir/sel.pem", &e, &k), want);
	assert_null(k);
	assert_true(strncmp(e.text, "dir/sel.pem: ", 13) == 0);
	if (strstr(e.text, words) == NULL)
		fail_msg("\"%s\" lacks \"%s\"", e.text, words);
}

static void
refused(void **state)
{
	char text[8192];
	expect(STR_EMPTY, RES_SYNTAX, "no private key");
	expect(STR("rubbish"), RES_SYNTAX, "no private key");
	expect(STR("-----BEGIN PRIVATE KEY-----\nAAAA\n"
		   "-----END PRIVATE KEY-----\n"), RES_SYNTAX, "no private");

	EVP_PKEY *ec = EVP_EC_gen("P-256");
	expect(foreign_pem(ec, NULL, false, text, sizeof text),
	    RES_UNSUPPORTED, "neither");
	EVP_PKEY_free(ec);

	EVP_PKEY *small = EVP_RSA_gen(768);
	expect(foreign_pem(small, NULL, false, text, sizeof text), RES_LIMIT,
	    "768 bits");
	EVP_PKEY_free(small);

	EVP_PKEY *rsa = EVP_RSA_gen(1024);
	expect(foreign_pem(rsa, EVP_aes_128_cbc(), false, text, sizeof text),
	    RES_SYNTAX, "pass phrase");
	EVP_PKEY_free(rsa);

	char *big = calloc(1, PRIVKEY_MAX_FILE + 1);
	expect(str_of(big, PRIVKEY_MAX_FILE + 1), RES_LIMIT, "larger");
	expect(str_of(big, PRIVKEY_MAX_FILE), RES_SYNTAX, "no private");
	free(big);
}

/* The modulus is changed, all else kept: parses, but must not sign. */
static void
damaged(void **state)
{
	char text[8192];
	EVP_PKEY *rsa = EVP_RSA_gen(1024);
	struct str pem = foreign_pem(rsa, NULL, true, text, sizeof text);
	/* in the second base64 line: within n of the traditional form */
	size_t line = str_chr(pem, '\n') + 1 + 65;
	text[line + 4] = text[line + 4] == 'A' ? 'B' : 'A';
	struct privkey *k = NULL;
	struct err e = { "" };
	assert_int_not_equal(privkey_from_pem(pem, "k", &e, &k), RES_OK);
	assert_null(k);
	assert_string_not_equal(e.text, "");
	EVP_PKEY_free(rsa);
}

static void
generate_limits(void **state)
{
	struct privkey *k = NULL;
	struct err e = { "" };
	assert_int_equal(privkey_generate(KEY_RSA, 1023, &e, &k), RES_LIMIT);
	assert_non_null(strstr(e.text, "1024"));
	assert_int_equal(
	    privkey_generate(KEY_RSA, 8193, NULL, &k), RES_LIMIT);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(generate_and_pem_round_trip),
		cmocka_unit_test(ed25519_is_the_rfc_key),
		cmocka_unit_test(traditional_form),
		cmocka_unit_test(refused),
		cmocka_unit_test(damaged),
		cmocka_unit_test(generate_limits),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
