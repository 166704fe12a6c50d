/* A new generation of a finished shard's index that lacks some messages, made
 * of the present one in the time it takes to copy that: after an erasure.
 *
 * FTS5 takes a message out of a contentless table when it is told the text
 * that was put in. That is read from the segment once more, so this comes
 * before the blocks are zeroed:
 *
 *   forget_prepare   index.work.db is a copy of the newest generation; the
 *                    messages are taken out of it, all postings merged into
 *                    one b-tree, which drops what was deleted, and what is
 *                    then live is written to index.new.db. index.work.db goes.
 *   (the blocks are zeroed)
 *   forget_publish   index.new.db is the newest generation
 *
 * An extractor or tokenizer other than the one that made the index may give
 * other words, and FTS5 does not notice when postings stay behind. So all of
 * the new file's postings are read, and one of a message that should be gone
 * is RES_UNSUPPORTED: rebuild.h then has to do it. What a crash leaves is
 * removed by the rebuilding that it makes necessary.
 *
 * The caller holds the shard's lock. */
#ifndef ARCHIVE_FORGET_H
#define ARCHIVE_FORGET_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/res.h"

/* `numbers` are frames of messages, still whole. RES_UNSUPPORTED: the index
 * does not cover the segment, is of another version or was made of other
 * texts, a frame is damaged, or `reindex` was interrupted here. `*stop` (may
 * be NULL) is looked at now and then: RES_AGAIN. On errors nothing is left. */
HN_CHECK enum res forget_prepare(const char *shard_dir,
    const uint64_t *numbers, size_t count, const atomic_bool *stop,
    struct err *err);
/* Durable when this returns. */
HN_CHECK enum res forget_publish(const char *shard_dir, struct err *err);
/* Removes what forget_prepare made or a crash left. */
void forget_drop(const char *shard_dir);

#endif
