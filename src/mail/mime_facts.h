/* What the header fields of a MIME part say it is: type, encoding, names. The
 * first field of each name counts. Memory is kept from part to part. */
#ifndef MAIL_MIME_FACTS_H
#define MAIL_MIME_FACTS_H

#include "base/buf.h"
#include "mail/mime.h"

enum mime_fact_field {
	FACT_TYPE, FACT_ENCODING, FACT_DISPOSITION, FACT_ID, FACT_FIELDS,
};
enum mime_fact_text {
	TEXT_TYPE, TEXT_CHARSET, TEXT_ENCODING, TEXT_DISPOSITION, TEXT_NAME,
	TEXT_FILENAME, TEXT_CONTENT_ID, TEXT_FORMAT, TEXT_BOUNDARY, FACT_TEXTS,
};
#define MIME_FACTS_MAX_FIELD ((size_t)16384) /* what is behind is not read */

struct mime_facts {
	struct buf field[FACT_FIELDS]; /* values, raw */
	struct buf text[FACT_TEXTS];   /* what comes of them */
};

void mime_facts_init(struct mime_facts *f);
void mime_facts_done(struct mime_facts *f);
/* A new part begins. */
void mime_facts_reset(struct mime_facts *f);
/* A field of its header; those that say nothing are passed over. */
void mime_facts_field(struct mime_facts *f, struct str name, struct str value);
/* The header is over: set `kind` and the texts, which live in `f` until the
 * next reset. `digest`: without a type it is a message (RFC 2046 §5.1.5).
 * RES_NOMEM. */
HN_CHECK enum res mime_facts_tell(
    struct mime_facts *f, bool digest, struct mime_part *out);
/* Of a multipart, after mime_facts_tell. */
struct str mime_facts_boundary(const struct mime_facts *f);

#endif
