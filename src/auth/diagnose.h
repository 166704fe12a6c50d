/* Why a signature broke: tries what commonly happens to mail under way and
 * names what fits, within bounds. The outcome is text for people, never a
 * reason to accept anything. */
#ifndef AUTH_DIAGNOSE_H
#define AUTH_DIAGNOSE_H

#include "auth/sigcore.h"

/* `s` was decided as AUTH_FAIL with the header digest `digest`. One line of
 * printable ASCII, in the core's arena; at least says whether header or body
 * changed. RES_NOMEM only. */
HN_CHECK enum res diagnose_signature(struct sigcore *c, const struct sig *s,
    const uint8_t digest[DIGEST_LEN], struct str *out);

#endif
