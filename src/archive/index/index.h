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

#include <sqlite3.h>

#include "archive/format/segment.h"
#include "archive/index/entry.h"
#include "archive/index/generations.h"
#include "archive/index/view.h"
#include "base/err.h"
#include "base/res.h"
#include "base/str.h"

#define INDEX_SCHEMA_VERSION 3
/* The direction of a row, in SQL: the two usual ones are kept as numbers that
 * take no room. */
#define INDEX_DIRECTION                                                       \
	"CASE dir WHEN 0 THEN 'in' WHEN 1 THEN 'out' ELSE dir END"
/* Recipients kept in a row, and bytes of its texts: what a list shows. */
#define INDEX_MAX_ROW_RCPTS   3
#define INDEX_MAX_ROW_SUBJECT 160
#define INDEX_MAX_ROW_TEXT    80

/* How far the segment has been applied: the next frame starts at `offset`. */
struct index_position {
	uint64_t offset;
	uint64_t frames;     /* frames before offset */
	uint64_t messages;   /* rows */
	uint64_t deliveries; /* rows that are further deliveries */
	int64_t min_time_us, max_time_us; /* of the rows; min > max: none */
};

/* The applied position of a shard's newest generation, for recovery (the
 * offset is a lower bound of what was durable). RES_NOTFOUND: no index or
 * one that cannot be read. Opens and closes through SQLite. */
HN_CHECK enum res index_peek(
    const char *shard_dir, struct index_position *out);

/* --- writing --- */
struct index_writer;

/* Open the newest generation, or make the first one. RES_UNSUPPORTED: it is
 * of another version or of another shard; RES_CORRUPT: damaged; RES_IO. */
HN_CHECK enum res index_open(const char *shard_dir,
    const struct shard_header *shard, struct err *err,
    struct index_writer **out);
/* An empty new generation beside the present one, which is removed. */
HN_CHECK enum res index_renew(const char *shard_dir,
    const struct shard_header *shard, struct err *err,
    struct index_writer **out);
/* A new generation that nobody sees before it is complete: begin, add as
 * below, end, which makes it durable and the newest and removes the one
 * before; readers go on with what they have open. What a crash leaves of it
 * is removed by the next begin. */
HN_CHECK enum res index_build_begin(const char *shard_dir,
    const struct shard_header *shard, struct err *err,
    struct index_writer **out);
HN_CHECK enum res index_build_end(
    struct index_writer **w, const char *shard_dir, struct err *err);
/* A generation that is being built beside the present one, in building.db:
 * what a run before left of it, or an empty one. Searches use the present one
 * until index_publish. */
HN_CHECK enum res index_open_building(const char *shard_dir,
    const struct shard_header *shard, struct err *err,
    struct index_writer **out);
bool index_is_building(const char *shard_dir);
/* It is complete: durable, then the newest generation under its own name; the
 * one before goes. Clears `w`; on errors it stays and can be built on. */
HN_CHECK enum res index_publish(
    const char *shard_dir, struct index_writer **w, struct err *err);
/* For the tail: in memory up to some MB, beyond them in a file without a name
 * that SQLite makes in $TMPDIR, /var/tmp or /tmp. After an error it can only
 * be closed. */
HN_CHECK enum res index_open_temporary(const struct shard_header *shard,
    struct err *err, struct index_writer **out);
/* With `tidy` in rollback-journal mode, so that it can be read without a
 * writer. */
void index_close(struct index_writer **w, bool tidy);

const struct index_position *index_position(const struct index_writer *w);
sqlite3 *index_handle(struct index_writer *w);

/* begin → add* → commit(position) | rollback. On any error: rollback. */
HN_CHECK enum res index_begin(struct index_writer *w, struct err *err);
HN_CHECK enum res index_add(
    struct index_writer *w, const struct entry *e, struct err *err);
HN_CHECK enum res index_commit(struct index_writer *w, uint64_t offset,
    uint64_t frames, struct err *err);
void index_rollback(struct index_writer *w);
/* Bytes [from, to) of the segment hold what cannot be indexed: damage. Part
 * of the transaction. */
HN_CHECK enum res index_note_damage(struct index_writer *w, uint64_t from,
    uint64_t to, struct err *err);
/* Merge all postings into one segment: smallest and fastest. */
HN_CHECK enum res index_optimize(struct index_writer *w, struct err *err);

/* --- reading --- */
/* Open for reading only, tokenizer and all. RES_NOTFOUND: no index;
 * RES_DENIED: it was left by a crash and cannot be recovered by us (the line
 * in `err` says what to do); RES_AGAIN: it changed under us. */
HN_CHECK enum res index_open_read(const char *shard_dir,
    const struct shard_header *shard, struct err *err,
    struct index_view *out);
HN_CHECK enum res index_read_position(
    struct index_view *v, struct index_position *out);
/* How many damaged ranges it knows of, and the first of them. */
uint64_t index_read_damage(
    struct index_view *v, uint64_t *out_from, uint64_t *out_to);

#endif
