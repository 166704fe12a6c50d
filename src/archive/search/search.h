/* Searching and reading a store (archive.md §5; design §7 for the language).
 * Works beside a running daemon and without one. */
#ifndef ARCHIVE_SEARCH_H
#define ARCHIVE_SEARCH_H

#include <stdbool.h>
#include <stdint.h>

#include "archive/format/record.h"
#include "base/arena.h"
#include "base/err.h"
#include "base/sink.h"

struct archive_reader;

/* Open for reading. RES_NOTFOUND: no store there. */
HN_CHECK enum res archive_reader_open(
    const char *path, struct err *err, struct archive_reader **out);
void archive_reader_close(struct archive_reader **r);
const char *archive_reader_path(const struct archive_reader *r);

/* --- query --- */
struct query;
/* Parse; a syntax error names the place ("at 14: …") in `err`. `now_s` is
 * what relative dates are relative to. */
HN_CHECK enum res query_parse(struct arena *a, struct str text, int64_t now_s,
    struct err *err, struct query **out);
/* How it was understood, for --explain. */
void query_explain(const struct query *q, struct buf *out);

struct search_hit {
	uint64_t id;
	int64_t time_us;
	uint64_t bytes;
	struct str direction, from, subject, queue_id;
	/* on one line; SNIPPET_BEGIN and SNIPPET_END around words found */
	struct str snippet;
	size_t rcpt_count;     /* all of them */
	size_t rcpts_shown;    /* the first few, in rcpts */
	struct str *rcpts;
};
#define SNIPPET_BEGIN '\002'
#define SNIPPET_END   '\003'

struct search_coverage {
	unsigned shards, offline;     /* offline: not searched */
	uint64_t messages, unapplied; /* unapplied: not seen by this search */
	bool incomplete;              /* time limit */
	struct err why;               /* of the first shard offline */
	uint64_t damaged;             /* ranges of segments, passed over */
	/* what else is to be known: an index that cannot be used (then the
	 * segment was read), where the first damage is */
	struct err note;
};
struct search_options {
	size_t limit;         /* hits wanted; 0 = 50 */
	struct str cursor;    /* where to go on; empty = newest */
	int64_t time_limit_us; /* 0 = 10 s */
	bool batch;           /* no time limit: nobody waits for an answer */
	bool snippets;
	bool going_on;        /* one search in pages: what a page before this one
	                       * covered is not counted again */
};
/* Newest first, in `a`. *out_cursor is empty at the end. A shard that cannot
 * be searched is counted, the others are. RES_INVALID: the cursor is not of
 * this query. */
HN_CHECK enum res archive_search(struct archive_reader *r, struct arena *a,
    const struct query *q, const struct search_options *o, struct err *err,
    struct search_hit **out_hits, size_t *out_count, struct str *out_cursor,
    struct search_coverage *out_coverage);
HN_CHECK enum res archive_count(struct archive_reader *r, struct arena *a,
    const struct query *q, struct err *err, uint64_t *out_count,
    struct search_coverage *out_coverage);

/* Every match in one shard, further deliveries too, in no order and however
 * long it takes; `each` gets frame numbers. What is not indexed yet counts in
 * *out_coverage. Any error: not all was looked at. */
HN_CHECK enum res archive_match(struct archive_reader *r, uint32_t shard,
    struct arena *a, const struct query *q, struct err *err,
    void (*each)(void *context, uint64_t number), void *context,
    struct search_coverage *out_coverage);

/* --- one message --- */
struct archived {
	uint64_t id;
	int64_t time_us;
	uint64_t bytes;
	struct str meta, evidence, edits; /* decoded blocks */
};
/* RES_NOTFOUND; RES_CORRUPT when its CRC or leaf is wrong. */
HN_CHECK enum res archive_get(struct archive_reader *r, struct arena *a,
    uint64_t id, struct err *err, struct archived *out);
/* The presented bytes into `out` (which is finished). */
HN_CHECK enum res archive_get_body(struct archive_reader *r, uint64_t id,
    struct err *err, struct sink *out);

/* --- what there is --- */
struct archive_shard_stats {
	struct str dir, family, period;
	uint32_t number;
	enum res status;         /* not RES_OK: offline, `why` says it */
	struct str why;
	uint64_t messages;       /* that a search sees */
	uint64_t deliveries;     /* of these, further ones of one content */
	uint64_t unapplied;      /* behind the index and its tail */
	uint64_t segment_bytes, index_bytes;
	int64_t min_time_us, max_time_us; /* min > max: no message */
};
/* One entry a shard, newest first, in `a`. */
HN_CHECK enum res archive_stats(struct archive_reader *r, struct arena *a,
    struct err *err, struct archive_shard_stats **out, size_t *out_count);

/* Build the index of every shard nobody writes to anew, each beside the
 * present one, which searches use meanwhile; goes on where an interrupted run
 * stopped. `progress` (may be NULL) is called now and then. RES_DENIED: the
 * daemon has one of them (the others are done). */
HN_CHECK enum res archive_reindex(struct archive_reader *r,
    void (*progress)(void *context, struct str dir, uint64_t done,
	uint64_t bytes),
    void *context, struct err *err);

/* Ids as people write them: "7.123" = shard.frame. */
HN_CHECK enum res archive_id_parse(struct str text, uint64_t *out);
void archive_id_format(struct buf *out, uint64_t id);

#endif
