#include "archive/search/match.h"

#include <string.h>

#include "base/clock.h"

/* Virtual machine steps between two looks at the clock. */
#define STEPS 1000

#define ROW_COLUMNS                                                           \
	"m.id, m.time, m.bytes, m.content, m.ip, m.position,"                 \
	" " INDEX_DIRECTION ", m.qid,"                                        \
	" m.rcpt_count, m.rcpts, m.sender, m.subject"

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
static const char sql_count[] = "SELECT count(*) FROM post WHERE post MATCH ?1";

static int
past_deadline(void *deadline_us)
{
	return clock_mono_us() > *(const int64_t *)deadline_us;
}

static enum res
res_of_step(sqlite3 *db, int rc, struct err *err)
{
	if (rc == SQLITE_ROW || rc == SQLITE_DONE || rc == SQLITE_OK)
		return RES_OK;
	if ((rc & 0xff) == SQLITE_INTERRUPT)
		return RES_TIMEOUT;
	err_set(err, "index: %s", sqlite3_errmsg(db));
	return (rc & 0xff) == SQLITE_NOMEM ? RES_NOMEM : RES_IO;
}

static struct ip
row_ip(sqlite3_stmt *st)
{
	int n = sqlite3_column_bytes(st, ROW_IP);
	struct ip ip = { .family = IP_NONE };
	if (n != 4 && n != 16)
		return ip;
	ip.family = n == 4 ? IP_V4 : IP_V6;
	memcpy(ip.bytes, sqlite3_column_blob(st, ROW_IP), (size_t)n);
	return ip;
}

static bool
row_passes(const struct query_branch *b, sqlite3_stmt *st)
{
	if (b->cond_count == 0)
		return true;
	struct ip ip = row_ip(st);
	return query_conds_hold(b, sqlite3_column_int64(st, ROW_TIME),
	    (uint64_t)sqlite3_column_int64(st, ROW_BYTES), &ip);
}

/* Stand on the next row that passes the branch's conditions. */
static void
advance(struct match *m, size_t i)
{
	enum res r = RES_OK;
	for (;;) {
		int rc = sqlite3_step(m->st[i]);
		r = res_of_step(m->in->db, rc, m->err);
		m->ended[i] = rc != SQLITE_ROW;
		if (m->ended[i] || row_passes(&m->q->branches[i], m->st[i]))
			break;
		if (past_deadline(&m->deadline_us)) {
			m->ended[i] = true;
			r = RES_TIMEOUT;
			break;
		}
	}
	if (!m->ended[i])
		m->id[i] = (uint64_t)sqlite3_column_int64(m->st[i], ROW_ID);
	if (m->res == RES_OK)
		m->res = r;
}

void
match_open(struct match *m, struct index_view *in, const struct query *q,
    uint64_t below, int64_t deadline_us, struct err *err)
{
	*m = (struct match){ .in = in,
		.q = q,
		.deadline_us = deadline_us,
		.err = err };
	sqlite3_progress_handler(in->db, STEPS, past_deadline, &m->deadline_us);
	for (size_t i = 0; i < q->branch_count && m->res == RES_OK; i++) {
		struct str text = q->branches[i].match;
		int rc = index_view_take(
		    in, text.len > 0 ? sql_match : sql_all, &m->st[i]);
		m->res = res_of_step(in->db, rc, err);
		if (m->res != RES_OK)
			return;
		if (text.len > 0)
			sqlite3_bind_text(m->st[i], 1, text.ptr, (int)text.len,
			    SQLITE_STATIC);
		sqlite3_bind_int64(m->st[i], 2,
		    below > INT64_MAX ? INT64_MAX : (sqlite3_int64)below);
		advance(m, i);
	}
}

void
match_close(struct match *m)
{
	for (size_t i = 0; i < m->q->branch_count; i++)
		index_view_give(m->in, m->st[i]);
	sqlite3_progress_handler(m->in->db, 0, NULL, NULL);
}

sqlite3_stmt *
match_row(const struct match *m)
{
	size_t best = QUERY_MAX_BRANCHES;
	if (m->res != RES_OK)
		return NULL;
	for (size_t i = 0; i < m->q->branch_count; i++)
		if (!m->ended[i] && (best == QUERY_MAX_BRANCHES ||
			m->id[i] > m->id[best]))
			best = i;
	return best < QUERY_MAX_BRANCHES ? m->st[best] : NULL;
}

void
match_next(struct match *m, uint64_t id)
{
	for (size_t i = 0; i < m->q->branch_count && m->res == RES_OK; i++)
		if (!m->ended[i] && m->id[i] == id)
			advance(m, i);
}

static bool
branch_has(struct index_view *in, const struct query_branch *b, uint64_t id)
{
	sqlite3_stmt *st;
	bool yes = false;
	if (index_view_take(in, b->match.len > 0 ? sql_one_match : sql_one_all,
		&st) == SQLITE_OK) {
		if (b->match.len > 0)
			sqlite3_bind_text(st, 1, b->match.ptr,
			    (int)b->match.len, SQLITE_STATIC);
		sqlite3_bind_int64(st, 2, (sqlite3_int64)id);
		yes = sqlite3_step(st) == SQLITE_ROW && row_passes(b, st);
	}
	index_view_give(in, st);
	return yes;
}

bool
match_one(struct index_view *in, const struct query *q, uint64_t id)
{
	for (size_t i = 0; i < q->branch_count; i++)
		if (branch_has(in, &q->branches[i], id))
			return true;
	return false;
}

enum res
match_count(struct index_view *in, struct str text, int64_t deadline_us,
    struct err *err, uint64_t *out)
{
	sqlite3_stmt *st;
	sqlite3_progress_handler(in->db, STEPS, past_deadline, &deadline_us);
	int rc = index_view_take(in, sql_count, &st);
	if (rc == SQLITE_OK) {
		sqlite3_bind_text(
		    st, 1, text.ptr, (int)text.len, SQLITE_STATIC);
		rc = sqlite3_step(st);
	}
	enum res r = res_of_step(in->db, rc, err);
	*out = rc == SQLITE_ROW ? (uint64_t)sqlite3_column_int64(st, 0) : 0;
	index_view_give(in, st);
	sqlite3_progress_handler(in->db, 0, NULL, NULL);
	return r;
}
