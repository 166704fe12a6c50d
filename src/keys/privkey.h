/* Private keys: PEM in, signatures out. Held by the signer process and by
 * `hanaper sign|key`, by nobody else. Memory is wiped when freed. Immutable;
 * may be shared by threads. */
#ifndef KEYS_PRIVKEY_H
#define KEYS_PRIVKEY_H

#include "base/buf.h"
#include "base/err.h"
#include "base/res.h"
#include "keys/pubkey.h"

#define PRIVKEY_MAX_FILE ((size_t)64 << 10)
#define PRIVKEY_MIN_RSA_BITS 1024

struct privkey;

/* PKCS#8 or traditional PEM, unencrypted. RES_UNSUPPORTED: neither RSA nor
 * Ed25519; RES_LIMIT: RSA under 1024 or over 8192 bits. `label` names the
 * file in the error. */
HN_CHECK enum res privkey_from_pem(struct str pem, const char *label,
    struct err *err, struct privkey **out);
HN_CHECK enum res privkey_generate(
    enum key_type type, unsigned bits, struct err *err, struct privkey **out);
HN_CHECK enum res privkey_to_pem(const struct privkey *k, struct buf *out);
void privkey_free(struct privkey **k);

enum key_type privkey_type(const struct privkey *k);
unsigned privkey_bits(const struct privkey *k);

/* What goes into p=: SubjectPublicKeyInfo DER for RSA, raw 32 bytes for
 * Ed25519. */
HN_CHECK enum res privkey_public(const struct privkey *k, struct buf *out);

/* Sign the SHA-256 digest as pubkey_verify checks it; appended to `out`. */
HN_CHECK enum res privkey_sign(
    const struct privkey *k, const uint8_t digest[32], struct buf *out);

/* Ed25519 over the text itself (RFC 8032). RES_UNSUPPORTED: an RSA key. */
HN_CHECK enum res privkey_sign_text(
    const struct privkey *k, struct str text, struct buf *out);

#endif
