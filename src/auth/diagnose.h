/* Why a signature broke: tries what commonly happens to mail under way and
 * names what fits, within bounds. The outcome is text for people, never a
 * reason to accept anything.
 *
 * Both halves can be told apart: a signature covers the header and the body
 * *hash*, so with an RSA key the header digest that was signed can be read
 * back from the signature, and bh= is right when that digest fits. What fits
 * a SHA-256 is what happened; where nothing fits, only that is said. */
#ifndef AUTH_DIAGNOSE_H
#define AUTH_DIAGNOSE_H

#include "auth/sigcore.h"

/* A header variant costs a hash over the signed fields (SIG_MAX_TRIES of them
 * in a message); an Ed25519 key needs a verification for each and gets fewer. */
#define DIAGNOSE_MAX_TRIES_ED25519 24    /* per signature */
#define DIAGNOSE_MAX_HEADER        65536 /* octets of signed fields */

/* `s` was decided as AUTH_FAIL with the header digest `digest`. One line of
 * printable ASCII, in the core's arena. RES_NOMEM only. */
HN_CHECK enum res diagnose_signature(struct sigcore *c, const struct sig *s,
    const uint8_t digest[DIGEST_LEN], struct str *out);

/* The halves (diagnose_body.c, diagnose_header.c): append a cause to `out`,
 * or nothing when none fits. */
HN_CHECK enum res diagnose_body(
    struct sigcore *c, const struct sig *s, struct buf *out);
HN_CHECK enum res diagnose_header(
    struct sigcore *c, const struct sig *s, struct buf *out);

#endif
