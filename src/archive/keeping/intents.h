/* Was this frame meant to be erased? Looks into the intents of the audit
 * family (erase.h), one at a time. */
#ifndef ARCHIVE_INTENTS_H
#define ARCHIVE_INTENTS_H

#include "archive/store/segment_reader.h"
#include "archive/store/store_dir.h"

struct intents {
	const struct shard_entry *entries; /* of the store; the caller's */
	size_t count;
	/* the one looked at last */
	uint64_t id;
	struct arena *arena;
	struct str meta;
};

void intents_init(
    struct intents *i, const struct shard_entry *entries, size_t count);
void intents_done(struct intents *i);
/* RES_OK: the intent with this id names frame and leaf; RES_NOTFOUND: there is
 * no such intent, or it names other frames; RES_CORRUPT and the like: it
 * cannot be read. */
HN_CHECK enum res intents_find(struct intents *i, uint64_t id,
    const struct frame_header *frame);

#endif
