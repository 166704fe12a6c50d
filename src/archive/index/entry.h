/* What of a frame goes into the index: a catalogue row, the texts of the
 * FTS5 columns and the facts. Made from META and the message's text. */
#ifndef ARCHIVE_ENTRY_H
#define ARCHIVE_ENTRY_H

#include <stdbool.h>
#include <stdint.h>

#include "archive/store/segment_reader.h"
#include "base/ip.h"
#include "mail/text.h"

#define ENTRY_MAX_FACTS ((size_t)64 << 10)
#define ENTRY_MAX_RCPTS ((size_t)256 << 10)

struct entry {
	uint64_t number, offset, bytes;
	uint64_t content;    /* number of the frame that holds the bytes */
	int64_t time_us;
	struct ip ip;
	/* views into META or the extractor, until the next entry */
	struct str direction, queue_id, sender;
	size_t rcpt_count;
	struct str rcpts;    /* one a line */
	struct str facts;    /* marked words (archive/tokenizer.h) */
	const struct text_doc *doc;
	bool damaged;        /* the body is: what is left of it is indexed */
};

struct entry_builder;
/* NULL without memory. */
struct entry_builder *entry_builder_new(void);
void entry_builder_free(struct entry_builder **b);

/* RES_NOTFOUND: nothing to index (no message, or erased). RES_CORRUPT: META
 * is damaged. A damaged body is no error: what is left is indexed, with the
 * fact index=damaged. `a` holds META while the entry is used. */
HN_CHECK enum res entry_build(struct entry_builder *b, struct arena *a,
    struct segment_reader *r, const struct segment_frame *f, struct err *err,
    struct entry *out);
/* Memory that its texts take. */
size_t entry_bytes(const struct entry *e);

#endif
