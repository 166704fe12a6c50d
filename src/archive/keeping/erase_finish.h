/* The steps of an erasure (erase.h) behind the intent, in a shard whose lock
 * the caller has; also after a crash. */
#ifndef ARCHIVE_ERASE_FINISH_H
#define ARCHIVE_ERASE_FINISH_H

#include <stdatomic.h>

#include "archive/keeping/audit.h"
#include "archive/keeping/erasures.h"
#include "archive/store/store.h"

/* Frames that nobody has begun with, so that their texts can still be read, by
 * which the index gives up the terms. */
struct erase_first {
	const uint64_t *numbers;
	size_t count;
};

/* Steps 3 to 6. `first` NULL: after a crash. */
HN_CHECK enum res erase_finish(struct store *s, const char *dir,
    struct erasures *e, const struct erase_first *first, uint64_t intent,
    struct audit_who who, const atomic_bool *stop, struct err *err);
/* The erasure never began. */
HN_CHECK enum res erase_take_back(
    struct store *s, const char *dir, struct erasures *e);
/* What a crash left under way, one or the other. */
HN_CHECK enum res erase_settle(struct store *s, const char *dir,
    struct erasures *e, const atomic_bool *stop, struct err *err);

/* Shards with an erasure that a crash left under way: recovery takes their
 * frames as they are. */
size_t erase_pending(struct store *s);
/* Bring these to their end, or take them back; what goes wrong is told to the
 * store's alarm and tried again at the next start. */
void erase_finish_pending(struct store *s, const atomic_bool *stop);

#endif
