/* SHA-256 by OpenSSL, without what EVP needs to begin (digest.c). */
#ifndef KEYS_DIGEST_H
#define KEYS_DIGEST_H

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/res.h"
#include "base/sink.h"

#define DIGEST_LEN 32

/* A sink that hashes what is pushed and puts the digest into out[32] at
 * finish. RES_IO from finish when libcrypto fails. NULL without memory. */
struct sink *digest_sink(struct arena *a, uint8_t out[DIGEST_LEN]);

/* The digest of what was pushed so far, into out[32]; the sink goes on. RES_IO
 * when libcrypto fails, RES_INVALID after finish. */
HN_CHECK enum res digest_peek(struct sink *s, uint8_t out[DIGEST_LEN]);

/* A second digest sink in the state of `s`, to go its own way: to be pushed
 * into and peeked at; its finish only ends it. NULL without memory. */
struct sink *digest_fork(struct arena *a, const struct sink *s);

/* In one go. RES_IO when libcrypto fails (the output is then zeroed). */
HN_CHECK enum res digest_sha256(
    const void *bytes, size_t len, uint8_t out[DIGEST_LEN]);

/* Several pieces, hashed as if joined. */
HN_CHECK enum res digest_sha256_parts(
    const struct str *parts, size_t count, uint8_t out[DIGEST_LEN]);

/* HMAC-SHA-256 (RFC 2104). */
HN_CHECK enum res digest_hmac(struct str key, struct str text,
    uint8_t out[DIGEST_LEN]);

/* Equal, in time that does not depend on where they differ. */
bool digest_equal(const void *a, const void *b, size_t len);

/* Cryptographically random bytes. */
HN_CHECK enum res digest_random(void *out, size_t len);

#endif
