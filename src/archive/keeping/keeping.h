/* What erase, expire and the changes of holds share: one of them at a time in
 * a store, whoever does it, and shards taken out of their writer's hands. */
#ifndef ARCHIVE_KEEPING_H
#define ARCHIVE_KEEPING_H

#include "archive/store/store.h"
#include "archive/store/store_dir.h"

#define KEEPING_FILE "KEEPING" /* in the store; locked meanwhile */
/* For the index of a shard that its writer has just left; a store that is
 * opened on demand has no such writer. */
#define KEEPING_WAIT_US       ((int64_t)600 * 1000000)
#define KEEPING_WAIT_SHORT_US ((int64_t)5 * 1000000)

/* RES_AGAIN with a line: somebody else is at it. Closing `*out` ends it. */
HN_CHECK enum res keeping_begin(struct store *s, struct err *err, int *out);

/* The shard's lock, after its writer has left it. RES_AGAIN with a line:
 * another process has it, or its index takes too long. */
HN_CHECK enum res keeping_take(struct store *s, const struct shard_entry *e,
    struct err *err, int *out_lock);

/* Entry of a shard by its number, in `a`. */
HN_CHECK enum res keeping_find(struct store *s, uint32_t number,
    struct arena *a, struct err *err, struct shard_entry *out);

#endif
