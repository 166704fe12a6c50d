/* The rows of one index that a query matches: its branches merged, newest
 * first. RES_TIMEOUT from all of these: the deadline passed, and what was
 * found until then is good. */
#ifndef ARCHIVE_MATCH_H
#define ARCHIVE_MATCH_H

#include "archive/index/index.h"
#include "archive/search/query.h"

/* Columns of a row. */
enum { ROW_ID, ROW_TIME, ROW_BYTES, ROW_CONTENT, ROW_IP, ROW_POSITION, ROW_DIR,
	ROW_QID, ROW_RCPT_COUNT, ROW_RCPTS, ROW_SENDER, ROW_SUBJECT };

struct match {
	struct index_view *in;
	const struct query *q;
	int64_t deadline_us; /* monotonic */
	struct err *err;
	enum res res; /* anything but RES_OK ends it */
	sqlite3_stmt *st[QUERY_MAX_BRANCHES];
	uint64_t id[QUERY_MAX_BRANCHES]; /* of the row it stands on */
	bool ended[QUERY_MAX_BRANCHES];
};

/* Rows with ids below `below`; `in`, `q` and `err` stay the caller's, as long
 * as it is open. Also after an error it is to be closed. */
void match_open(struct match *m, struct index_view *in, const struct query *q,
    uint64_t below, int64_t deadline_us, struct err *err);
/* The newest row left; NULL at the end or on an error, see `res`. */
sqlite3_stmt *match_row(const struct match *m);
/* Past the row of this id. */
void match_next(struct match *m, uint64_t id);
void match_close(struct match *m);

/* Does the row of this id match? */
bool match_one(struct index_view *in, const struct query *q, uint64_t id);
/* How many rows this text of FTS5 finds. */
HN_CHECK enum res match_count(struct index_view *in, struct str text,
    int64_t deadline_us, struct err *err, uint64_t *out);

#endif
