#include "archive/state/decisions.h"

#include <sqlite3.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/thread.h"

#define BUSY_MS     5000
/* Under load entries are gathered for a moment: a transaction costs as much as
 * many entries. The first one after a quiet moment is written at once. */
#define GATHER_US    DECISIONS_GATHER_US
#define GATHER_COUNT 1024
#define TRIM_EVERY  512  /* entries between looks at age and size */
#define TRIM_COUNT  2000 /* entries dropped at once when the file is too big */
#define SCHEMA_VERSION 1

/* A waiting entry: one allocation, texts behind it. */
struct waiting {
	struct waiting *next;
	struct decision_entry entry;
	struct decision_row rows[DECISIONS_MAX_ROWS];
};

struct decisions {
	struct decisions_options options;
	sqlite3 *db;            /* writer thread only */
	sqlite3_stmt *insert, *row;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed; /* something was put, or stop */
	pthread_cond_t written;
	struct waiting *pending, **tail, *writing;
	size_t count;           /* pending */
	uint64_t put, done;     /* entries since start */
	bool stop, hurry;       /* hurry: somebody waits for `written` */
	int64_t batch_us;       /* when the last batch was begun */
	atomic_ullong dropped;
	unsigned until_trim;
	char path[];
};

static const char schema[] =
    "PRAGMA journal_mode=WAL;"
    "PRAGMA synchronous=NORMAL;"
    "CREATE TABLE IF NOT EXISTS decision(id TEXT PRIMARY KEY, qid TEXT, "
    "time INTEGER, trace BLOB, evidence BLOB);"
    "CREATE INDEX IF NOT EXISTS decision_qid ON decision(qid);"
    "CREATE INDEX IF NOT EXISTS decision_time ON decision(time);"
    "CREATE TABLE IF NOT EXISTS report(domain TEXT, time INTEGER, row BLOB);"
    "CREATE INDEX IF NOT EXISTS report_domain ON report(domain, time);"
    "CREATE INDEX IF NOT EXISTS report_time ON report(time);"
    "PRAGMA user_version=1;";

/* --- SQLite ------------------------------------------------------------------ */

static void
bind(sqlite3_stmt *s, int at, struct str value, bool text)
{
	const char *ptr = value.ptr != NULL ? value.ptr : "";
	if (text)
		sqlite3_bind_text64(s, at, ptr, value.len, SQLITE_STATIC,
		    SQLITE_UTF8);
	else
		sqlite3_bind_blob64(s, at, ptr, value.len, SQLITE_STATIC);
}

static struct str
column(sqlite3_stmt *s, int at)
{
	const void *p = sqlite3_column_blob(s, at);
	return str_of(p, (size_t)sqlite3_column_bytes(s, at));
}

static enum res
open_file(const char *path, int flags, sqlite3 **out)
{
	sqlite3 *db = NULL;
	int rc = sqlite3_open_v2(
	    path, &db, flags | SQLITE_OPEN_NOMUTEX, NULL);
	if (rc == SQLITE_OK)
		rc = sqlite3_busy_timeout(db, BUSY_MS);
	if (rc == SQLITE_OK) {
		*out = db;
		return RES_OK;
	}
	sqlite3_close(db);
	return rc == SQLITE_CANTOPEN ? RES_NOTFOUND :
	    rc == SQLITE_NOTADB || rc == SQLITE_CORRUPT ? RES_CORRUPT : RES_IO;
}

/* -1 when it cannot be read. */
static int64_t
pragma_number(sqlite3 *db, const char *pragma)
{
	sqlite3_stmt *s = NULL;
	int64_t n = -1;
	if (sqlite3_prepare_v2(db, pragma, -1, &s, NULL) == SQLITE_OK &&
	    sqlite3_step(s) == SQLITE_ROW)
		n = sqlite3_column_int64(s, 0);
	sqlite3_finalize(s);
	return n;
}

static enum res
open_writer(struct decisions *d)
{
	static const char insert[] =
	    "INSERT OR REPLACE INTO decision VALUES(?1,?2,?3,?4,?5)";
	static const char row[] = "INSERT INTO report VALUES(?1,?2,?3)";
	enum res r = open_file(d->path,
	    SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, &d->db);
	if (r != RES_OK)
		return r;
	int64_t version = pragma_number(d->db, "PRAGMA user_version");
	if ((version == 0 || version == SCHEMA_VERSION) &&
	    sqlite3_exec(d->db, schema, NULL, NULL, NULL) == SQLITE_OK &&
	    sqlite3_prepare_v3(d->db, insert, -1, SQLITE_PREPARE_PERSISTENT,
		&d->insert, NULL) == SQLITE_OK &&
	    sqlite3_prepare_v3(d->db, row, -1, SQLITE_PREPARE_PERSISTENT,
		&d->row, NULL) == SQLITE_OK)
		return RES_OK;
	int code = sqlite3_errcode(d->db);
	sqlite3_finalize(d->insert);
	sqlite3_finalize(d->row);
	sqlite3_close(d->db);
	d->insert = d->row = NULL;
	d->db = NULL;
	return code == SQLITE_IOERR || code == SQLITE_FULL ? RES_IO :
							     RES_CORRUPT;
}

/* What cannot be read explains nothing: aside with it. */
static void
set_aside(const char *path)
{
	static const char *const suffixes[] = { "", "-wal", "-shm" };
	char from[4096], to[4096];
	for (size_t i = 0; i < sizeof suffixes / sizeof suffixes[0]; i++) {
		snprintf(from, sizeof from, "%s%s", path, suffixes[i]);
		snprintf(to, sizeof to, "%s.bad%s", path, suffixes[i]);
		(void)rename(from, to);
	}
}

/* --- the writer thread --------------------------------------------------------- */

static void
write_one(struct decisions *d, const struct decision_entry *e)
{
	bind(d->insert, 1, e->id, true);
	bind(d->insert, 2, e->queue_id, true);
	sqlite3_bind_int64(d->insert, 3, e->time_us);
	bind(d->insert, 4, e->trace, false);
	bind(d->insert, 5, e->evidence, false);
	bool good = sqlite3_step(d->insert) == SQLITE_DONE;
	sqlite3_reset(d->insert);
	for (size_t i = 0; good && i < e->row_count; i++) {
		bind(d->row, 1, e->rows[i].domain, true);
		sqlite3_bind_int64(d->row, 2, e->time_us);
		bind(d->row, 3, e->rows[i].row, false);
		good = sqlite3_step(d->row) == SQLITE_DONE;
		sqlite3_reset(d->row);
	}
	if (!good)
		atomic_fetch_add(&d->dropped, 1);
}

static void
trim(struct decisions *d)
{
	char sql[256];
	long long oldest =
	    (long long)(clock_now_us(&d->options.clock) - d->options.keep_us);
	snprintf(sql, sizeof sql, "DELETE FROM decision WHERE time < %lld;"
	    "DELETE FROM report WHERE time < %lld", oldest, oldest);
	sqlite3_exec(d->db, sql, NULL, NULL, NULL);
	int64_t used = (pragma_number(d->db, "PRAGMA page_count") -
			   pragma_number(d->db, "PRAGMA freelist_count")) *
	    pragma_number(d->db, "PRAGMA page_size");
	if (used <= (int64_t)d->options.max_bytes)
		return;
	snprintf(sql, sizeof sql, "DELETE FROM decision WHERE id IN (SELECT id "
	    "FROM decision ORDER BY time LIMIT %d)", TRIM_COUNT);
	sqlite3_exec(d->db, sql, NULL, NULL, NULL);
	if (sqlite3_changes(d->db) != 0)
		return;
	/* no decision is left to drop: it is the rows of reports */
	snprintf(sql, sizeof sql, "DELETE FROM report WHERE rowid IN (SELECT "
	    "rowid FROM report ORDER BY time LIMIT %d)", TRIM_COUNT);
	sqlite3_exec(d->db, sql, NULL, NULL, NULL);
}

static void
write_batch(struct decisions *d, struct waiting *batch)
{
	sqlite3_exec(d->db, "BEGIN", NULL, NULL, NULL);
	for (struct waiting *w = batch; w != NULL; w = w->next) {
		write_one(d, &w->entry);
		if (d->until_trim-- == 0) {
			trim(d);
			d->until_trim = TRIM_EVERY;
		}
	}
	if (sqlite3_exec(d->db, "COMMIT", NULL, NULL, NULL) != SQLITE_OK) {
		sqlite3_exec(d->db, "ROLLBACK", NULL, NULL, NULL);
		atomic_fetch_add(&d->dropped, 1);
	}
}

static void
free_list(struct waiting *w)
{
	while (w != NULL) {
		struct waiting *next = w->next;
		free(w);
		w = next;
	}
}

/* With the lock held. */
static void
gather(struct decisions *d)
{
	int64_t until_us = d->batch_us + GATHER_US;
	while (!d->stop && !d->hurry && d->count < GATHER_COUNT &&
	    clock_mono_us() < until_us)
		if (!thread_wait(&d->changed, &d->lock, until_us))
			break;
	d->batch_us = clock_mono_us();
}

/* What is being written stays findable beside what waits. */
static void *
run(void *arg)
{
	struct decisions *d = arg;
	pthread_mutex_lock(&d->lock);
	while (!d->stop || d->pending != NULL) {
		if (d->pending == NULL) {
			pthread_cond_wait(&d->changed, &d->lock);
			continue;
		}
		gather(d);
		uint64_t put = d->put;
		d->writing = d->pending;
		d->pending = NULL;
		d->tail = &d->pending;
		d->count = 0;
		pthread_mutex_unlock(&d->lock);
		write_batch(d, d->writing);
		pthread_mutex_lock(&d->lock);
		free_list(d->writing);
		d->writing = NULL;
		d->done = put;
		d->hurry = false;
		pthread_cond_broadcast(&d->written);
	}
	pthread_mutex_unlock(&d->lock);
	return NULL;
}

/* --- life ------------------------------------------------------------------------ */

static void
free_all(struct decisions *d)
{
	sqlite3_finalize(d->insert);
	sqlite3_finalize(d->row);
	sqlite3_close(d->db);
	pthread_mutex_destroy(&d->lock);
	pthread_cond_destroy(&d->changed);
	pthread_cond_destroy(&d->written);
	free(d);
}

enum res
decisions_open(const struct decisions_options *o, struct err *err,
    struct decisions **out)
{
	struct decisions *d = calloc(1, sizeof *d + strlen(o->path) + 1);
	if (d == NULL)
		return RES_NOMEM;
	d->options = *o;
	memcpy(d->path, o->path, strlen(o->path) + 1);
	d->tail = &d->pending;
	pthread_mutex_init(&d->lock, NULL);
	thread_cond_init(&d->changed);
	pthread_cond_init(&d->written, NULL);
	mode_t old = umask(0027);
	enum res r = open_writer(d);
	if (r == RES_CORRUPT) {
		set_aside(d->path);
		r = open_writer(d);
	}
	umask(old);
	if (r == RES_OK)
		r = thread_start(&d->thread, run, d);
	if (r != RES_OK) {
		err_set(err, "%s: cannot be opened: %s", d->path, res_text(r));
		free_all(d);
		return r;
	}
	*out = d;
	return RES_OK;
}

void
decisions_close(struct decisions **dp)
{
	struct decisions *d = *dp;
	if (d == NULL)
		return;
	*dp = NULL;
	pthread_mutex_lock(&d->lock);
	d->stop = true;
	pthread_cond_broadcast(&d->changed);
	pthread_mutex_unlock(&d->lock);
	pthread_join(d->thread, NULL);
	free_all(d);
}

/* --- putting and getting ------------------------------------------------------------ */

static struct str
copy_to(char **at, struct str s)
{
	struct str copy = str_of(*at, s.len);
	if (s.len != 0)
		memcpy(*at, s.ptr, s.len);
	*at += s.len;
	return copy;
}

void
decisions_put(struct decisions *d, const struct decision_entry *e)
{
	size_t len = e->id.len + e->queue_id.len + e->trace.len +
	    e->evidence.len;
	for (size_t i = 0; i < e->row_count; i++)
		len += e->rows[i].domain.len + e->rows[i].row.len;
	struct waiting *w = malloc(sizeof *w + len);
	if (w == NULL) {
		atomic_fetch_add(&d->dropped, 1);
		return;
	}
	char *at = (char *)(w + 1);
	w->next = NULL;
	w->entry = *e;
	w->entry.id = copy_to(&at, e->id);
	w->entry.queue_id = copy_to(&at, e->queue_id);
	w->entry.trace = copy_to(&at, e->trace);
	w->entry.evidence = copy_to(&at, e->evidence);
	w->entry.rows = w->rows;
	for (size_t i = 0; i < e->row_count; i++) {
		w->rows[i].domain = copy_to(&at, e->rows[i].domain);
		w->rows[i].row = copy_to(&at, e->rows[i].row);
	}
	pthread_mutex_lock(&d->lock);
	bool full = d->count >= DECISIONS_MAX_QUEUE;
	if (!full) {
		*d->tail = w;
		d->tail = &w->next;
		d->count++;
		d->put++;
		if (d->count == 1 || d->count == GATHER_COUNT)
			pthread_cond_signal(&d->changed);
	}
	pthread_mutex_unlock(&d->lock);
	if (full) {
		free(w);
		atomic_fetch_add(&d->dropped, 1);
	}
}

uint64_t
decisions_dropped(const struct decisions *d)
{
	return atomic_load(&d->dropped);
}

void
decisions_flush(struct decisions *d)
{
	pthread_mutex_lock(&d->lock);
	uint64_t wanted = d->put;
	while (d->done < wanted) {
		d->hurry = true;
		pthread_cond_signal(&d->changed);
		pthread_cond_wait(&d->written, &d->lock);
	}
	pthread_mutex_unlock(&d->lock);
}

static void
copy_entry(struct arena *a, const struct decision_entry *e,
    struct decision_entry *out)
{
	*out = (struct decision_entry){
		.id = arena_dup(a, e->id),
		.queue_id = arena_dup(a, e->queue_id),
		.time_us = e->time_us,
		.trace = arena_dup(a, e->trace),
		.evidence = arena_dup(a, e->evidence),
	};
}

static bool
find_waiting(const struct waiting *w, struct arena *a, struct str id,
    struct decision_entry *out)
{
	for (; w != NULL; w = w->next)
		if (str_eq(w->entry.id, id)) {
			copy_entry(a, &w->entry, out);
			return true;
		}
	return false;
}

enum res
decisions_get(struct decisions *d, struct arena *a, struct str id,
    struct decision_entry *out)
{
	struct err err = { "" };
	struct decision_entry *found;
	size_t count;
	pthread_mutex_lock(&d->lock);
	bool here = find_waiting(d->pending, a, id, out) ||
	    find_waiting(d->writing, a, id, out);
	pthread_mutex_unlock(&d->lock);
	if (here)
		return RES_OK;
	enum res r = decisions_find(d->path, a, id, &err, &found, &count);
	if (r == RES_OK && !str_eq(found[0].id, id))
		r = RES_NOTFOUND;
	if (r == RES_OK)
		*out = found[0];
	return r;
}

/* --- reading ---------------------------------------------------------------------------- */

static enum res
open_reader(const char *path, struct err *err, sqlite3 **out)
{
	/* a WAL file is read through its shared memory: no READONLY */
	enum res r = open_file(path, SQLITE_OPEN_READWRITE, out);
	if (r == RES_NOTFOUND)
		err_set(err, "%s: no decisions are kept there: is this the "
		    "state_dir of a running hanaperd, and may you read it?",
		    path);
	else if (r != RES_OK)
		err_set(err, "%s: %s", path, res_text(r));
	return r;
}

#define MAX_FOUND 64

enum res
decisions_find(const char *path, struct arena *a, struct str key,
    struct err *err, struct decision_entry **out, size_t *out_count)
{
	static const char sql[] =
	    "SELECT id, qid, time, trace, evidence FROM decision "
	    "WHERE id = ?1 OR qid = ?1 ORDER BY time LIMIT ?2";
	sqlite3 *db = NULL;
	sqlite3_stmt *s = NULL;
	size_t n = 0;
	struct decision_entry *found =
	    arena_array(a, MAX_FOUND, sizeof *found);
	enum res r = found != NULL ? open_reader(path, err, &db) : RES_NOMEM;
	if (r != RES_OK)
		return r;
	int rc = sqlite3_prepare_v2(db, sql, -1, &s, NULL);
	if (rc == SQLITE_OK) {
		bind(s, 1, key, true);
		sqlite3_bind_int(s, 2, MAX_FOUND);
		while ((rc = sqlite3_step(s)) == SQLITE_ROW) {
			struct decision_entry e = { .id = column(s, 0),
				.queue_id = column(s, 1),
				.time_us = sqlite3_column_int64(s, 2),
				.trace = column(s, 3),
				.evidence = column(s, 4) };
			copy_entry(a, &e, &found[n++]);
		}
	}
	if (rc != SQLITE_DONE) {
		err_set(err, "%s: %s", path, sqlite3_errmsg(db));
		r = RES_IO;
	}
	sqlite3_finalize(s);
	sqlite3_close(db);
	if (r == RES_OK && n == 0)
		r = RES_NOTFOUND;
	*out = found;
	*out_count = n;
	return r;
}

enum res
decisions_rows(const char *path, struct str domain, int64_t from_us,
    int64_t to_us, struct err *err, decisions_row fn, void *context)
{
	static const char sql[] = "SELECT domain, time, row FROM report "
	    "WHERE (?1 = '' OR domain = ?1) AND time >= ?2 AND time < ?3 "
	    "ORDER BY domain, time";
	sqlite3 *db = NULL;
	sqlite3_stmt *s = NULL;
	enum res r = open_reader(path, err, &db);
	if (r != RES_OK)
		return r;
	int rc = sqlite3_prepare_v2(db, sql, -1, &s, NULL);
	if (rc == SQLITE_OK) {
		bind(s, 1, domain, true);
		sqlite3_bind_int64(s, 2, from_us);
		sqlite3_bind_int64(s, 3, to_us);
		while ((rc = sqlite3_step(s)) == SQLITE_ROW)
			fn(context, column(s, 0), sqlite3_column_int64(s, 1),
			    column(s, 2));
	}
	if (rc != SQLITE_DONE) {
		err_set(err, "%s: %s", path, sqlite3_errmsg(db));
		r = RES_IO;
	}
	sqlite3_finalize(s);
	sqlite3_close(db);
	return r;
}
