#include "archive/search/search.h"

#include <inttypes.h>
#include <stdio.h>

#include "archive/search/query.h"
#include "archive/search/reader.h"
#include "archive/store/store.h"
#include "base/clock.h"

#define DEFAULT_LIMIT   50
#define MAX_LIMIT       100000
#define DEFAULT_TIME_US 10000000
/* Virtual machine steps between two looks at the clock. */
#define STEPS 1000

#define ROW_COLUMNS                                                           \
	"m.id, m.time, m.bytes, m.content, m.ip, m.position,"                 \
	" " INDEX_DIRECTION ", m.qid,"                                        \
	" m.rcpt_count, m.rcpts, m.sender, m.subject"
enum { ROW_ID, ROW_TIME, ROW_BYTES, ROW_CONTENT, ROW_IP, ROW_POSITION, ROW_DIR,
	ROW_QID, ROW_RCPT_COUNT, ROW_RCPTS, ROW_SENDER, ROW_SUBJECT };

/* CROSS JOIN: the order of the tables is the plan. */
static const char sql_match[] = "SELECT " ROW_COLUMNS
    " FROM post CROSS JOIN message m ON m.id = post.rowid"
    " WHERE post MATCH ?1 AND post.rowid < ?2 ORDER BY post.rowid DESC";
static const char sql_all[] = "SELECT " ROW_COLUMNS
    " FROM message m WHERE m.id < ?2 AND ?1 IS NULL ORDER BY m.id DESC";
static const char sql_one_match[] = "SELECT " ROW_COLUMNS
    " FROM post CROSS JOIN message m ON m.id = post.rowid"
    " WHERE post MATCH ?1 AND post.rowid = ?2";
static const char sql_one_all[] = "SELECT " ROW_COLUMNS
    " FROM message m WHERE m.id = ?2 AND ?1 IS NULL";
static const char sql_newer[] =
    "SELECT id FROM message WHERE content = ?1 AND id > ?2";
static const char sql_count[] = "SELECT count(*) FROM post WHERE post MATCH ?1";

/* One search or count. */
struct run {
	struct archive_reader *reader;
	struct arena *a;
	const struct query *q;
	const struct search_options *options; /* NULL: counting */
	struct err *err;
	int64_t deadline;
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

/* The branches of the query in one database, merged newest first. */
struct merge {
	struct run *run;
	struct index_view *in;
	size_t count;
	sqlite3_stmt *st[QUERY_MAX_BRANCHES];
	uint64_t id[QUERY_MAX_BRANCHES]; /* of the row it stands on; 0 = end */
	bool ended[QUERY_MAX_BRANCHES];
	enum res res;
};

static int
past_deadline(void *context)
{
	return clock_mono_us() > ((struct run *)context)->deadline;
}

static enum res
row_ip(sqlite3_stmt *st, struct ip *out)
{
	int n = sqlite3_column_bytes(st, ROW_IP);
	*out = (struct ip){ .family = IP_NONE };
	if (n != 4 && n != 16)
		return RES_NOTFOUND;
	out->family = n == 4 ? IP_V4 : IP_V6;
	memcpy(out->bytes, sqlite3_column_blob(st, ROW_IP), (size_t)n);
	return RES_OK;
}

static bool
row_passes(const struct query_branch *b, sqlite3_stmt *st)
{
	struct ip ip;
	if (b->cond_count == 0)
		return true;
	if (row_ip(st, &ip) != RES_OK)
		ip.family = IP_NONE;
	return query_conds_hold(b, sqlite3_column_int64(st, ROW_TIME),
	    (uint64_t)sqlite3_column_int64(st, ROW_BYTES), &ip);
}

static enum res
res_of_step(struct run *run, sqlite3 *db, int rc)
{
	if (rc == SQLITE_ROW || rc == SQLITE_DONE || rc == SQLITE_OK)
		return RES_OK;
	if ((rc & 0xff) == SQLITE_INTERRUPT) {
		run->coverage->incomplete = true;
		return RES_TIMEOUT;
	}
	err_set(run->err, "index: %s", sqlite3_errmsg(db));
	return (rc & 0xff) == SQLITE_NOMEM ? RES_NOMEM : RES_IO;
}

/* --- merging branches --- */

/* Stand on the next row that passes the branch's conditions. */
static void
advance(struct merge *m, size_t i)
{
	for (;;) {
		int rc = sqlite3_step(m->st[i]);
		m->id[i] = 0;
		m->ended[i] = rc != SQLITE_ROW;
		if (rc != SQLITE_ROW) {
			enum res r = res_of_step(m->run, m->in->db, rc);
			if (m->res == RES_OK)
				m->res = r;
			return;
		}
		if (row_passes(&m->run->q->branches[i], m->st[i])) {
			m->id[i] =
			    (uint64_t)sqlite3_column_int64(m->st[i], ROW_ID);
			return;
		}
		if (past_deadline(m->run)) {
			m->ended[i] = true;
			m->run->coverage->incomplete = true;
			m->res = RES_TIMEOUT;
			return;
		}
	}
}

static void
merge_open(struct merge *m, struct run *run, struct index_view *in,
    uint64_t below)
{
	*m = (struct merge){ .run = run,
		.in = in,
		.count = run->q->branch_count };
	sqlite3_progress_handler(in->db, STEPS, past_deadline, run);
	for (size_t i = 0; i < m->count && m->res == RES_OK; i++) {
		struct str match = run->q->branches[i].match;
		int rc = index_view_take(
		    in, match.len > 0 ? sql_match : sql_all, &m->st[i]);
		m->res = res_of_step(run, in->db, rc);
		if (m->res != RES_OK)
			return;
		if (match.len > 0)
			sqlite3_bind_text(m->st[i], 1, match.ptr,
			    (int)match.len, SQLITE_STATIC);
		sqlite3_bind_int64(m->st[i], 2,
		    below > INT64_MAX ? INT64_MAX : (sqlite3_int64)below);
		advance(m, i);
	}
}

static void
merge_close(struct merge *m)
{
	for (size_t i = 0; i < m->count; i++)
		index_view_give(m->in, m->st[i]);
	sqlite3_progress_handler(m->in->db, 0, NULL, NULL);
}

/* The statement standing on the newest row; NULL at the end or on errors. */
static sqlite3_stmt *
merge_row(const struct merge *m)
{
	const sqlite3_stmt *best = NULL;
	uint64_t id = 0;
	if (m->res != RES_OK)
		return NULL;
	for (size_t i = 0; i < m->count; i++)
		if (!m->ended[i] && (best == NULL || m->id[i] > id)) {
			best = m->st[i];
			id = m->id[i];
		}
	return (sqlite3_stmt *)(uintptr_t)best;
}

/* Past this row in every branch that stands on it. */
static void
merge_next(struct merge *m, uint64_t id)
{
	for (size_t i = 0; i < m->count && m->res == RES_OK; i++)
		if (!m->ended[i] && m->id[i] == id)
			advance(m, i);
}

/* --- several deliveries of one content: only the newest match is shown --- */

static bool
matches(struct run *run, struct index_view *in, uint64_t id)
{
	bool yes = false;
	for (size_t i = 0; i < run->q->branch_count && !yes; i++) {
		const struct query_branch *b = &run->q->branches[i];
		sqlite3_stmt *st;
		if (index_view_take(in,
			b->match.len > 0 ? sql_one_match : sql_one_all,
			&st) == SQLITE_OK) {
			if (b->match.len > 0)
				sqlite3_bind_text(st, 1, b->match.ptr,
				    (int)b->match.len, SQLITE_STATIC);
			sqlite3_bind_int64(st, 2, (sqlite3_int64)id);
			yes = sqlite3_step(st) == SQLITE_ROW &&
			    row_passes(b, st);
		}
		index_view_give(in, st);
	}
	return yes;
}

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
			yes = matches(run, in,
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
	struct merge m;
	enum res r = RES_OK;
	merge_open(&m, run, in, below);
	for (sqlite3_stmt *row = merge_row(&m); row != NULL && r == RES_OK;
	    row = merge_row(&m)) {
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
		merge_next(&m, id);
	}
	if (r == RES_OK)
		r = m.res;
	merge_close(&m);
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
	sqlite3_stmt *st;
	sqlite3_progress_handler(in->db, STEPS, past_deadline, run);
	int rc = index_view_take(in, sql_count, &st);
	if (rc == SQLITE_OK) {
		sqlite3_bind_text(st, 1, b->match.ptr, (int)b->match.len,
		    SQLITE_STATIC);
		rc = sqlite3_step(st);
		if (rc == SQLITE_ROW)
			run->total += (uint64_t)sqlite3_column_int64(st, 0);
	}
	enum res r = res_of_step(run, in->db, rc);
	index_view_give(in, st);
	sqlite3_progress_handler(in->db, 0, NULL, NULL);
	return r;
}

/* --- shards --- */

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

/* --- cursors: "1_PERIOD_SHARD_FRAME_HASH" --- */

struct place {
	bool given;
	struct str period;
	uint64_t shard, frame;
};

static enum res
parse_cursor(struct run *run, struct place *out)
{
	struct str s = run->options->cursor, part[5], one;
	size_t count = 0;
	*out = (struct place){ .given = s.len > 0 };
	if (s.len == 0)
		return RES_OK;
	while (count < 5 && str_split(&s, '_', &one))
		part[count++] = one;
	char hash[16];
	snprintf(hash, sizeof hash, "%08" PRIx32, query_hash(run->q));
	if (count != 5 || s.ptr != NULL || !str_eq(part[0], STR("1")) ||
	    part[1].len > SHARD_MAX_PERIOD ||
	    str_to_u64(part[2], UINT32_MAX, &out->shard) != RES_OK ||
	    str_to_u64(part[3], UINT32_MAX, &out->frame) != RES_OK) {
		err_set(run->err, "no cursor of a search");
		return RES_INVALID;
	}
	if (!str_eq(part[4], str_c(hash))) {
		err_set(run->err, "this cursor belongs to another query");
		return RES_INVALID;
	}
	out->period = part[1];
	return RES_OK;
}

static struct str
make_cursor(struct run *run)
{
	bool more = run->full || run->coverage->incomplete;
	if (!more || run->count == 0 || run->last_view == NULL)
		return STR_EMPTY;
	const struct shard_entry *e = &run->last_view->entry;
	return arena_printf(run->a,
	    "1_%s_%" PRIu32 "_%" PRIu64 "_%08" PRIx32, e->period,
	    e->header.number, run->hits[run->count - 1].id & UINT32_MAX,
	    query_hash(run->q));
}

/* Where in this shard to go on; 0: the shard was finished before. */
static uint64_t
below_in(const struct place *p, const struct shard_view *v)
{
	if (!p->given)
		return UINT64_MAX;
	int by_period = str_cmp(str_c(v->entry.period), p->period);
	if (by_period != 0)
		return by_period < 0 ? UINT64_MAX : 0;
	if (v->entry.header.number != p->shard)
		return v->entry.header.number < p->shard ? UINT64_MAX : 0;
	return p->frame;
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
	if (run->deadline == INT64_MAX || run->deadline < soon)
		return run->deadline;
	return soon;
}

static enum res
run_all(struct run *run)
{
	struct place place = { 0 };
	enum res r = RES_OK;
	if (run->options != NULL)
		r = parse_cursor(run, &place);
	if (r == RES_OK)
		r = reader_refresh(run->reader, run->err);
	for (size_t i = 0;
	    i < run->reader->shard_count && r == RES_OK && !run->full; i++) {
		struct shard_view *v = &run->reader->shards[i];
		struct err why = { "" };
		uint64_t below = below_in(&place, v);
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
		.deadline = o->batch ? INT64_MAX : clock_mono_us() +
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
	*out_cursor = make_cursor(&run);
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
		.deadline = clock_mono_us() + DEFAULT_TIME_US,
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
		.deadline = INT64_MAX,
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
