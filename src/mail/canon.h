/* DKIM's canonicalizations (RFC 6376 §3.4). Only CRLF ends a line, only SP
 * and HTAB are blank; all other bytes are data. */
#ifndef MAIL_CANON_H
#define MAIL_CANON_H

#include "base/arena.h"
#include "base/sink.h"
#include "mail/header.h"

enum canon {
	CANON_SIMPLE,
	CANON_RELAXED
};

/* A sink that canonicalizes the body into `next`. Clean stretches are handed
 * on as they are, not copied. Trailing empty lines are only counted. An empty
 * body is CRLF for simple, nothing for relaxed. */
struct sink *canon_body(struct arena *a, enum canon c, struct sink *next);

/* The same byte by byte: the reference that tests compare with. */
struct sink *canon_body_reference(
    struct arena *a, enum canon c, struct sink *next);

/* One field with its final CRLF into `out`. */
void canon_field(enum canon c, const struct field *f, struct sink *out);

/* A signature field with the value of its b= tag removed, without the final
 * CRLF (RFC 6376 §3.7). `b_from`, `b_to`: the bounds of that value inside
 * f->value, as taglist gives them. */
void canon_signature_field(enum canon c, const struct field *f, size_t b_from,
    size_t b_to, struct sink *out);

#endif
