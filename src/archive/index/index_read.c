#include "archive/index/index.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include "archive/index/generations.h"
#include "archive/index/index_db.h"
#include "archive/store/io.h"

/* A generation that its writer is just making has no tables yet. */
static bool
is_empty(sqlite3 *db)
{
	sqlite3_stmt *st = NULL;
	bool empty = false;
	if (sqlite3_prepare_v2(db, "SELECT count(*) FROM sqlite_master", -1,
		&st, NULL) == SQLITE_OK &&
	    sqlite3_step(st) == SQLITE_ROW)
		empty = sqlite3_column_int(st, 0) == 0;
	sqlite3_finalize(st);
	return empty;
}

static enum res
try_read(const char *path, const struct shard_header *shard, struct err *err,
    struct index_view *out)
{
	struct index_view v = { .db = NULL };
	struct index_position position;
	enum res r = index_connect(path, SQLITE_OPEN_READONLY, err, &v.db);
	if (r != RES_OK)
		return r;
	r = index_view_state(&v, shard, &position);
	if (r == RES_UNSUPPORTED && is_empty(v.db)) {
		index_view_close(&v);
		return RES_NOTFOUND;
	}
	if (r != RES_OK) {
		err_set(err, "%s: %s", path, r == RES_UNSUPPORTED
			? "of another version: it is rebuilt by hanaperd or "
			  "`hanaper archive reindex`"
			: sqlite3_errmsg(v.db));
		index_view_close(&v);
		return r;
	}
	*out = v;
	return RES_OK;
}

/* A WAL that a crash left behind can only be read by who may write. Do that,
 * while nobody else has the shard. */
static enum res
recover_wal(const char *dir, const char *path, struct err *err)
{
	char lock_path[PATH_MAX];
	sqlite3 *db = NULL;
	enum res r = io_path(lock_path, "%s/LOCK", dir);
	if (r != RES_OK)
		return r;
	int lock = open(lock_path, O_RDWR | O_CLOEXEC);
	if (lock < 0) {
		err_set(err, "%s was left by a crash; start hanaperd, or do "
		    "this as its owner, so that it is recovered", path);
		return RES_DENIED;
	}
	if (flock(lock, LOCK_EX | LOCK_NB) != 0) {
		close(lock);
		return RES_AGAIN; /* a writer is there: it will do it */
	}
	r = index_connect(path, SQLITE_OPEN_READWRITE, err, &db);
	if (r == RES_OK)
		r = index_run(db, "PRAGMA wal_checkpoint(TRUNCATE);"
		    "PRAGMA journal_mode = DELETE", err);
	sqlite3_close(db);
	close(lock);
	return r;
}

enum res
index_open_read(const char *dir, const struct shard_header *shard,
    struct err *err, struct index_view *out)
{
	char path[PATH_MAX];
	unsigned number;
	enum res r = RES_AGAIN;
	/* the generation may change, or the daemon be starting */
	for (int attempt = 0; attempt < 5; attempt++) {
		if (attempt > 0)
			(void)usleep(20000);
		struct err why = { "" };
		r = index_newest(dir, path, sizeof path, &number);
		if (r != RES_OK)
			return r;
		r = try_read(path, shard, &why, out);
		if (r == RES_DENIED || r == RES_IO || r == RES_AGAIN) {
			struct err more = { "" };
			enum res rr = recover_wal(dir, path, &more);
			if (rr == RES_DENIED)
				why = more;
			if (rr == RES_OK)
				r = try_read(path, shard, &why, out);
		}
		if (r == RES_OK || r == RES_NOTFOUND)
			return r;
		if (r == RES_UNSUPPORTED || r == RES_CORRUPT || attempt == 4) {
			err_set(err, "%s", why.text);
			return r;
		}
	}
	return r;
}

uint64_t
index_read_damage(struct index_view *v, uint64_t *out_from, uint64_t *out_to)
{
	sqlite3_stmt *st;
	uint64_t count = 0;
	if (index_view_take(v,
		"SELECT count(*) OVER (), start, stop FROM damage"
		" ORDER BY start LIMIT 1", &st) == SQLITE_OK &&
	    sqlite3_step(st) == SQLITE_ROW) {
		count = (uint64_t)sqlite3_column_int64(st, 0);
		*out_from = (uint64_t)sqlite3_column_int64(st, 1);
		*out_to = (uint64_t)sqlite3_column_int64(st, 2);
	}
	index_view_give(v, st);
	return count;
}

enum res
index_read_position(struct index_view *v, struct index_position *out)
{
	return index_view_state(v, NULL, out);
}

enum res
index_peek(const char *dir, struct index_position *out)
{
	char path[PATH_MAX];
	unsigned number;
	sqlite3 *db = NULL;
	enum res r = index_newest(dir, path, sizeof path, &number);
	/* the caller holds the shard's lock: it may recover a WAL */
	if (r == RES_OK)
		r = index_connect(path, SQLITE_OPEN_READWRITE, NULL, &db);
	if (r == RES_OK)
		r = index_read_state(db, NULL, out);
	sqlite3_close(db);
	return r == RES_OK || r == RES_NOMEM ? r : RES_NOTFOUND;
}
