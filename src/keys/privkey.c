#include "keys/privkey.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>
#include <openssl/x509.h>
#include <stdlib.h>
#include <string.h>

#include "keys/lack.h"

#define ED25519_LEN   32
#define MAX_SIGNATURE (PUBKEY_MAX_RSA_BITS / 8)

struct privkey {
	enum key_type type;
	unsigned bits;
	EVP_PKEY *pkey; /* libcrypto wipes its numbers when it is freed */
};

/* Without it libcrypto would ask the terminal for a pass phrase. */
static int
no_passphrase(char *buf, int size, int rwflag, void *arg)
{
	(void)buf;
	(void)size;
	(void)rwflag;
	bool *asked = arg;
	*asked = true;
	return -1;
}

static enum res
wrap(EVP_PKEY *pkey, const char *label, struct err *err, struct privkey **out)
{
	struct privkey *k = calloc(1, sizeof *k);
	if (k == NULL) {
		EVP_PKEY_free(pkey);
		return RES_NOMEM;
	}
	k->pkey = pkey;
	k->bits = (unsigned)EVP_PKEY_get_bits(pkey);
	if (EVP_PKEY_is_a(pkey, "RSA")) {
		k->type = KEY_RSA;
	} else if (EVP_PKEY_is_a(pkey, "ED25519")) {
		k->type = KEY_ED25519;
		k->bits = 256;
	} else {
		err_set(err, "%s: neither an RSA nor an Ed25519 key", label);
		privkey_free(&k);
		return RES_UNSUPPORTED;
	}
	if (k->type == KEY_RSA &&
	    (k->bits < PRIVKEY_MIN_RSA_BITS || k->bits > PUBKEY_MAX_RSA_BITS)) {
		err_set(err, "%s: an RSA key of %u bits; %u to %u are usable",
		    label, k->bits, PRIVKEY_MIN_RSA_BITS, PUBKEY_MAX_RSA_BITS);
		privkey_free(&k);
		return RES_LIMIT;
	}
	*out = k;
	return RES_OK;
}

/* A damaged file can still parse: sign once and check it as receivers will,
 * so that no wrong signature ever leaves. */
static enum res
prove(const struct privkey *k, const char *label, struct err *err)
{
	static const uint8_t digest[32] = { 1 };
	struct buf public, signature;
	struct pubkey *pub = NULL;
	bool fits = false;
	buf_init(&public, PRIVKEY_MAX_FILE);
	buf_init(&signature, MAX_SIGNATURE);
	enum res r = privkey_public(k, &public);
	if (r == RES_OK)
		r = k->type == KEY_RSA ?
		    pubkey_from_rsa(buf_str(&public), &pub) :
		    pubkey_from_ed25519(buf_str(&public), &pub);
	if (r == RES_OK)
		r = privkey_sign(k, digest, &signature);
	if (r == RES_OK)
		r = pubkey_verify(pub, digest, buf_str(&signature), &fits);
	pubkey_unref(&pub);
	buf_done(&public);
	buf_done(&signature);
	if (r == RES_NOMEM || (r == RES_OK && fits))
		return r;
	err_set(err, "%s: the key is damaged: its own signature does not fit",
	    label);
	return RES_CORRUPT;
}

enum res
privkey_from_pem(struct str pem, const char *label, struct err *err,
    struct privkey **out)
{
	if (pem.len > PRIVKEY_MAX_FILE) {
		err_set(err, "%s: larger than any key file", label);
		return RES_LIMIT;
	}
	BIO *bio = BIO_new_mem_buf(pem.ptr != NULL ? pem.ptr : "",
	    (int)pem.len);
	if (bio == NULL)
		return RES_NOMEM;
	bool asked = false;
	EVP_PKEY *pkey = PEM_read_bio_PrivateKey(
	    bio, NULL, no_passphrase, &asked);
	BIO_free(bio);
	ERR_clear_error();
	if (pkey == NULL) {
		err_set(err, asked ? "%s: the key has a pass phrase; it must "
				     "be stored without one" :
				     "%s: no private key in PEM form", label);
		return RES_SYNTAX;
	}
	struct privkey *k;
	enum res r = wrap(pkey, label, err, &k);
	if (r != RES_OK)
		return r;
	r = prove(k, label, err);
	if (r != RES_OK) {
		privkey_free(&k);
		return r;
	}
	*out = k;
	return RES_OK;
}

enum res
privkey_generate(
    enum key_type type, unsigned bits, struct err *err, struct privkey **out)
{
	if (type == KEY_RSA &&
	    (bits < PRIVKEY_MIN_RSA_BITS || bits > PUBKEY_MAX_RSA_BITS)) {
		err_set(err, "RSA keys have %u to %u bits, not %u",
		    PRIVKEY_MIN_RSA_BITS, PUBKEY_MAX_RSA_BITS, bits);
		return RES_LIMIT;
	}
	EVP_PKEY *pkey = type == KEY_RSA ?
	    EVP_PKEY_Q_keygen(NULL, NULL, "RSA", (size_t)bits) :
	    EVP_PKEY_Q_keygen(NULL, NULL, "ED25519");
	ERR_clear_error();
	if (pkey == NULL) {
		err_set(err, "libcrypto could not make a key");
		return RES_IO;
	}
	return wrap(pkey, "the new key", err, out);
}

enum res
privkey_to_pem(const struct privkey *k, struct buf *out)
{
	/* this kind wipes its memory when it is freed */
	BIO *bio = BIO_new(BIO_s_secmem());
	if (bio == NULL)
		return RES_NOMEM;
	enum res r = RES_IO;
	if (PEM_write_bio_PKCS8PrivateKey(
		bio, k->pkey, NULL, NULL, 0, NULL, NULL) == 1) {
		char *text;
		long len = BIO_get_mem_data(bio, &text);
		char *to = len > 0 ? buf_reserve(out, (size_t)len) : NULL;
		if (to != NULL) {
			memcpy(to, text, (size_t)len);
			out->len += (size_t)len;
		}
		r = out->error;
	}
	BIO_free(bio);
	ERR_clear_error();
	return r;
}

void
privkey_free(struct privkey **kp)
{
	struct privkey *k = *kp;
	*kp = NULL;
	if (k == NULL)
		return;
	EVP_PKEY_free(k->pkey);
	free(k);
}

enum key_type
privkey_type(const struct privkey *k)
{
	return k->type;
}

unsigned
privkey_bits(const struct privkey *k)
{
	return k->bits;
}

enum res
privkey_public(const struct privkey *k, struct buf *out)
{
	if (k->type == KEY_ED25519) {
		uint8_t raw[ED25519_LEN];
		size_t len = sizeof raw;
		if (EVP_PKEY_get_raw_public_key(k->pkey, raw, &len) != 1 ||
		    len != sizeof raw) {
			ERR_clear_error();
			return RES_IO;
		}
		buf_add(out, raw, len);
		return out->error;
	}
	unsigned char *der = NULL;
	int len = i2d_PUBKEY(k->pkey, &der);
	ERR_clear_error();
	if (len <= 0)
		return RES_IO;
	buf_add(out, der, (size_t)len);
	OPENSSL_free(der);
	return out->error;
}

static bool
sign_rsa(EVP_PKEY *pkey, const uint8_t digest[32], uint8_t *to, size_t *len)
{
	EVP_PKEY_CTX *ctx = EVP_PKEY_CTX_new_from_pkey(NULL, pkey, NULL);
	bool good = ctx != NULL && EVP_PKEY_sign_init(ctx) == 1 &&
	    EVP_PKEY_CTX_set_rsa_padding(ctx, RSA_PKCS1_PADDING) == 1 &&
	    EVP_PKEY_CTX_set_signature_md(ctx, EVP_sha256()) == 1 &&
	    EVP_PKEY_sign(ctx, to, len, digest, 32) == 1;
	EVP_PKEY_CTX_free(ctx);
	return good;
}

/* Where libcrypto (3.0) had no memory to renew the blinding of a key, some 30
 * signatures with it come out wrong, and it does not say so. */
static bool
rsa_fits(EVP_PKEY *pkey, const uint8_t digest[32], const uint8_t *signature,
    size_t len)
{
	EVP_PKEY_CTX *ctx = EVP_PKEY_CTX_new_from_pkey(NULL, pkey, NULL);
	bool fits = ctx != NULL && EVP_PKEY_verify_init(ctx) == 1 &&
	    EVP_PKEY_CTX_set_rsa_padding(ctx, RSA_PKCS1_PADDING) == 1 &&
	    EVP_PKEY_CTX_set_signature_md(ctx, EVP_sha256()) == 1 &&
	    EVP_PKEY_verify(ctx, signature, len, digest, 32) == 1;
	EVP_PKEY_CTX_free(ctx);
	return fits;
}

static bool
sign_ed25519(EVP_PKEY *pkey, struct str text, uint8_t *to, size_t *len)
{
	EVP_MD_CTX *ctx = EVP_MD_CTX_new();
	bool good = ctx != NULL &&
	    EVP_DigestSignInit_ex(ctx, NULL, NULL, NULL, NULL, pkey, NULL) ==
		1 &&
	    EVP_DigestSign(ctx, to, len, (const uint8_t *)text.ptr,
		text.len) == 1;
	EVP_MD_CTX_free(ctx);
	return good;
}

enum res
privkey_sign(
    const struct privkey *k, const uint8_t digest[32], struct buf *out)
{
	uint8_t signature[MAX_SIGNATURE];
	size_t len = sizeof signature;
	ERR_clear_error();
	bool good = k->type == KEY_RSA ?
	    sign_rsa(k->pkey, digest, signature, &len) :
	    sign_ed25519(k->pkey, str_of(digest, 32), signature, &len);
	if (good && k->type == KEY_RSA && lack_ever())
		good = rsa_fits(k->pkey, digest, signature, len);
	ERR_clear_error();
	if (!good)
		return RES_IO;
	buf_add(out, signature, len);
	return out->error;
}

enum res
privkey_sign_text(const struct privkey *k, struct str text, struct buf *out)
{
	uint8_t signature[MAX_SIGNATURE];
	size_t len = sizeof signature;
	if (k->type != KEY_ED25519)
		return RES_UNSUPPORTED;
	ERR_clear_error();
	bool good = sign_ed25519(k->pkey, text, signature, &len);
	ERR_clear_error();
	if (!good)
		return RES_IO;
	buf_add(out, signature, len);
	return out->error;
}
