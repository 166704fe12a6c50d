/* The files of a shard's index. `index.g<N>.db` is generation N, and the
 * newest counts; beside it there may stand one that is not complete yet, under
 * a name of its own:
 *
 *   building.db    by `reindex`, which goes on with it after a stop
 *   index.new.db   after an erasure; what a crash leaves is of no use
 *   index.work.db  the copy that index.new.db is made from; the same
 *
 * Whoever writes any of them holds the shard's LOCK. */
#ifndef ARCHIVE_GENERATIONS_H
#define ARCHIVE_GENERATIONS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/res.h"

#define GENERATION_BUILDING "building.db"
#define GENERATION_NEW      "index.new.db"
#define GENERATION_WORK     "index.work.db"

/* Number and path of the newest generation; RES_NOTFOUND, and number 0. */
HN_CHECK enum res index_newest(
    const char *shard_dir, char out_path[], size_t max, unsigned *out_number);
/* Number and path of the one behind it; RES_LIMIT: there are too many. */
HN_CHECK enum res generation_next(
    const char *shard_dir, char out_path[], size_t max, unsigned *out_number);
/* The file and what SQLite keeps beside it. Silent when there is none. */
void generation_remove(const char *path);
/* The same for one of the names above. */
void generation_drop(const char *shard_dir, const char *name);
bool generation_exists(const char *shard_dir, const char *name);
/* Every generation before this one, also what a crash left of one, and all
 * that is not complete: they may hold what is not to be found any more.
 * Readers keep what they have open. */
void generation_remove_others(const char *shard_dir, unsigned number);
/* `name`, which is complete and closed, becomes the newest generation,
 * durably, and the only one. */
HN_CHECK enum res generation_install(
    const char *shard_dir, const char *name, struct err *err);

#endif
