/* The token of `reinjection = token` (design §5): the first pass through
 * hanaperd adds a private field, content filters and list managers on this
 * host hand the message back with it, the second pass takes it away again and
 * does not judge once more.
 *
 *	X-Hanaper-Token: 1 DECISION-ID SECONDS HMAC
 *
 * The HMAC-SHA-256 (base64) is over the text before it. It is honoured only
 * from a trusted client and for TOKEN_MAX_AGE_S, so that a recipient who sees
 * one gains nothing. */
#ifndef FLOW_TOKEN_H
#define FLOW_TOKEN_H

#include <stdint.h>

#include "base/arena.h"
#include "base/res.h"
#include "base/str.h"

#define TOKEN_FIELD      "X-Hanaper-Token"
#define TOKEN_SECRET_LEN 32
#define TOKEN_MAX_AGE_S  ((int64_t)5 * 24 * 3600)

/* The secret of this host, kept in dir/token.key, made when it is not there.
 * RES_IO with errno. */
HN_CHECK enum res token_secret(
    const char *dir, uint8_t out[TOKEN_SECRET_LEN]);

/* A field value with its leading space; ptr NULL without memory. */
struct str token_make(struct arena *a, const uint8_t secret[TOKEN_SECRET_LEN],
    struct str id, int64_t now_s);

/* The decision id inside a genuine, fresh value; RES_DENIED otherwise. */
HN_CHECK enum res token_check(struct arena *a,
    const uint8_t secret[TOKEN_SECRET_LEN], struct str value, int64_t now_s,
    struct str *out_id);

#endif
