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

/* --- for a diagnosis only --------------------------------------------------
 * The last canonical octets are kept until the end: BODYHASH_TAIL_MIN at
 * least, BODYHASH_TAIL_MAX at most, all of a shorter body. */
#define BODYHASH_TAIL_MIN 8192
#define BODYHASH_TAIL_MAX 16384
#define BODYHASH_MAX_CUTS 256 /* line ends tried */

/* After finish: would the body have the digest `want` if it ended behind one
 * of its last lines? The length of that shorter canonical body, the longest
 * one that fits. RES_NOTFOUND when none does. Only for BODYHASH_WHOLE. */
HN_CHECK enum res bodyhash_find_cut(struct bodyhash_set *s, size_t index,
    const uint8_t want[32], uint64_t *out_length);

/* After finish: the whole canonical body when it is short enough to have been
 * kept. RES_NOTFOUND when it is not. */
HN_CHECK enum res bodyhash_text(
    const struct bodyhash_set *s, size_t index, struct str *out);

#endif
