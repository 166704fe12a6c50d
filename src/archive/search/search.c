#include "archive/search/search.h"

#include "archive/search/cursor.h"
#include "archive/search/match.h"
#include "archive/search/reader.h"
#include "archive/store/store.h"
#include "base/clock.h"

#define DEFAULT_LIMIT   50
#define MAX_LIMIT       100000
#define DEFAULT_TIME_US 10000000

static const char sql_newer[] =
    "SELECT id FROM message WHERE content = ?1 AND id > ?2";

/* One search or count. */
struct run {
	struct archive_reader *reader;
	struct arena *a;
	const struct query *q;
	const struct search_options *options; /* NULL: counting */
	struct err *err;
	int64_t deadline_us;
	struct search_coverage *coverage;
	/* results */
	struct search_hit *hits;
	size_t count, limit;
	uint64_t total;
	void (*each)(void *context, uint64_t number); /* NULL: not matching */
	void *each_context;
	bool full;
	/* the place to go on after the last hit */
	const struct shard_view *last_view;
};

/* --- several deliveries of one content: only the newest match is shown --- */

static bool
newer_in(
    struct run *run, struct index_view *in, uint64_t content, uint64_t id)
{
	sqlite3_stmt *st;
	bool yes = false;
	if (index_view_take(in, sql_newer, &st) == SQLITE_OK) {
		sqlite3_bind_int64(st, 1, (sqlite3_int64)content);
		sqlite3_bind_int64(st, 2, (sqlite3_int64)id);
		while (!yes && sqlite3_step(st) == SQLITE_ROW)
			yes = match_one(in, run->q,
			    (uint64_t)sqlite3_column_int64(st, 0));
	}
	index_view_give(in, st);
	return yes;
}

static uint64_t
deliveries(const struct shard_view *v)
{
	uint64_t n = v->position.deliveries;
	if (v->tail != NULL)
		n += index_position(v->tail)->deliveries;
	return n;
}

static bool
is_hidden(struct run *run, struct shard_view *v, sqlite3_stmt *row)
{
	if (deliveries(v) == 0)
		return false;
	uint64_t id = (uint64_t)sqlite3_column_int64(row, ROW_ID);
	uint64_t content = id;
	if (sqlite3_column_type(row, ROW_CONTENT) != SQLITE_NULL)
		content = (uint64_t)sqlite3_column_int64(row, ROW_CONTENT);
	if (v->index.db != NULL && newer_in(run, &v->index, content, id))
		return true;
	return v->tail != NULL && newer_in(run, &v->tail_index, content, id);
}

/* --- hits --- */

static struct str
column(struct arena *a, sqlite3_stmt *st, int at)
{
	const void *p = sqlite3_column_blob(st, at);
	return arena_dup(
	    a, str_of(p, (size_t)sqlite3_column_bytes(st, at)));
}

static enum res
split_rcpts(struct arena *a, struct str text, struct search_hit *h)
{
	struct str one;
	h->rcpts = arena_array(a, INDEX_MAX_ROW_RCPTS, sizeof *h->rcpts);
	if (h->rcpts == NULL)
		return RES_NOMEM;
	while (text.len > 0 && h->rcpts_shown < INDEX_MAX_ROW_RCPTS &&
	    str_split(&text, '\n', &one))
		h->rcpts[h->rcpts_shown++] = one;
	return RES_OK;
}

static struct str
hit_snippet(struct run *run, struct shard_view *v, uint64_t offset)
{
	struct archive_reader *r = run->reader;
	struct segment_frame f;
	if (segment_reader_at(v->segment, offset, &f) != RES_OK)
		return STR_EMPTY;
	reader_point_at(v, &f);
	text_extract_reset(r->text);
	struct sink *s = text_extract_sink(r->text);
	enum res res = segment_reader_body(v->segment, &f, NULL, s);
	enum res finished = sink_finish(s);
	if (res != RES_OK || finished != RES_OK)
		return STR_EMPTY;
	const struct text_doc *d = text_extract_doc(r->text);
	return snippet_make(run->a, buf_str(&d->body), run->q);
}

static enum res
add_hit(struct run *run, struct shard_view *v, sqlite3_stmt *st)
{
	struct search_hit *h = &run->hits[run->count];
	uint64_t number = (uint64_t)sqlite3_column_int64(st, ROW_ID);
	*h = (struct search_hit){
		.id = (uint64_t)v->entry.header.number << 32 | number,
		.time_us = sqlite3_column_int64(st, ROW_TIME),
		.bytes = (uint64_t)sqlite3_column_int64(st, ROW_BYTES),
		.direction = column(run->a, st, ROW_DIR),
		.from = column(run->a, st, ROW_SENDER),
		.subject = column(run->a, st, ROW_SUBJECT),
		.queue_id = column(run->a, st, ROW_QID),
		.rcpt_count = (size_t)sqlite3_column_int64(st, ROW_RCPT_COUNT),
	};
	enum res r = split_rcpts(run->a, column(run->a, st, ROW_RCPTS), h);
	if (r == RES_OK && h->subject.ptr == NULL)
		r = RES_NOMEM;
	if (r != RES_OK)
		return r;
	if (run->options->snippets)
		h->snippet = hit_snippet(run, v,
		    (uint64_t)sqlite3_column_int64(st, ROW_POSITION));
	run->last_view = v;
	run->count++;
	return RES_OK;
}

/* Hits of one database of a shard: its index, or its tail. */
static enum res
search_db(struct run *run, struct shard_view *v, struct index_view *in,
    uint64_t below)
{
	struct match m;
	enum res r = RES_OK;
	match_open(&m, in, run->q, below, run->deadline_us, run->err);
	for (sqlite3_stmt *row = match_row(&m); row != NULL && r == RES_OK;
	    row = match_row(&m)) {
		uint64_t id = (uint64_t)sqlite3_column_int64(row, ROW_ID);
		bool hidden = run->each == NULL && is_hidden(run, v, row);
		if (run->each != NULL) {
			run->each(run->each_context, id);
		} else if (!hidden && run->options == NULL) {
			run->total++;
		} else if (!hidden && run->count == run->limit) {
			run->full = true;
			break;
		} else if (!hidden) {
			r = add_hit(run, v, row);
		}
		match_next(&m, id);
	}
	if (r == RES_OK)
		r = m.res;
	match_close(&m);
	return r;
}

/* The whole count at once, where nothing is to be looked at by row. */
static enum res
count_db(struct run *run, struct shard_view *v, struct index_view *in,
    uint64_t rows)
{
	const struct query_branch *b = &run->q->branches[0];
	if (run->q->branch_count > 1 || b->cond_count > 0 || deliveries(v) > 0)
		return search_db(run, v, in, UINT64_MAX);
	if (b->match.len == 0) {
		run->total += rows;
		return RES_OK;
	}
	uint64_t count;
	enum res r = match_count(
	    in, b->match, run->deadline_us, run->err, &count);
	run->total += count;
	return r;
}

/* --- one shard --- */

/* Nothing in the shard can have the time the query wants. */
static bool
out_of_span(const struct run *run, const struct shard_view *v)
{
	int64_t from, to, min = v->position.min_time_us,
	    max = v->position.max_time_us;
	query_span(run->q, &from, &to);
	if (v->tail != NULL) {
		const struct index_position *t = index_position(v->tail);
		if (t->min_time_us < min)
			min = t->min_time_us;
		if (t->max_time_us > max)
			max = t->max_time_us;
	}
	return min >= to || max < from;
}

static enum res
one_db(struct run *run, struct shard_view *v, struct index_view *in,
    uint64_t rows, uint64_t below)
{
	if (run->options == NULL && run->each == NULL)
		return count_db(run, v, in, rows);
	return search_db(run, v, in, below);
}

static enum res
search_shard(struct run *run, struct shard_view *v, uint64_t below,
    bool covered)
{
	uint64_t tail_rows = 0;
	if (v->tail != NULL)
		tail_rows = index_position(v->tail)->messages;
	if (!covered)
		reader_cover(v, run->coverage);
	if (out_of_span(run, v))
		return RES_OK;
	enum res r = RES_OK;
	if (v->tail != NULL)
		r = one_db(run, v, &v->tail_index, tail_rows, below);
	if (r == RES_OK && v->index.db != NULL && !run->full)
		r = one_db(run, v, &v->index, v->position.messages, below);
	return r;
}

/* --- all shards --- */

static struct str
next_cursor(struct run *run)
{
	bool more = run->full || run->coverage->incomplete;
	if (!more || run->count == 0 || run->last_view == NULL)
		return STR_EMPTY;
	return cursor_make(run->a, run->q, &run->last_view->entry,
	    run->hits[run->count - 1].id & UINT32_MAX);
}

static void
offline(struct run *run, const struct err *why)
{
	run->coverage->offline++;
	err_set(&run->coverage->why, "%s", why->text);
}

/* Reading what is not indexed yet must not take all of the time. */
static int64_t
tail_by(const struct run *run)
{
	int64_t soon = clock_mono_us() + READER_TAIL_US;
	if (run->deadline_us == INT64_MAX || run->deadline_us < soon)
		return run->deadline_us;
	return soon;
}

static enum res
run_all(struct run *run)
{
	struct cursor cursor = { .given = false };
	enum res r = RES_OK;
	if (run->options != NULL)
		r = cursor_parse(
		    run->options->cursor, run->q, run->err, &cursor);
	if (r == RES_OK)
		r = reader_refresh(run->reader, run->err);
	for (size_t i = 0;
	    i < run->reader->shard_count && r == RES_OK && !run->full; i++) {
		struct shard_view *v = &run->reader->shards[i];
		struct err why = { "" };
		uint64_t below = cursor_below(&cursor, &v->entry);
		/* by the page before, to its end or to the cursor */
		bool covered = below != UINT64_MAX && run->options->going_on;
		if (strcmp(v->entry.family, STORE_AUDIT_FAMILY) == 0)
			continue; /* no mail is there */
		if (v->entry.status != RES_OK) {
			err_set(&why, "%s: %s", v->entry.dir,
			    res_text(v->entry.status));
			if (!covered)
				offline(run, &why);
			continue;
		}
		if (below == 0)
			continue;
		if (reader_begin(run->reader, v, tail_by(run), &why) !=
		    RES_OK) {
			offline(run, &why);
			continue;
		}
		struct err *outer = run->err;
		run->err = &why;
		r = search_shard(run, v, below, covered);
		run->err = outer;
		reader_end(v);
		if (r == RES_IO) {
			offline(run, &why);
			r = RES_OK;
		}
		if (why.text[0] != '\0' && r != RES_OK)
			err_set(outer, "%s", why.text);
	}
	/* what was found in time is an answer */
	run->coverage->incomplete = r == RES_TIMEOUT;
	return r == RES_TIMEOUT ? RES_OK : r;
}

enum res
archive_search(struct archive_reader *reader, struct arena *a,
    const struct query *q, const struct search_options *o, struct err *err,
    struct search_hit **out_hits, size_t *out_count, struct str *out_cursor,
    struct search_coverage *out_coverage)
{
	struct search_coverage coverage = { 0 };
	struct run run = { .reader = reader,
		.a = a,
		.q = q,
		.options = o,
		.err = err,
		.limit = o->limit == 0 ? DEFAULT_LIMIT : o->limit,
		.deadline_us = o->batch ? INT64_MAX : clock_mono_us() +
			(o->time_limit_us > 0 ? o->time_limit_us :
						DEFAULT_TIME_US),
		.coverage = &coverage };
	if (run.limit > MAX_LIMIT)
		run.limit = MAX_LIMIT;
	run.hits = arena_array(a, run.limit, sizeof *run.hits);
	if (run.hits == NULL)
		return RES_NOMEM;
	enum res r = run_all(&run);
	if (r != RES_OK)
		return r;
	*out_hits = run.hits;
	*out_count = run.count;
	*out_cursor = next_cursor(&run);
	*out_coverage = coverage;
	return RES_OK;
}

enum res
archive_count(struct archive_reader *reader, struct arena *a,
    const struct query *q, struct err *err, uint64_t *out_count,
    struct search_coverage *out_coverage)
{
	struct search_coverage coverage = { 0 };
	struct run run = { .reader = reader,
		.a = a,
		.q = q,
		.err = err,
		.deadline_us = clock_mono_us() + DEFAULT_TIME_US,
		.coverage = &coverage };
	enum res r = run_all(&run);
	if (r != RES_OK)
		return r;
	*out_count = run.total;
	*out_coverage = coverage;
	return RES_OK;
}

enum res
archive_match(struct archive_reader *reader, uint32_t shard, struct arena *a,
    const struct query *q, struct err *err,
    void (*each)(void *context, uint64_t number), void *context,
    struct search_coverage *out_coverage)
{
	struct search_coverage coverage = { 0 };
	struct run run = { .reader = reader,
		.a = a,
		.q = q,
		.err = err,
		.deadline_us = INT64_MAX,
		.each = each,
		.each_context = context,
		.coverage = &coverage };
	enum res r = reader_refresh(reader, err);
	if (r != RES_OK)
		return r;
	struct shard_view *v = reader_find(reader, shard);
	if (v == NULL)
		return RES_NOTFOUND;
	r = reader_begin(reader, v, INT64_MAX, err);
	if (r != RES_OK)
		return r;
	r = search_shard(&run, v, UINT64_MAX, false);
	reader_end(v);
	*out_coverage = coverage;
	return r;
}
