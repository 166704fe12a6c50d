/* What of a message goes into the search index, extracted while it is pushed:
 * decoded header fields, the text of all text and HTML parts, the names of
 * attachments. UTF-8; bounded: beyond TEXT_MAX_BODY bytes of text the rest is
 * left out and `partial` is set, as at the limits of the MIME walk.
 *
 * U+E000 and U+E001 never appear in what comes out: the index marks words of
 * its own with them. */
#ifndef MAIL_TEXT_H
#define MAIL_TEXT_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/res.h"
#include "base/sink.h"

#define TEXT_MAX_BODY  ((size_t)1 << 20)
#define TEXT_MAX_FIELD ((size_t)64 << 10) /* of each other text */

struct text_doc {
	struct buf subject, from, to, cc;
	struct buf other;    /* Reply-To, Sender, List-Id, Resent-… */
	struct buf body;     /* also fields of nested messages */
	struct buf filename; /* one a line */
	struct buf message_id;
	unsigned attachments;
	bool partial;        /* something was left out */
	bool encrypted, is_signed; /* OpenPGP, S/MIME: not DKIM */
	bool list;           /* List-Id or List-Post */
};

struct text_extract;

/* NULL without memory. One message after the other: reset between them. */
struct text_extract *text_extract_new(void);
void text_extract_free(struct text_extract **x);
void text_extract_reset(struct text_extract *x);

/* Push the message, finish; then read text_extract_doc. RES_NOMEM. */
struct sink *text_extract_sink(struct text_extract *x);
const struct text_doc *text_extract_doc(const struct text_extract *x);

#endif
