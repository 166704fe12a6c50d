/* The index of one shard: `index.g<N>.db`, the newest generation counts.
 * SQLite with catalogue rows (table `message`) and a contentless FTS5 table
 * (`post`), both keyed by frame number, and the offset up to which the
 * segment has been applied, committed together. All of it can be thrown away
 * and built again from the segment.
 *
 * One writer (the applier, under the shard's LOCK), any number of readers. A
 * connection belongs to one thread. */
#ifndef ARCHIVE_INDEX_H
#define ARCHIVE_INDEX_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/res.h"
#include "base/str.h"

#define INDEX_SCHEMA_VERSION 1

/* How far the segment has been applied: the next frame starts at `offset`. */
struct index_position {
	uint64_t offset;
	uint64_t frames;  /* frames before offset */
};

/* The applied position of a shard's newest generation, for recovery (the
 * offset is a lower bound of what was durable). RES_NOTFOUND: no index or
 * one that cannot be read. Opens and closes through SQLite. */
HN_CHECK enum res index_peek(
    const char *shard_dir, struct index_position *out);

#endif
