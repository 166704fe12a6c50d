/* The directory of a store:
 *
 *   store                        identity (text): uuid, epoch, next shard
 *   LOCK                         held while a shard number is taken
 *   tmp/                         spools and bodies under way
 *   families/FAMILY/PERIOD.N/    a shard (see shard.h)
 *       segment  LOCK  checkpoints  bodies/  lost/  index.gN.db
 *
 * Nothing here touches frames. */
#ifndef ARCHIVE_STORE_DIR_H
#define ARCHIVE_STORE_DIR_H

#include <stdbool.h>
#include <stdint.h>

#include "archive/format/segment.h"
#include "archive/store/io.h"
#include "base/arena.h"
#include "base/err.h"

#define STORE_MAX_FAMILIES 64
#define STORE_MAX_SHARDS   100000

struct store_identity {
	uint8_t uuid[16];
	uint32_t epoch;
	uint32_t next_shard;
};

/* RES_NOTFOUND: no store; RES_CORRUPT: an identity that cannot be read. */
HN_CHECK enum res store_dir_identity(
    const char *path, struct err *err, struct store_identity *out);
/* The text of the file, `path` for messages. RES_CORRUPT with a line. */
HN_CHECK enum res store_identity_parse(struct str text, const char *path,
    struct err *err, struct store_identity *out);
/* Make what is missing; a new store gets a random uuid. */
HN_CHECK enum res store_dir_create(const struct archive_io *io,
    const char *path, struct err *err, struct store_identity *out);
/* Write it, durably: only for a store that nobody uses yet. */
HN_CHECK enum res store_dir_put_identity(const struct archive_io *io,
    const char *path, const struct store_identity *id);
/* Take the next shard number, durably, so that it is never given twice. */
HN_CHECK enum res store_dir_take_number(const struct archive_io *io,
    const char *path, struct err *err, struct store_identity *out);

/* End the epoch `from`, durably: the history that was signed in it is not
 * the store's any more (a restored backup, a tree that has changed), and
 * signing on would sign two of them. Nothing to do when it has ended. New
 * shards are begun in the next epoch; those of former ones get no mail. */
HN_CHECK enum res store_dir_new_epoch(const struct archive_io *io,
    const char *path, uint32_t from, struct err *err);

/* A shard directory with a segment in it. */
struct shard_entry {
	const char *dir;
	const char *family;
	const char *period;
	unsigned ordinal;         /* N of PERIOD.N */
	enum res status;          /* not RES_OK: its header cannot be read */
	struct shard_header header;
};
/* All shards (of `family`, NULL: of every family), in `a`, sorted by period,
 * then number: oldest first. Directories without a segment are left out. */
HN_CHECK enum res store_dir_shards(const char *path, const char *family,
    struct arena *a, struct err *err, struct shard_entry **out,
    size_t *out_count);

/* 1–31 bytes of a-z, 0-9, '-', not beginning with '-'. */
bool store_family_valid(const char *family);

#endif
