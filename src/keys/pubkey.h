/* Public keys as DKIM publishes them, parsed by our own bounded DER walk
 * (libcrypto's generic decoder is ten times slower than the verification).
 * Immutable, reference-counted, shared by threads. */
#ifndef KEYS_PUBKEY_H
#define KEYS_PUBKEY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/res.h"
#include "base/str.h"

enum key_type { KEY_RSA, KEY_ED25519 };

#define PUBKEY_MAX_RSA_BITS 8192
#define PUBKEY_MAX_EXPONENT_BITS 64

struct pubkey;

/* SubjectPublicKeyInfo or bare RSAPublicKey (KEY-04). RES_SYNTAX: not that;
 * RES_LIMIT: bits or exponent over the maximum; RES_INVALID: even or < 3
 * exponent; RES_NOMEM. Smaller keys are accepted here: the caller judges bits. */
HN_CHECK enum res pubkey_from_rsa(struct str der, struct pubkey **out);
/* The raw 32 bytes (RFC 8463 §4.2); RES_SYNTAX otherwise, or
 * RES_NOMEM. */
HN_CHECK enum res pubkey_from_ed25519(struct str raw, struct pubkey **out);

struct pubkey *pubkey_ref(struct pubkey *k);
void pubkey_unref(struct pubkey **k);

enum key_type pubkey_type(const struct pubkey *k);
unsigned pubkey_bits(const struct pubkey *k);

/* Does `signature` fit the SHA-256 digest: RSASSA-PKCS1-v1_5, or Ed25519 over
 * the 32 bytes (ALG-01). *out_fits only on RES_OK; RES_IO: libcrypto
 * failed; RES_NOMEM: not known. */
HN_CHECK enum res pubkey_verify(struct pubkey *k, const uint8_t digest[32],
    struct str signature, bool *out_fits);

/* Ed25519 over the text itself (RFC 8032). RES_UNSUPPORTED: an RSA key. */
HN_CHECK enum res pubkey_verify_text(
    struct pubkey *k, struct str text, struct str signature, bool *out_fits);

/* The SHA-256 digest that this RSA key signed: a signature that some other
 * key made, or that was damaged, has none. For a diagnosis, never for a
 * verdict. RES_NOTFOUND: none; RES_UNSUPPORTED: not RSA. */
HN_CHECK enum res pubkey_recover(
    struct pubkey *k, struct str signature, uint8_t out_digest[32]);

#endif
