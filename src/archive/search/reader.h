/* What search.c and get.c share of an open reader: the shards, each with its
 * index, its segment and its un-applied tail, opened when first needed and
 * kept for the next call. One thread at a time. */
#ifndef ARCHIVE_READER_H
#define ARCHIVE_READER_H

#include "archive/index/index.h"
#include "archive/search/search.h"
#include "archive/store/store_dir.h"

/* Shards whose files are kept open. */
#define READER_MAX_OPEN 48
/* Tails that are kept: some MB each. Usually a family has one. */
#define READER_MAX_TAILS 3
/* Who answers a person reads a tail up to here and no longer than this; what
 * is behind it counts as unapplied. Who takes all out reads what is there when
 * it begins. */
#define READER_MAX_TAIL    5000
#define READER_TAIL_US     2000000
/* How often a search looks again at what is being written. */
#define READER_TRIES       8

struct shard_view {
	struct shard_entry entry;
	uint64_t used;           /* when; the oldest is closed first */
	unsigned generation;     /* of the index that is open; 0 = none */
	uint32_t pointed_at;     /* reader_point_at */
	struct index_view index; /* db NULL: none */
	struct segment_reader *segment;
	/* frames behind the index */
	struct index_writer *tail;
	struct index_view tail_index; /* of `tail` */
	uint64_t tail_from, tail_upto; /* offsets */
	/* of the search under way */
	struct index_position position;
	uint64_t unapplied;
	uint64_t damaged;
	struct err note;
	bool in_transaction;
};

struct archive_reader {
	char *path;
	struct arena *arena;     /* of `shards` */
	struct shard_view *shards; /* newest first: period, then number */
	size_t shard_count;
	uint64_t tick;
	struct entry_builder *builder;
	struct text_extract *text;
};

/* Look for shards that came or went. */
HN_CHECK enum res reader_refresh(struct archive_reader *r, struct err *err);
/* The segment; RES_CORRUPT and the like when it cannot be read. */
HN_CHECK enum res reader_segment(
    struct archive_reader *r, struct shard_view *v, struct err *err);
/* Index and tail of one moment: a read transaction is open until reader_end.
 * Without an index, or with one that cannot be used (a note says why), db is
 * NULL and all of the segment is tail, as far as a tail goes, or can be read
 * until `by_us` (monotonic; INT64_MAX: all of it, however long it takes). */
HN_CHECK enum res reader_begin(struct archive_reader *r, struct shard_view *v,
    int64_t by_us, struct err *err);
void reader_end(struct shard_view *v);
/* This frame's content is about to be read: let the segment see the frame
 * before its dictionary, so that it need not walk there. */
void reader_point_at(struct shard_view *v, const struct segment_frame *f);
/* What the moment has seen, added up. */
void reader_cover(const struct shard_view *v, struct search_coverage *c);
/* NULL: no such shard. */
struct shard_view *reader_find(struct archive_reader *r, uint32_t number);
/* The frame of an id, through the index when it is there. */
HN_CHECK enum res reader_frame(struct archive_reader *r, uint64_t id,
    struct err *err, struct shard_view **out_view, struct segment_frame *out);

/* A line of `text` around the first of `words` found, in `a`. */
struct str snippet_make(
    struct arena *a, struct str text, const struct query *q);

#endif
