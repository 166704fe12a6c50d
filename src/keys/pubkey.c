#include "keys/pubkey.h"

#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/rsa.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/codec.h"
#include "keys/lack.h"

#define ED25519_LEN 32

/* The largest integer worth copying: a sign byte before 8192 bits. */
#define MAX_INTEGER (PUBKEY_MAX_RSA_BITS / 8)

/* Ready verification contexts are kept with the key for the next callers: one
 * saves a fifth of an RSA-2048 verify, and making it takes locks of libcrypto.
 * As many as are in use at once by busy threads; a thread that finds none
 * makes its own, and one that finds no room for it when done frees it. */
#define SPARES 8

struct pubkey {
	atomic_uint refs;
	enum key_type type;
	unsigned bits;
	EVP_PKEY *pkey;
	_Atomic(EVP_PKEY_CTX *) spares[SPARES]; /* RSA only */
};

/* --- DER: only what a public key holds (X.690 §8, §10) --- */

enum { DER_INTEGER = 0x02, DER_BIT_STRING = 0x03, DER_SEQUENCE = 0x30 };

/* Cut one element with this tag off `in`: definite, minimal lengths only. */
static bool
der_take(struct str *in, uint8_t tag, struct str *out)
{
	const uint8_t *p = (const uint8_t *)in->ptr;
	if (in->len < 2 || p[0] != tag)
		return false;
	size_t head = 2, len = p[1];
	if (len > 0x80) {
		size_t octets = len & 0x7f;
		if (octets > 2 || in->len < 2 + octets || p[2] == 0)
			return false;
		len = octets == 1 ? p[2] : (size_t)get_be16(p + 2);
		if (len < 0x80)
			return false;
		head += octets;
	} else if (len == 0x80) {
		return false; /* indefinite: BER, not DER */
	}
	if (len > in->len - head)
		return false;
	*out = str_sub(*in, head, len);
	*in = str_skip(*in, head + len);
	return true;
}

/* A positive INTEGER without its sign byte; never empty. */
static bool
der_take_positive(struct str *in, struct str *out)
{
	struct str v;
	if (!der_take(in, DER_INTEGER, &v) || v.len == 0)
		return false;
	if ((uint8_t)v.ptr[0] >= 0x80)
		return false; /* negative */
	if (v.ptr[0] == 0) {
		v = str_skip(v, 1);
		/* zero itself, or a sign byte that is not needed */
		if (v.len == 0 || (uint8_t)v.ptr[0] < 0x80)
			return false;
	}
	*out = v;
	return true;
}

/* rsaEncryption, 1.2.840.113549.1.1.1, with or without the NULL parameters
 * that RFC 3279 §2.3.1 wants and some publishers forget. */
static bool
is_rsa_algorithm(struct str id)
{
	struct str oid = STR("\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x01\x01");
	if (!str_starts(id, oid))
		return false;
	id = str_skip(id, oid.len);
	return id.len == 0 || str_eq(id, str_of("\x05\x00", 2));
}

/* Modulus and exponent of either form; views into `der`. */
static bool
split_rsa(struct str der, struct str *out_n, struct str *out_e)
{
	struct str outer, id, bits, key, n, e;
	if (!der_take(&der, DER_SEQUENCE, &outer) || der.len != 0)
		return false;
	key = outer;
	if (der_take(&outer, DER_SEQUENCE, &id)) {
		if (!is_rsa_algorithm(id) ||
		    !der_take(&outer, DER_BIT_STRING, &bits) ||
		    outer.len != 0 || bits.len == 0 || bits.ptr[0] != 0)
			return false;
		bits = str_skip(bits, 1);
		if (!der_take(&bits, DER_SEQUENCE, &key) || bits.len != 0)
			return false;
	}
	if (!der_take_positive(&key, &n) || !der_take_positive(&key, &e) ||
	    key.len != 0)
		return false;
	*out_n = n;
	*out_e = e;
	return true;
}

static unsigned
bit_length(struct str number)
{
	unsigned top = (uint8_t)number.ptr[0], bits = 0;
	for (; top != 0; top >>= 1)
		bits++;
	return (unsigned)(number.len - 1) * 8 + bits;
}

/* --- handles --- */

static enum res
pubkey_wrap(EVP_PKEY *pkey, enum key_type type, unsigned bits,
    struct pubkey **out)
{
	struct pubkey *k = calloc(1, sizeof *k);
	if (k == NULL) {
		EVP_PKEY_free(pkey);
		return RES_NOMEM;
	}
	atomic_init(&k->refs, 1);
	for (size_t i = 0; i < SPARES; i++)
		atomic_init(&k->spares[i], NULL);
	k->type = type;
	k->bits = bits;
	k->pkey = pkey;
	*out = k;
	return RES_OK;
}

/* OSSL_PARAM wants unsigned integers in the machine's byte order. */
static void
copy_native(uint8_t *to, struct str number)
{
	for (size_t i = 0; i < number.len; i++)
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
		to[i] = (uint8_t)number.ptr[number.len - 1 - i];
#else
		to[i] = (uint8_t)number.ptr[i];
#endif
}

enum res
pubkey_from_rsa(struct str der, struct pubkey **out)
{
	struct str n, e;
	if (!split_rsa(der, &n, &e))
		return RES_SYNTAX;
	unsigned bits = bit_length(n);
	if (bits > PUBKEY_MAX_RSA_BITS ||
	    bit_length(e) > PUBKEY_MAX_EXPONENT_BITS)
		return RES_LIMIT;
	if ((e.ptr[e.len - 1] & 1) == 0 || (e.len == 1 && e.ptr[0] < 3))
		return RES_INVALID;

	uint8_t native_n[MAX_INTEGER], native_e[PUBKEY_MAX_EXPONENT_BITS / 8];
	copy_native(native_n, n);
	copy_native(native_e, e);
	OSSL_PARAM params[] = {
		OSSL_PARAM_BN(OSSL_PKEY_PARAM_RSA_N, native_n, n.len),
		OSSL_PARAM_BN(OSSL_PKEY_PARAM_RSA_E, native_e, e.len),
		OSSL_PARAM_END,
	};
	EVP_PKEY *pkey = NULL;
	lack_begin();
	EVP_PKEY_CTX *ctx = EVP_PKEY_CTX_new_from_name(NULL, "RSA", NULL);
	bool good = ctx != NULL && EVP_PKEY_fromdata_init(ctx) == 1 &&
	    EVP_PKEY_fromdata(ctx, &pkey, EVP_PKEY_PUBLIC_KEY, params) == 1;
	EVP_PKEY_CTX_free(ctx);
	ERR_clear_error();
	if (!good)
		return lack_seen() ? RES_NOMEM : RES_SYNTAX;
	return pubkey_wrap(pkey, KEY_RSA, bits, out);
}

enum res
pubkey_from_ed25519(struct str raw, struct pubkey **out)
{
	if (raw.len != ED25519_LEN)
		return RES_SYNTAX;
	lack_begin();
	EVP_PKEY *pkey = EVP_PKEY_new_raw_public_key(
	    EVP_PKEY_ED25519, NULL, (const uint8_t *)raw.ptr, raw.len);
	ERR_clear_error();
	if (pkey == NULL)
		return lack_seen() ? RES_NOMEM : RES_SYNTAX;
	return pubkey_wrap(pkey, KEY_ED25519, 256, out);
}

struct pubkey *
pubkey_ref(struct pubkey *k)
{
	atomic_fetch_add_explicit(&k->refs, 1, memory_order_relaxed);
	return k;
}

void
pubkey_unref(struct pubkey **kp)
{
	struct pubkey *k = *kp;
	*kp = NULL;
	if (k == NULL ||
	    atomic_fetch_sub_explicit(&k->refs, 1, memory_order_acq_rel) != 1)
		return;
	for (size_t i = 0; i < SPARES; i++)
		EVP_PKEY_CTX_free(atomic_load(&k->spares[i]));
	EVP_PKEY_free(k->pkey);
	free(k);
}

enum key_type
pubkey_type(const struct pubkey *k)
{
	return k->type;
}

unsigned
pubkey_bits(const struct pubkey *k)
{
	return k->bits;
}

/* --- verification --- */

static EVP_PKEY_CTX *
take_spare(struct pubkey *k)
{
	EVP_PKEY_CTX *ctx = NULL;
	for (size_t i = 0; i < SPARES && ctx == NULL; i++)
		if (atomic_load(&k->spares[i]) != NULL)
			ctx = atomic_exchange(&k->spares[i], NULL);
	return ctx;
}

static void
keep_spare(struct pubkey *k, EVP_PKEY_CTX *ctx)
{
	for (size_t i = 0; i < SPARES; i++) {
		EVP_PKEY_CTX *none = NULL;
		if (atomic_compare_exchange_strong(&k->spares[i], &none, ctx))
			return;
	}
	EVP_PKEY_CTX_free(ctx);
}

static EVP_PKEY_CTX *
rsa_context(struct pubkey *k)
{
	EVP_PKEY_CTX *ctx = take_spare(k);
	if (ctx != NULL)
		return ctx;
	ctx = EVP_PKEY_CTX_new_from_pkey(NULL, k->pkey, NULL);
	if (ctx != NULL && EVP_PKEY_verify_init(ctx) == 1 &&
	    EVP_PKEY_CTX_set_rsa_padding(ctx, RSA_PKCS1_PADDING) == 1 &&
	    EVP_PKEY_CTX_set_signature_md(ctx, EVP_sha256()) == 1)
		return ctx;
	EVP_PKEY_CTX_free(ctx);
	return NULL;
}

static enum res
verify_rsa(struct pubkey *k, const uint8_t digest[32], struct str signature,
    bool *out_fits)
{
	EVP_PKEY_CTX *ctx = rsa_context(k);
	if (ctx == NULL)
		return RES_IO;
	/* 0 and negative both mean that it does not fit: a hostile modulus
	 * or a signature above it counts as an error to libcrypto. */
	*out_fits = EVP_PKEY_verify(ctx, (const uint8_t *)signature.ptr,
	    signature.len, digest, 32) == 1;
	keep_spare(k, ctx);
	return RES_OK;
}

static enum res
verify_ed25519(
    struct pubkey *k, struct str text, struct str signature, bool *out_fits)
{
	EVP_MD_CTX *ctx = EVP_MD_CTX_new();
	if (ctx == NULL)
		return RES_NOMEM;
	enum res r = RES_IO;
	if (EVP_DigestVerifyInit_ex(
		ctx, NULL, NULL, NULL, NULL, k->pkey, NULL) == 1) {
		*out_fits = EVP_DigestVerify(ctx,
		    (const uint8_t *)signature.ptr, signature.len,
		    (const uint8_t *)text.ptr, text.len) == 1;
		r = RES_OK;
	}
	EVP_MD_CTX_free(ctx);
	return r;
}

enum res
pubkey_verify(struct pubkey *k, const uint8_t digest[32], struct str signature,
    bool *out_fits)
{
	if (signature.len == 0) {
		*out_fits = false;
		return RES_OK;
	}
	lack_begin();
	enum res r = k->type == KEY_RSA ?
	    verify_rsa(k, digest, signature, out_fits) :
	    verify_ed25519(k, str_of(digest, 32), signature, out_fits);
	if (r == RES_OK && *out_fits)
		return RES_OK;
	ERR_clear_error(); /* only a failure leaves something */
	return lack_seen() ? RES_NOMEM : r;
}

enum res
pubkey_verify_text(
    struct pubkey *k, struct str text, struct str signature, bool *out_fits)
{
	if (k->type != KEY_ED25519)
		return RES_UNSUPPORTED;
	*out_fits = false;
	if (signature.len == 0)
		return RES_OK;
	lack_begin();
	enum res r = verify_ed25519(k, text, signature, out_fits);
	ERR_clear_error();
	return !*out_fits && lack_seen() ? RES_NOMEM : r;
}

enum res
pubkey_recover(struct pubkey *k, struct str signature, uint8_t out_digest[32])
{
	if (k->type != KEY_RSA)
		return RES_UNSUPPORTED;
	uint8_t bytes[PUBKEY_MAX_RSA_BITS / 8];
	size_t len = sizeof bytes;
	lack_begin();
	EVP_PKEY_CTX *ctx = EVP_PKEY_CTX_new_from_pkey(NULL, k->pkey, NULL);
	bool found = ctx != NULL && EVP_PKEY_verify_recover_init(ctx) == 1 &&
	    EVP_PKEY_CTX_set_rsa_padding(ctx, RSA_PKCS1_PADDING) == 1 &&
	    EVP_PKEY_CTX_set_signature_md(ctx, EVP_sha256()) == 1 &&
	    EVP_PKEY_verify_recover(ctx, bytes, &len,
		(const uint8_t *)signature.ptr, signature.len) == 1 &&
	    len == 32;
	EVP_PKEY_CTX_free(ctx);
	ERR_clear_error();
	if (!found)
		return lack_seen() ? RES_NOMEM : RES_NOTFOUND;
	memcpy(out_digest, bytes, 32);
	return RES_OK;
}
