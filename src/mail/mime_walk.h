/* The inside of the MIME walk: its state, and what mime.c (parts, levels,
 * boundaries), mime_header.c (a part's header) and mime_lines.c (bytes to
 * lines) ask of each other. How input is read:
 *
 *   HEADER ──empty line──▶ BODY (leaf) | SKIP (preamble) | HEADER (message)
 *   BODY, SKIP ──boundary of a level──▶ HEADER of its next part
 *              ──closing boundary─────▶ SKIP (epilogue)
 *   any ──limit──▶ STOP
 *
 * Invariants: (1) levels[0..depth) are the open multiparts and messages; the
 * part being read, if any, is inside the innermost. (2) In BODY with a
 * boundary open, a line end is held back until the next line is seen not to
 * be a boundary: it belongs to the boundary (RFC 2046 §5.1.1). (3) `line` is
 * filled with header lines and, in bodies, with lines beginning with "-". (4)
 * `tail` is what the innermost closing boundary may be, behind text in its
 * line: if the input ends with it, it closes (programs forget the line end). */
#ifndef MAIL_MIME_WALK_H
#define MAIL_MIME_WALK_H

#include "base/buf.h"
#include "mail/mime.h"
#include "mail/mime_facts.h"
#include "mail/transfer.h"

/* "--", a boundary, "--", CRLF. */
#define MIME_MAX_TAIL (MIME_MAX_BOUNDARY + 6)

enum mime_mode { MODE_HEADER, MODE_BODY, MODE_SKIP, MODE_STOP };

struct mime_level {
	unsigned number;
	int parent;
	enum mime_kind kind;
	bool digest;         /* parts are messages (RFC 2046 §5.1.5) */
	size_t boundary_len; /* 0 for a message */
	char boundary[MIME_MAX_BOUNDARY];
};

struct mime {
	struct sink sink;
	const struct mime_ops *ops;
	void *context;
	enum mime_mode mode;
	bool partial;
	enum res error;
	unsigned parts;
	size_t header_bytes;

	unsigned depth, boundaries; /* boundaries: levels that have one */
	struct mime_level levels[MIME_MAX_DEPTH];

	/* A message inside an encoding (RFC 2046 §5.2.1 forbids it, programs
	 * send it) is walked by a walker of its own, which counts on from us. */
	struct mime *inner;
	int base_parent;
	unsigned base_depth;

	bool open;       /* `part` has begun and not ended */
	struct mime_part part;
	struct mime_facts facts;
	struct transfer transfer;

	struct buf field, line;
	bool line_start, first_line, any_line, held_cr;
	unsigned held_eol; /* 0, 1 (LF), 2 (CRLF) */
	size_t tail_len;
	char tail[MIME_MAX_TAIL];
};

/* --- mime.c --- */

/* Bytes of the part that is read, in this encoding. */
void mime_begin_content(struct mime *m, enum transfer_kind encoding);
void mime_content(struct mime *m, const char *bytes, size_t len);
void mime_begin_part(struct mime *m, bool is_message);
/* The part that is read is a container: its parts come now. */
void mime_push_level(struct mime *m, bool digest);
/* The innermost level whose boundary `line` begins with, or -1. */
int mime_find_boundary(const struct mime *m, struct str line, bool *out_closing);
/* In m->line is a line of a body that began with "-", without its end of
 * `eol` bytes. */
void mime_body_line(struct mime *m, unsigned eol);
void mime_keep_error(struct mime *m, const struct buf *b);

/* --- mime_header.c --- */

/* In m->line is a line of a header, without its end of `eol` bytes. */
void mime_header_line(struct mime *m, unsigned eol);
/* What was collected of a field is all of it. */
void mime_end_field(struct mime *m);
/* The header is over: the part begins. */
void mime_end_header(struct mime *m);
/* A limit is reached. */
void mime_stop(struct mime *m);

/* --- mime_lines.c --- */

/* The bytes, which begin in a line or with one that is no boundary, are content
 * but for an end of theirs that may be such a tail; false when there is none,
 * and then nothing was done. */
bool mime_hold_tail(struct mime *m, const char *bytes, size_t len);
/* The end of input: the level of which it is the closing boundary, behind text.
 * -1 when it is none; what was held back as one became content. */
int mime_end_tail(struct mime *m);

/* The line end held back was none of a boundary's. */
void mime_flush_eol(struct mime *m);

#endif
