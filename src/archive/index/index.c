#include "archive/index/index.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "archive/index/generations.h"
#include "archive/index/index_db.h"
#include "archive/search/query.h"
#include "archive/store/io.h"

static const char insert_message[] =
    "INSERT INTO message(id, time, bytes, position, content, dir, ip, qid,"
    " rcpt_count, rcpts, sender, subject)"
    " VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)";
static const char insert_post[] =
    "INSERT INTO post(rowid, subject, body, filename, sender_field,"
    " to_field, cc_field, sender, rcpt, other, facts)"
    " VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)";
static const char update_state[] =
    "UPDATE state SET position = ?1, frames = ?2, messages = ?3,"
    " deliveries = ?4, min_time = ?5, max_time = ?6";

/* The segment is the record: a lost commit is applied again. */
static const char durable[] = "PRAGMA journal_mode = WAL;"
			      "PRAGMA synchronous = NORMAL;"
			      "PRAGMA wal_autocheckpoint = 4000;"
			      "PRAGMA secure_delete = OFF;"
			      "PRAGMA cache_size = -4000";
/* A new file says that it has a WAL before anything is in it; when the power
 * goes then, it is no index, or an empty one, and is made again. Syncs of it,
 * its journal and its folder would be most of those of a small shard. */
static const char unborn[] = "PRAGMA synchronous = OFF;"
			     "PRAGMA journal_mode = WAL";
/* On errors it is closed, nothing is rolled back. */
static const char temporary[] = "PRAGMA journal_mode = OFF;"
				"PRAGMA cache_size = -4000";

struct index_writer {
	sqlite3 *db;
	sqlite3_stmt *message, *post, *state;
	struct index_position position, pending;
	bool is_temporary;
};

static enum res
prepare(struct index_writer *w, struct err *err)
{
	int rc = sqlite3_prepare_v3(w->db, insert_message, -1,
	    SQLITE_PREPARE_PERSISTENT, &w->message, NULL);
	if (rc == SQLITE_OK)
		rc = sqlite3_prepare_v3(w->db, insert_post, -1,
		    SQLITE_PREPARE_PERSISTENT, &w->post, NULL);
	if (rc == SQLITE_OK)
		rc = sqlite3_prepare_v3(w->db, update_state, -1,
		    SQLITE_PREPARE_PERSISTENT, &w->state, NULL);
	return index_failed(w->db, rc, "prepare", err);
}

static enum res
open_writer(const char *path, const struct shard_header *shard, bool fresh,
    struct err *err, struct index_writer **out)
{
	struct index_writer *w = calloc(1, sizeof *w);
	if (w == NULL)
		return RES_NOMEM;
	w->is_temporary = *path == '\0';
	enum res r = index_connect(path,
	    SQLITE_OPEN_READWRITE | (fresh ? SQLITE_OPEN_CREATE : 0), err,
	    &w->db);
	if (r == RES_OK && fresh && !w->is_temporary)
		(void)chmod(path, ARCHIVE_FILE_MODE);
	if (r == RES_OK && fresh && !w->is_temporary)
		r = index_run(w->db, unborn, err);
	if (r == RES_OK)
		r = index_run(
		    w->db, w->is_temporary ? temporary : durable, err);
	if (r == RES_OK && fresh)
		r = index_create(w->db, shard, err);
	if (r == RES_OK)
		r = index_read_state(w->db, shard, &w->position);
	if (r == RES_OK)
		r = prepare(w, err);
	if (r == RES_OK)
		*out = w;
	else
		index_close(&w, false);
	return r;
}

enum res
index_open(const char *dir, const struct shard_header *shard, struct err *err,
    struct index_writer **out)
{
	char path[PATH_MAX];
	unsigned number;
	enum res r = index_newest(dir, path, sizeof path, &number);
	if (r == RES_NOTFOUND)
		return index_renew(dir, shard, err, out);
	if (r != RES_OK)
		return r;
	return open_writer(path, shard, false, err, out);
}

enum res
index_renew(const char *dir, const struct shard_header *shard,
    struct err *err, struct index_writer **out)
{
	char path[PATH_MAX];
	unsigned number;
	enum res r = generation_next(dir, path, sizeof path, &number);
	if (r == RES_OK)
		r = open_writer(path, shard, true, err, out);
	if (r == RES_OK)
		generation_remove_others(dir, number);
	return r;
}

enum res
index_build_begin(const char *dir, const struct shard_header *shard,
    struct err *err, struct index_writer **out)
{
	char path[PATH_MAX];
	enum res r = io_path(path, "%s/" GENERATION_NEW, dir);
	if (r != RES_OK)
		return r;
	generation_drop(dir, GENERATION_NEW);
	generation_drop(dir, GENERATION_WORK);
	return open_writer(path, shard, true, err, out);
}

/* All of it in the one file. */
static enum res
settle(sqlite3 *db, struct err *err)
{
	int rc = sqlite3_wal_checkpoint_v2(
	    db, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
	enum res r = index_failed(db, rc, "checkpoint", err);
	if (r == RES_OK)
		r = index_run(db, "PRAGMA journal_mode = DELETE", err);
	return r;
}

enum res
index_build_end(struct index_writer **w, const char *dir, struct err *err)
{
	enum res r = settle((*w)->db, err);
	index_close(w, false);
	return r == RES_OK ? generation_install(dir, GENERATION_NEW, err) : r;
}

/* --- building beside --- */

bool
index_is_building(const char *dir)
{
	return generation_exists(dir, GENERATION_BUILDING);
}

enum res
index_open_building(const char *dir, const struct shard_header *shard,
    struct err *err, struct index_writer **out)
{
	char path[PATH_MAX];
	struct err why = { "" };
	enum res r = io_path(path, "%s/" GENERATION_BUILDING, dir);
	if (r != RES_OK)
		return r;
	if (index_is_building(dir)) {
		r = open_writer(path, shard, false, &why, out);
		if (r == RES_OK || r == RES_NOMEM)
			return r;
		generation_remove(path); /* of another version, damaged */
	}
	return open_writer(path, shard, true, err, out);
}

enum res
index_publish(const char *dir, struct index_writer **w, struct err *err)
{
	enum res r = settle((*w)->db, err);
	index_close(w, false);
	if (r == RES_OK)
		r = generation_install(dir, GENERATION_BUILDING, err);
	return r;
}

enum res
index_open_temporary(const struct shard_header *shard, struct err *err,
    struct index_writer **out)
{
	return open_writer("", shard, true, err, out);
}

void
index_close(struct index_writer **w, bool tidy)
{
	if (*w == NULL)
		return;
	sqlite3_finalize((*w)->message);
	sqlite3_finalize((*w)->post);
	sqlite3_finalize((*w)->state);
	if (tidy && !(*w)->is_temporary) {
		(void)sqlite3_wal_checkpoint_v2((*w)->db, NULL,
		    SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
		(void)sqlite3_exec((*w)->db, "PRAGMA journal_mode = DELETE",
		    NULL, NULL, NULL);
	}
	sqlite3_close((*w)->db);
	free(*w);
	*w = NULL;
}

const struct index_position *
index_position(const struct index_writer *w)
{
	return &w->position;
}

sqlite3 *
index_handle(struct index_writer *w)
{
	return w->db;
}

/* --- adding --- */

enum res
index_begin(struct index_writer *w, struct err *err)
{
	w->pending = w->position;
	return index_run(w->db, "BEGIN IMMEDIATE", err);
}

static void
bind_text(sqlite3_stmt *st, int at, struct str s)
{
	if (s.len == 0)
		sqlite3_bind_null(st, at);
	else
		sqlite3_bind_text(
		    st, at, s.ptr, (int)s.len, SQLITE_STATIC);
}

/* At most `max` bytes, not cutting a character. */
static struct str
cut(struct str s, size_t max)
{
	if (s.len <= max)
		return s;
	while (max > 0 && ((unsigned char)s.ptr[max] & 0xc0) == 0x80)
		max--;
	return str_sub(s, 0, max);
}

/* The first lines of `rcpts`. */
static struct str
first_rcpts(struct str rcpts)
{
	size_t end = 0;
	for (size_t i = 0; i < INDEX_MAX_ROW_RCPTS && end < rcpts.len; i++) {
		size_t n = str_chr(str_skip(rcpts, end), '\n');
		size_t next = n == SIZE_MAX ? rcpts.len : end + n + 1;
		if (i > 0 && next > INDEX_MAX_ROW_RCPTS * INDEX_MAX_ROW_TEXT)
			break;
		end = next;
	}
	return cut(str_trim(str_sub(rcpts, 0, end)),
	    INDEX_MAX_ROW_RCPTS * INDEX_MAX_ROW_TEXT);
}

static int
add_row(struct index_writer *w, const struct entry *e)
{
	sqlite3_stmt *st = w->message;
	const struct text_doc *d = e->doc;
	sqlite3_bind_int64(st, 1, (sqlite3_int64)e->number);
	sqlite3_bind_int64(st, 2, e->time_us);
	sqlite3_bind_int64(st, 3, (sqlite3_int64)e->bytes);
	sqlite3_bind_int64(st, 4, (sqlite3_int64)e->offset);
	if (e->content == e->number)
		sqlite3_bind_null(st, 5);
	else
		sqlite3_bind_int64(st, 5, (sqlite3_int64)e->content);
	if (str_eq(e->direction, STR("in")))
		sqlite3_bind_int(st, 6, 0);
	else if (str_eq(e->direction, STR("out")))
		sqlite3_bind_int(st, 6, 1);
	else
		bind_text(st, 6, cut(e->direction, INDEX_MAX_ROW_TEXT));
	if (e->ip.family == IP_NONE)
		sqlite3_bind_null(st, 7);
	else
		sqlite3_bind_blob(st, 7, e->ip.bytes,
		    e->ip.family == IP_V4 ? 4 : 16, SQLITE_STATIC);
	bind_text(st, 8, cut(e->queue_id, INDEX_MAX_ROW_TEXT));
	sqlite3_bind_int64(st, 9, (sqlite3_int64)e->rcpt_count);
	bind_text(st, 10, first_rcpts(e->rcpts));
	bind_text(st, 11, cut(str_trim(buf_str(&d->from)), INDEX_MAX_ROW_TEXT));
	bind_text(st, 12, cut(str_trim(buf_str(&d->subject)),
	    INDEX_MAX_ROW_SUBJECT));
	int rc = sqlite3_step(st);
	sqlite3_reset(st);
	return rc;
}

void
index_bind_post(sqlite3_stmt *st, const struct entry *e)
{
	const struct text_doc *d = e->doc;
	const struct str texts[COLUMNS] = {
		[COLUMN_SUBJECT] = buf_str(&d->subject),
		[COLUMN_BODY] = buf_str(&d->body),
		[COLUMN_FILENAME] = buf_str(&d->filename),
		[COLUMN_FROM] = buf_str(&d->from),
		[COLUMN_TO] = buf_str(&d->to),
		[COLUMN_CC] = buf_str(&d->cc),
		[COLUMN_SENDER] = e->sender,
		[COLUMN_RCPT] = e->rcpts,
		[COLUMN_OTHER] = buf_str(&d->other),
		[COLUMN_FACTS] = e->facts };
	sqlite3_bind_int64(st, 1, (sqlite3_int64)e->number);
	for (int i = 0; i < COLUMNS; i++)
		bind_text(st, i + 2, texts[i]);
}

static int
add_post(struct index_writer *w, const struct entry *e)
{
	index_bind_post(w->post, e);
	int rc = sqlite3_step(w->post);
	sqlite3_reset(w->post);
	return rc;
}

enum res
index_add(struct index_writer *w, const struct entry *e, struct err *err)
{
	int rc = add_row(w, e);
	if (rc == SQLITE_DONE)
		rc = add_post(w, e);
	if (rc != SQLITE_DONE)
		return index_failed(w->db, rc, "insert", err);
	w->pending.messages++;
	w->pending.deliveries += e->content != e->number;
	if (e->time_us < w->pending.min_time_us)
		w->pending.min_time_us = e->time_us;
	if (e->time_us > w->pending.max_time_us)
		w->pending.max_time_us = e->time_us;
	return RES_OK;
}

enum res
index_commit(struct index_writer *w, uint64_t offset, uint64_t frames,
    struct err *err)
{
	struct index_position *p = &w->pending;
	p->offset = offset;
	p->frames = frames;
	sqlite3_bind_int64(w->state, 1, (sqlite3_int64)p->offset);
	sqlite3_bind_int64(w->state, 2, (sqlite3_int64)p->frames);
	sqlite3_bind_int64(w->state, 3, (sqlite3_int64)p->messages);
	sqlite3_bind_int64(w->state, 4, (sqlite3_int64)p->deliveries);
	sqlite3_bind_int64(w->state, 5, p->min_time_us);
	sqlite3_bind_int64(w->state, 6, p->max_time_us);
	int rc = sqlite3_step(w->state);
	sqlite3_reset(w->state);
	enum res r = index_failed(w->db, rc, "state", err);
	if (r == RES_OK)
		r = index_run(w->db, "COMMIT", err);
	if (r == RES_OK)
		w->position = *p;
	return r;
}

void
index_rollback(struct index_writer *w)
{
	(void)sqlite3_exec(w->db, "ROLLBACK", NULL, NULL, NULL);
	w->pending = w->position;
}

enum res
index_optimize(struct index_writer *w, struct err *err)
{
	return index_run(
	    w->db, "INSERT INTO post(post) VALUES('optimize')", err);
}

/* --- damage: a table that only an index with damage has ------------------- */

enum res
index_note_damage(
    struct index_writer *w, uint64_t from, uint64_t to, struct err *err)
{
	sqlite3_stmt *st = NULL;
	enum res r = index_run(w->db,
	    "CREATE TABLE IF NOT EXISTS damage(start INTEGER PRIMARY KEY,"
	    " stop INTEGER)", err);
	if (r != RES_OK)
		return r;
	int rc = sqlite3_prepare_v2(w->db,
	    "INSERT OR REPLACE INTO damage VALUES(?1, ?2)", -1, &st, NULL);
	if (rc == SQLITE_OK) {
		sqlite3_bind_int64(st, 1, (sqlite3_int64)from);
		sqlite3_bind_int64(st, 2, (sqlite3_int64)to);
		rc = sqlite3_step(st);
	}
	r = index_failed(w->db, rc, "damage", err);
	sqlite3_finalize(st);
	return r;
}

