/* The index of a finished shard built anew beside the present one, which
 * serves searches until the new one is complete: after an erasure, so that no
 * term of what is gone stays. The caller holds the shard's lock. */
#ifndef ARCHIVE_REBUILD_H
#define ARCHIVE_REBUILD_H

#include <stdatomic.h>
#include <stdbool.h>

#include "base/err.h"
#include "base/res.h"

/* `*stop` (may be NULL) is looked at now and then: RES_AGAIN. */
HN_CHECK enum res rebuild_index(
    const char *shard_dir, const atomic_bool *stop, struct err *err);
/* Whether the newest index covers the whole segment. */
bool rebuild_is_needed(const char *shard_dir);

#endif
