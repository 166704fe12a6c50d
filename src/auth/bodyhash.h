/* The body hashes one message needs, each distinct (canonicalization, length)
 * computed once, however many signatures share it (DKIM-V-19). Ask for them
 * at end of header, push the body once, then read. */
#ifndef AUTH_BODYHASH_H
#define AUTH_BODYHASH_H

#include <stdint.h>

#include "base/arena.h"
#include "base/sink.h"
#include "mail/canon.h"

#define BODYHASH_WHOLE UINT64_MAX
#define BODYHASH_MAX   32 /* distinct hashes a message */

struct bodyhash_set;

struct bodyhash_set *bodyhash_new(struct arena *a);

/* Want the SHA-256 of the first `length` canonical octets (l=), or of all
 * (BODYHASH_WHOLE). *out_index names it afterwards. RES_LIMIT past
 * BODYHASH_MAX; RES_INVALID once the sink was made. */
HN_CHECK enum res bodyhash_want(struct bodyhash_set *s, enum canon c,
    uint64_t length, size_t *out_index);

/* Where the body goes, CRLF form. Made once, after all wants. NULL without
 * memory. With nothing wanted it is a null sink. */
struct sink *bodyhash_sink(struct bodyhash_set *s);

/* After finish: the digest (32 bytes), and how many canonical octets the
 * body had altogether. */
const uint8_t *bodyhash_digest(const struct bodyhash_set *s, size_t index);
uint64_t bodyhash_canonical_length(const struct bodyhash_set *s, size_t index);

#endif
