/* Reading ahead for the applier: a thread of its own takes frames from the
 * segment and makes entries of them, while the applier's thread puts those
 * before them into the index. Each half is about as much work.
 *
 *   ahead_start → (ahead_begin → ahead_take, ahead_give* )* → ahead_stop
 *
 * One thread uses it, the applier's. */
#ifndef ARCHIVE_AHEAD_H
#define ARCHIVE_AHEAD_H

#include "archive/index/entry.h"

/* Entries that wait at most, and bytes of them: the next is read when fewer
 * wait, however long it is itself. */
#define AHEAD_SLOTS 24
#define AHEAD_BYTES ((size_t)1 << 20)
/* Who waited is woken when there is work for many turns, not for one: a change
 * of threads costs a tenth of what a message does. */
#define AHEAD_TURN  12
/* A slot keeps its memory for the next message, but not more than this. */
#define AHEAD_KEEP  ((size_t)64 << 10)
/* Bytes of one message's META and texts on the way to the index. */
#define AHEAD_ARENA ((size_t)32 << 20)

struct ahead;

/* What became of one frame. */
struct ahead_item {
	/* RES_OK: `entry` is to be indexed. RES_NOTFOUND: nothing to index.
	 * RES_CORRUPT, RES_LIMIT: it cannot be, `why` says more. Else the
	 * frame could not be read now. */
	enum res res;
	bool end;       /* no frame: nothing whole before `durable` */
	bool skipped;   /* damage lies before it */
	uint64_t offset; /* where the frame begins */
	uint64_t next_offset, next_frames; /* the position behind it */
	struct entry entry;
	struct err why;
};

/* Opens the segment in the shard's directory. */
HN_CHECK enum res ahead_start(
    const char *shard_dir, struct err *err, struct ahead **out);
void ahead_stop(struct ahead **a);
const struct shard_header *ahead_shard(const struct ahead *a);

/* Read frames from here on, up to `durable`. What was read before and not
 * taken is dropped, unless it goes on where the last item taken ended. */
void ahead_begin(struct ahead *a, uint64_t offset, uint64_t frames,
    uint64_t durable);
/* The next one, waiting for it; good until ahead_give. An item with `end`
 * comes once `durable` is reached and nothing else after it. */
const struct ahead_item *ahead_take(struct ahead *a);
void ahead_give(struct ahead *a);

#endif
