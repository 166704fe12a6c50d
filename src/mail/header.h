/* The header of one message: raw bytes exact, order kept, duplicates kept.
 * Filled once (top to bottom), then read only; lives in the message's arena.
 *
 * A field's value is what stands behind the colon, byte for byte: the leading
 * space as received, folds as CRLF + WSP, without the final CRLF. Lookups by
 * name are ASCII case-insensitive and cost no walk over the whole header. */
#ifndef MAIL_HEADER_H
#define MAIL_HEADER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/res.h"
#include "base/str.h"

struct field {
	struct str name;     /* as received, without blanks before the colon */
	struct str value;    /* see above */
	struct str raw_name; /* with blanks before the colon, as received */
	size_t index;        /* 0 = topmost field of the message */
	size_t occurrence; /* 1 = topmost of this name: what chgheader wants */
};

struct header;

#define HEADER_DEFAULT_MAX_BYTES ((size_t)1 << 20)
#define HEADER_MAX_FIELDS        200000

/* max_bytes bounds names + values + 4 a field; 0 = the default. */
struct header *header_new(struct arena *a, size_t max_bytes);

/* Append a field below those present. Bare LF in `value` becomes CRLF where
 * WSP follows (the milter's folds); other bytes are kept. Copies both.
 * RES_LIMIT past a maximum: the header stays usable, but is not the
 * message's any more (see header_overflowed). */
HN_CHECK enum res header_add(
    struct header *h, struct str name, struct str value);
/* The same for a value that is in CRLF form already: a bare LF is data. */
HN_CHECK enum res header_add_exact(
    struct header *h, struct str name, struct str value);
bool header_overflowed(const struct header *h);

size_t header_count(const struct header *h);
size_t header_bytes(const struct header *h);
/* How many more bytes (as counted for max_bytes) fit. */
size_t header_room(const struct header *h);
const struct field *header_at(const struct header *h, size_t index);

/* The topmost field of this name, or NULL. */
const struct field *header_find(const struct header *h, struct str name);
/* The next one of the same name below / above `f`, or NULL. */
const struct field *header_next_same(
    const struct header *h, const struct field *f);
const struct field *header_prev_same(
    const struct header *h, const struct field *f);
/* The bottommost field of this name, or NULL. */
const struct field *header_find_last(const struct header *h, struct str name);
size_t header_count_name(const struct header *h, struct str name);

/* A value without folds and outer blanks, for reading: CRLF before WSP is
 * removed (RFC 5322 §2.2.3). In arena `a`. */
struct str header_unfold(struct arena *a, struct str value);

/* Bottom-up selection for one signature: each call takes the next unused
 * instance of `name` upward (RFC 6376 §5.4.2). */
struct header_pick;
struct header_pick *header_pick_new(struct arena *a, const struct header *h);
/* RES_NOTFOUND when all instances are taken or there is none. */
HN_CHECK enum res header_pick_take(
    struct header_pick *p, struct str name, const struct field **out_field);

/* A field name by RFC 5322 §2.2: 1*(33..126 but ':'). */
bool header_name_valid(struct str name);

#endif
