#include "archive/index/index.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "archive/index/tokenizer.h"
#include "archive/search/query.h"
#include "archive/store/io.h"
#include "base/codec.h"

/* Generations are numbered from 1; more are never made. */
#define MAX_GENERATION 1000000
#define BUSY_MS        2000
#define BUILDING       "building.db"

/* `content` is NULL where the frame holds its bytes itself. */
static const char schema[] =
    "CREATE TABLE state(one INTEGER PRIMARY KEY CHECK(one = 1),"
    " schema INTEGER, tokenizer TEXT, shard BLOB, position INTEGER,"
    " frames INTEGER, messages INTEGER, deliveries INTEGER,"
    " min_time INTEGER, max_time INTEGER);"
    "CREATE TABLE message(id INTEGER PRIMARY KEY, time INTEGER,"
    " bytes INTEGER, position INTEGER, content INTEGER, dir,"
    " ip BLOB, qid TEXT, rcpt_count INTEGER, rcpts TEXT, sender TEXT,"
    " subject TEXT);"
    "CREATE INDEX delivery ON message(content) WHERE content IS NOT NULL;"
    "CREATE VIRTUAL TABLE post USING fts5(subject, body, filename,"
    " sender_field, to_field, cc_field, sender, rcpt, other, facts,"
    " content='', tokenize='" TOKENIZER_NAME "');";

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
static const char select_state[] =
    "SELECT position, frames, messages, deliveries, min_time, max_time,"
    " schema, tokenizer, shard FROM state";

#define SHARD_KEY_BYTES 20

struct index_writer {
	sqlite3 *db;
	sqlite3_stmt *message, *post, *state;
	struct index_position position, pending;
	bool in_memory;
};

/* --- results --- */

static enum res
res_of(int rc)
{
	switch (rc & 0xff) {
	case SQLITE_OK:
	case SQLITE_DONE:
	case SQLITE_ROW:
		return RES_OK;
	case SQLITE_NOMEM:
		return RES_NOMEM;
	case SQLITE_CORRUPT:
	case SQLITE_NOTADB:
		return RES_CORRUPT;
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
	case SQLITE_FULL:
	case SQLITE_SCHEMA:
		return RES_AGAIN;
	case SQLITE_PERM:
	case SQLITE_READONLY:
	case SQLITE_CANTOPEN:
	case SQLITE_AUTH:
		return RES_DENIED;
	case SQLITE_INTERRUPT:
		return RES_TIMEOUT;
	default:
		return RES_IO;
	}
}

static enum res
failed(sqlite3 *db, int rc, const char *what, struct err *err)
{
	enum res r = res_of(rc);
	if (r != RES_OK)
		err_set(err, "index: %s: %s", what, sqlite3_errmsg(db));
	return r;
}

static enum res
run(sqlite3 *db, const char *sql, struct err *err)
{
	return failed(db, sqlite3_exec(db, sql, NULL, NULL, NULL), sql, err);
}

/* --- generations --- */

/* "index.g12.db" → 12; 0: another file. */
static unsigned
generation_of(const char *name)
{
	struct str s = str_c(name);
	uint64_t n;
	if (!str_starts(s, STR("index.g")) || !str_ends(s, STR(".db")))
		return 0;
	s = str_sub(s, 7, s.len - 10);
	if (str_to_u64(s, MAX_GENERATION, &n) != RES_OK)
		return 0;
	return (unsigned)n;
}

static enum res
generation_path(const char *dir, unsigned number, char *out, size_t max)
{
	int n = snprintf(out, max, "%s/index.g%u.db", dir, number);
	return n > 0 && (size_t)n < max ? RES_OK : RES_LIMIT;
}

enum res
index_newest(const char *dir, char *out_path, size_t max, unsigned *out_number)
{
	DIR *d = opendir(dir);
	if (d == NULL)
		return errno == ENOENT ? RES_NOTFOUND : io_error(errno);
	unsigned newest = 0;
	for (struct dirent *e = readdir(d); e != NULL; e = readdir(d)) {
		unsigned n = generation_of(e->d_name);
		if (n > newest)
			newest = n;
	}
	closedir(d);
	*out_number = newest;
	if (newest == 0)
		return RES_NOTFOUND;
	return generation_path(dir, newest, out_path, max);
}

static void
remove_generation(const char *path)
{
	static const char *const suffixes[] = { "", "-wal", "-shm", "-journal" };
	char name[PATH_MAX];
	for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++)
		if (io_path(name, "%s%s", path, suffixes[i]) == RES_OK)
			(void)unlink(name);
}

/* --- the state row --- */

static void
shard_key(const struct shard_header *shard, uint8_t out[SHARD_KEY_BYTES])
{
	memcpy(out, shard->store_uuid, 16);
	put_le32(out + 16, shard->number);
}

/* `shard` NULL: whatever shard it is of. */
static enum res
read_state(sqlite3 *db, const struct shard_header *shard,
    struct index_position *out)
{
	sqlite3_stmt *st = NULL;
	int rc = sqlite3_prepare_v2(db, select_state, -1, &st, NULL);
	if (rc != SQLITE_OK)
		return (rc & 0xff) == SQLITE_ERROR ? RES_UNSUPPORTED
						   : res_of(rc);
	rc = sqlite3_step(st);
	enum res r = rc == SQLITE_ROW ? RES_OK :
	    rc == SQLITE_DONE	      ? RES_UNSUPPORTED
				      : res_of(rc);
	if (r == RES_OK) {
		const char *tokenizer = (const char *)sqlite3_column_text(st, 7);
		uint8_t key[SHARD_KEY_BYTES] = { 0 };
		if (shard != NULL)
			shard_key(shard, key);
		bool same = sqlite3_column_int(st, 6) == INDEX_SCHEMA_VERSION &&
		    tokenizer != NULL &&
		    strcmp(tokenizer, TOKENIZER_NAME) == 0 &&
		    (shard == NULL ||
			(sqlite3_column_bytes(st, 8) == SHARD_KEY_BYTES &&
			    memcmp(sqlite3_column_blob(st, 8), key,
				SHARD_KEY_BYTES) == 0));
		if (!same)
			r = RES_UNSUPPORTED;
		else
			*out = (struct index_position){
				.offset = (uint64_t)sqlite3_column_int64(st, 0),
				.frames = (uint64_t)sqlite3_column_int64(st, 1),
				.messages =
				    (uint64_t)sqlite3_column_int64(st, 2),
				.deliveries =
				    (uint64_t)sqlite3_column_int64(st, 3),
				.min_time_us = sqlite3_column_int64(st, 4),
				.max_time_us = sqlite3_column_int64(st, 5),
			};
	}
	sqlite3_finalize(st);
	return r;
}

enum res
index_read_position(sqlite3 *db, struct index_position *out)
{
	return read_state(db, NULL, out);
}

static enum res
create(sqlite3 *db, const struct shard_header *shard, struct err *err)
{
	uint8_t key[SHARD_KEY_BYTES];
	sqlite3_stmt *st = NULL;
	enum res r = run(db, "BEGIN IMMEDIATE", err);
	if (r == RES_OK)
		r = run(db, schema, err);
	if (r != RES_OK)
		return r;
	shard_key(shard, key);
	int rc = sqlite3_prepare_v2(db,
	    "INSERT INTO state VALUES(1, ?1, '" TOKENIZER_NAME
	    "', ?2, ?3, 0, 0, 0, ?4, ?5)",
	    -1, &st, NULL);
	if (rc == SQLITE_OK) {
		sqlite3_bind_int(st, 1, INDEX_SCHEMA_VERSION);
		sqlite3_bind_blob(st, 2, key, sizeof key, SQLITE_STATIC);
		sqlite3_bind_int64(st, 3, SHARD_HEADER_BYTES);
		sqlite3_bind_int64(st, 4, INT64_MAX);
		sqlite3_bind_int64(st, 5, INT64_MIN);
		rc = sqlite3_step(st);
	}
	sqlite3_finalize(st);
	r = failed(db, rc, "create", err);
	return r == RES_OK ? run(db, "COMMIT", err) : r;
}

/* --- opening --- */

static enum res
connect_to(const char *path, int flags, struct err *err, sqlite3 **out)
{
	sqlite3 *db = NULL;
	int rc = sqlite3_open_v2(path, &db, flags | SQLITE_OPEN_NOMUTEX, NULL);
	enum res r = RES_OK;
	if (rc != SQLITE_OK) {
		r = res_of(rc);
		err_set(err, "%s: %s", path,
		    db != NULL ? sqlite3_errmsg(db) : "out of memory");
	} else {
		sqlite3_extended_result_codes(db, 1);
		sqlite3_busy_timeout(db, BUSY_MS);
		r = tokenizer_register(db);
	}
	if (r != RES_OK) {
		sqlite3_close(db);
		return r;
	}
	*out = db;
	return RES_OK;
}

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
	return failed(w->db, rc, "prepare", err);
}

static enum res
open_writer(const char *path, const struct shard_header *shard, bool fresh,
    struct err *err, struct index_writer **out)
{
	struct index_writer *w = calloc(1, sizeof *w);
	if (w == NULL)
		return RES_NOMEM;
	w->in_memory = strcmp(path, ":memory:") == 0;
	enum res r = connect_to(path,
	    SQLITE_OPEN_READWRITE | (fresh ? SQLITE_OPEN_CREATE : 0), err,
	    &w->db);
	if (r == RES_OK && fresh && !w->in_memory)
		(void)chmod(path, ARCHIVE_FILE_MODE);
	/* the segment is the record: a lost commit is applied again */
	if (r == RES_OK && !w->in_memory)
		r = run(w->db, "PRAGMA journal_mode = WAL;"
		    "PRAGMA synchronous = NORMAL;"
		    "PRAGMA wal_autocheckpoint = 4000;"
		    "PRAGMA secure_delete = OFF;"
		    "PRAGMA cache_size = -4000", err);
	if (r == RES_OK && fresh)
		r = create(w->db, shard, err);
	if (r == RES_OK)
		r = read_state(w->db, shard, &w->position);
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
	char path[PATH_MAX], old[PATH_MAX];
	unsigned number;
	enum res r = index_newest(dir, old, sizeof old, &number);
	if (r != RES_OK && r != RES_NOTFOUND)
		return r;
	if (number == MAX_GENERATION)
		return RES_LIMIT;
	enum res made = generation_path(
	    dir, number + 1, path, sizeof path);
	if (made == RES_OK)
		made = open_writer(path, shard, true, err, out);
	if (made == RES_OK && r == RES_OK)
		remove_generation(old);
	/* whoever builds may have read what is not to be found any more */
	if (made == RES_OK && io_path(old, "%s/" BUILDING, dir) == RES_OK)
		remove_generation(old);
	return made;
}

#define BUILD_NAME "index.new.db"

enum res
index_build_begin(const char *dir, const struct shard_header *shard,
    struct err *err, struct index_writer **out)
{
	char path[PATH_MAX];
	enum res r = io_path(path, "%s/" BUILD_NAME, dir);
	if (r != RES_OK)
		return r;
	remove_generation(path);
	return open_writer(path, shard, true, err, out);
}

static enum res
sync_path(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return io_error(errno);
	enum res r = fsync(fd) == 0 ? RES_OK : io_error(errno);
	close(fd);
	return r;
}

enum res
index_build_end(struct index_writer **w, const char *dir, struct err *err)
{
	char from[PATH_MAX], to[PATH_MAX], old[PATH_MAX];
	unsigned number;
	index_close(w, true);
	enum res found = index_newest(dir, old, sizeof old, &number);
	if (found != RES_OK && found != RES_NOTFOUND)
		return found;
	enum res r = number == MAX_GENERATION ? RES_LIMIT : RES_OK;
	if (r == RES_OK)
		r = io_path(from, "%s/" BUILD_NAME, dir);
	if (r == RES_OK)
		r = generation_path(dir, number + 1, to, sizeof to);
	if (r == RES_OK)
		r = sync_path(from);
	if (r == RES_OK && rename(from, to) != 0)
		r = io_error(errno);
	if (r == RES_OK && found == RES_OK)
		remove_generation(old);
	if (r == RES_OK)
		r = sync_path(dir);
	if (r != RES_OK)
		err_set(err, "%s: the new index: %s", dir, res_text(r));
	return r;
}

/* --- building beside --- */

bool
index_is_building(const char *dir)
{
	char path[PATH_MAX];
	struct stat st;
	return io_path(path, "%s/" BUILDING, dir) == RES_OK &&
	    stat(path, &st) == 0;
}

enum res
index_open_building(const char *dir, const struct shard_header *shard,
    struct err *err, struct index_writer **out)
{
	char path[PATH_MAX];
	struct err why = { "" };
	enum res r = io_path(path, "%s/" BUILDING, dir);
	if (r != RES_OK)
		return r;
	if (index_is_building(dir)) {
		r = open_writer(path, shard, false, &why, out);
		if (r == RES_OK || r == RES_NOMEM)
			return r;
		remove_generation(path); /* of another version, damaged */
	}
	return open_writer(path, shard, true, err, out);
}

/* All of it in the one file, on the disk. */
static enum res
settle(sqlite3 *db, struct err *err)
{
	enum res r = run(db, "PRAGMA synchronous = FULL", err);
	int rc = sqlite3_wal_checkpoint_v2(
	    db, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
	if (r == RES_OK)
		r = failed(db, rc, "checkpoint", err);
	if (r == RES_OK)
		r = run(db, "PRAGMA journal_mode = DELETE", err);
	return r;
}

enum res
index_publish(const char *dir, struct index_writer **w, struct err *err)
{
	char from[PATH_MAX], to[PATH_MAX], old[PATH_MAX];
	const struct archive_io *io = &archive_io_system;
	unsigned number;
	enum res there = index_newest(dir, old, sizeof old, &number);
	enum res r = settle((*w)->db, err);
	index_close(w, false);
	if (there != RES_OK && there != RES_NOTFOUND)
		return there;
	if (r == RES_OK)
		r = io_path(from, "%s/" BUILDING, dir);
	if (r == RES_OK)
		r = generation_path(dir, number + 1, to, sizeof to);
	if (r != RES_OK)
		return r;
	if (io->rename(io, from, to) < 0 || io->fsync_dir(io, dir) < 0) {
		r = io_error(errno);
		err_set(err, "%s: %s", to, res_text(r));
		return r;
	}
	if (there == RES_OK)
		remove_generation(old);
	return RES_OK;
}

enum res
index_open_memory(const struct shard_header *shard, struct err *err,
    struct index_writer **out)
{
	return open_writer(":memory:", shard, true, err, out);
}

void
index_close(struct index_writer **w, bool tidy)
{
	if (*w == NULL)
		return;
	sqlite3_finalize((*w)->message);
	sqlite3_finalize((*w)->post);
	sqlite3_finalize((*w)->state);
	if (tidy && !(*w)->in_memory) {
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
	return run(w->db, "BEGIN IMMEDIATE", err);
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

static int
add_post(struct index_writer *w, const struct entry *e)
{
	sqlite3_stmt *st = w->post;
	const struct text_doc *d = e->doc;
	struct str texts[COLUMNS] = { [COLUMN_SUBJECT] = buf_str(&d->subject),
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
	int rc = sqlite3_step(st);
	sqlite3_reset(st);
	return rc;
}

enum res
index_add(struct index_writer *w, const struct entry *e, struct err *err)
{
	int rc = add_row(w, e);
	if (rc == SQLITE_DONE)
		rc = add_post(w, e);
	if (rc != SQLITE_DONE)
		return failed(w->db, rc, "insert", err);
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
	enum res r = failed(w->db, rc, "state", err);
	if (r == RES_OK)
		r = run(w->db, "COMMIT", err);
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
	return run(w->db, "INSERT INTO post(post) VALUES('optimize')", err);
}

/* --- reading --- */

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
    sqlite3 **out)
{
	sqlite3 *db = NULL;
	struct index_position position;
	enum res r = connect_to(path, SQLITE_OPEN_READONLY, err, &db);
	if (r != RES_OK)
		return r;
	r = read_state(db, shard, &position);
	if (r == RES_UNSUPPORTED && is_empty(db)) {
		sqlite3_close(db);
		return RES_NOTFOUND;
	}
	if (r != RES_OK) {
		err_set(err, "%s: %s", path, r == RES_UNSUPPORTED
			? "of another version: it is rebuilt by hanaperd or "
			  "`hanaper archive reindex`"
			: sqlite3_errmsg(db));
		sqlite3_close(db);
		return r;
	}
	*out = db;
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
	r = connect_to(path, SQLITE_OPEN_READWRITE, err, &db);
	if (r == RES_OK)
		r = run(db, "PRAGMA wal_checkpoint(TRUNCATE);"
		    "PRAGMA journal_mode = DELETE", err);
	sqlite3_close(db);
	close(lock);
	return r;
}

enum res
index_open_read(const char *dir, const struct shard_header *shard,
    struct err *err, sqlite3 **out)
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

/* --- damage: a table that only an index with damage has ------------------- */

enum res
index_note_damage(
    struct index_writer *w, uint64_t from, uint64_t to, struct err *err)
{
	sqlite3_stmt *st = NULL;
	enum res r = run(w->db,
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
	r = failed(w->db, rc, "damage", err);
	sqlite3_finalize(st);
	return r;
}

uint64_t
index_read_damage(sqlite3 *db, uint64_t *out_from, uint64_t *out_to)
{
	sqlite3_stmt *st = NULL;
	uint64_t count = 0;
	if (sqlite3_prepare_v2(db,
		"SELECT count(*) OVER (), start, stop FROM damage"
		" ORDER BY start LIMIT 1", -1, &st, NULL) == SQLITE_OK &&
	    sqlite3_step(st) == SQLITE_ROW) {
		count = (uint64_t)sqlite3_column_int64(st, 0);
		*out_from = (uint64_t)sqlite3_column_int64(st, 1);
		*out_to = (uint64_t)sqlite3_column_int64(st, 2);
	}
	sqlite3_finalize(st);
	return count;
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
		r = connect_to(path, SQLITE_OPEN_READWRITE, NULL, &db);
	if (r == RES_OK)
		r = read_state(db, NULL, out);
	sqlite3_close(db);
	return r == RES_OK || r == RES_NOMEM ? r : RES_NOTFOUND;
}
