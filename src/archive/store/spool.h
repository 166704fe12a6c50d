/* The presented bytes of one message between the first chunk and the writer.
 * Up to SPOOL_MAX_MEMORY stay in memory, the rest goes to an unlinked file in
 * the store's tmp/. The hash is taken on the way. See store.h for the public
 * part (spool_new, spool_sink). */
#ifndef ARCHIVE_SPOOL_H
#define ARCHIVE_SPOOL_H

#include "archive/store/draft.h"
#include "archive/store/io.h"
#include "base/arena.h"
#include "base/sink.h"

#define SPOOL_MAX_MEMORY ((size_t)1 << 20)
#define SPOOL_PIECE      ((size_t)128 << 10)

struct spool;

/* `store_path` and the pool (may be NULL) must live as long as the arena. NULL
 * without memory. */
struct spool *spool_make(struct arena *a, const struct archive_io *io,
    const char *store_path, struct bufpool *pool);
/* Bytes spooled, and the first error of spooling. */
uint64_t spool_bytes(const struct spool *sp);

/* Put the body into `d`: in the frame, or, beyond the limit of a body block,
 * into a synced file of its name in tmp/. The spool must be finished. */
HN_CHECK enum res spool_pack(
    struct spool *sp, struct packer *p, struct draft *d);

#endif
