/* The MIME structure of a message pushed in chunks: each part's header
 * fields, what it is, its decoded bytes. No tree is built; memory is constant
 * and time linear whatever comes: 100,000 parts, depth 20,000, 200,000
 * fields. Any split of the input gives the same calls but for the chunking of
 * data.
 *
 *   part_begin ─ field* ─ header_end ─ data* ─ (nested parts) ─ part_end
 *
 * Multiparts and message/rfc822 are parts themselves, their content comes as
 * nested parts. At a limit the walk goes on where it can (a multipart too
 * deep is one opaque part) or stops (too many parts, too many header bytes),
 * and mime_partial() tells. CRLF and bare LF both end lines. Lenient: a
 * missing closing boundary, a header cut off by a boundary and missing
 * headers are read as what they look like. RFC 2045, 2046, 5322. */
#ifndef MAIL_MIME_H
#define MAIL_MIME_H

#include <stdbool.h>
#include <stddef.h>

#include "base/res.h"
#include "base/sink.h"
#include "base/str.h"

#define MIME_MAX_DEPTH        32
#define MIME_MAX_PARTS        1000
#define MIME_MAX_HEADER_BYTES ((size_t)1 << 20) /* of all parts together */
#define MIME_MAX_BOUNDARY     250 /* RFC 2046 allows 70 */

enum mime_kind {
	MIME_TEXT,      /* text, but not html; also no Content-Type at all */
	MIME_HTML,
	MIME_MULTIPART,
	MIME_MESSAGE,   /* message/rfc822: its content is one nested part */
	MIME_BINARY,
};

/* Valid during the calls about this part. Texts are UTF-8, cut at 4,096. */
struct mime_part {
	unsigned number;     /* 0 = the message, in order of appearance */
	int parent;          /* number of the part around it, -1 = none */
	unsigned depth;
	bool is_message;     /* its fields are those of a message */
	enum mime_kind kind;
	struct str type;     /* "text/plain", lower case; empty: not given */
	struct str charset, encoding, disposition; /* as declared */
	struct str name, filename, content_id, format;
};

struct mime_ops {
	/* A field, folds kept, without the final line end. `part` is not yet
	 * known but for number, parent, depth, is_message. */
	void (*field)(void *context, const struct mime_part *part,
	    struct str name, struct str value);
	/* The header is complete; all of `part` is known. */
	void (*begin)(void *context, const struct mime_part *part);
	/* Decoded bytes of a leaf part. */
	void (*data)(void *context, const struct mime_part *part,
	    const char *bytes, size_t len);
	/* The part is over. For parts with nested ones only number, parent,
	 * depth and kind are still known. */
	void (*end)(void *context, const struct mime_part *part);
}; /* each may be NULL */

struct mime;

/* NULL without memory. `ops` is kept, not copied. */
struct mime *mime_new(const struct mime_ops *ops, void *context);
void mime_free(struct mime **m);
/* Ready for another message; keeps memory. */
void mime_reset(struct mime *m);

void mime_push(struct mime *m, const char *bytes, size_t len);
/* Ends what is open. RES_NOMEM when memory ran out on the way. */
HN_CHECK enum res mime_finish(struct mime *m);
/* The same two as a sink, living in `m`. */
struct sink *mime_sink(struct mime *m);

/* A limit was reached: something was not looked into. */
bool mime_partial(const struct mime *m);

#endif
