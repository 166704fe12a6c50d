#include "archive/index/forget.h"

#include <sys/stat.h>

#include "archive/index/index_db.h"
#include "archive/index/rebuild.h"
#include "archive/store/io.h"

/* META and texts of one message. */
#define FRAME_ARENA ((size_t)32 << 20)

static const char delete_post[] =
    "INSERT INTO post(post, rowid, subject, body, filename, sender_field,"
    " to_field, cc_field, sender, rcpt, other, facts)"
    " VALUES('delete', ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)";
static const char delete_message[] = "DELETE FROM message WHERE id = ?1";
/* As if those that are left had been added one by one. */
static const char count_again[] =
    "UPDATE state SET"
    " messages = (SELECT count(*) FROM message),"
    " deliveries = (SELECT count(*) FROM message"
    "  WHERE content IS NOT NULL),"
    " min_time = coalesce((SELECT min(time) FROM message), min_time),"
    " max_time = coalesce((SELECT max(time) FROM message), max_time)";
static const char merge_postings[] =
    "INSERT INTO post(post) VALUES('optimize')";
/* b-trees of postings: ids of their pages begin with the tree's number, see
 * FTS5's file format; 10 and below are about the table. */
static const char count_trees[] =
    "SELECT count(DISTINCT id >> 37) FROM post_data WHERE id > 10";

/* --- a copy to work on --- */

static enum res
copy_pages(sqlite3 *from, sqlite3 *to, struct err *err)
{
	sqlite3_backup *b = sqlite3_backup_init(to, "main", from, "main");
	if (b == NULL)
		return index_failed(to, sqlite3_errcode(to), "copy", err);
	(void)sqlite3_backup_step(b, -1);
	return index_failed(to, sqlite3_backup_finish(b), "copy", err);
}

/* Nothing of it has to outlive a crash. */
static enum res
open_copy(const char *dir, const struct shard_header *shard, struct err *err,
    sqlite3 **out)
{
	char path[PATH_MAX], newest[PATH_MAX];
	struct index_position position;
	unsigned number;
	sqlite3 *from = NULL, *to = NULL;
	enum res r = index_newest(dir, newest, sizeof newest, &number);
	if (r == RES_OK)
		r = io_path(path, "%s/" GENERATION_WORK, dir);
	/* for writing: a crash may have left its WAL */
	if (r == RES_OK)
		r = index_connect(newest, SQLITE_OPEN_READWRITE, err, &from);
	if (r == RES_OK)
		r = index_connect(
		    path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, err, &to);
	if (r == RES_OK)
		(void)chmod(path, ARCHIVE_FILE_MODE);
	if (r == RES_OK)
		r = index_run(to,
		    "PRAGMA synchronous = OFF;"
		    "PRAGMA journal_mode = OFF;"
		    "PRAGMA secure_delete = OFF;"
		    "PRAGMA cache_size = -4000",
		    err);
	if (r == RES_OK)
		r = copy_pages(from, to, err);
	/* a WAL of the copied one would be taken on */
	if (r == RES_OK)
		r = index_run(to, "PRAGMA journal_mode = OFF", err);
	if (r == RES_OK)
		r = index_read_state(to, shard, &position);
	sqlite3_close(from);
	if (r == RES_OK)
		*out = to;
	else
		sqlite3_close(to);
	return r;
}

/* --- taking out --- */

struct taking {
	sqlite3 *db;
	sqlite3_stmt *post, *message;
	struct segment_reader *reader;
	struct entry_builder *builder;
};

static enum res
take_entry(struct taking *t, const struct entry *e, struct err *err)
{
	index_bind_post(t->post, e);
	int rc = sqlite3_step(t->post);
	sqlite3_reset(t->post);
	if (rc != SQLITE_DONE)
		return index_failed(t->db, rc, "delete", err);
	sqlite3_bind_int64(t->message, 1, (sqlite3_int64)e->number);
	rc = sqlite3_step(t->message);
	sqlite3_reset(t->message);
	if (rc != SQLITE_DONE)
		return index_failed(t->db, rc, "delete", err);
	return sqlite3_changes(t->db) == 1 ? RES_OK : RES_UNSUPPORTED;
}

static enum res
take_frame(struct taking *t, uint64_t number, struct err *err)
{
	struct segment_frame f;
	struct entry e;
	struct arena *a = arena_new(FRAME_ARENA);
	if (a == NULL)
		return RES_NOMEM;
	enum res r = segment_reader_find(t->reader, number, &f);
	if (r == RES_OK)
		r = entry_build(t->builder, a, t->reader, &f, err, &e);
	/* what can be read of it now may not be what could be read then */
	if (r == RES_NOTFOUND || r == RES_CORRUPT || (r == RES_OK && e.damaged))
		r = RES_UNSUPPORTED;
	if (r == RES_OK)
		r = take_entry(t, &e, err);
	arena_free(&a);
	return r;
}

static enum res
take_out(struct taking *t, const uint64_t *numbers, size_t count,
    const atomic_bool *stop, struct err *err)
{
	enum res r = index_run(t->db, "BEGIN", err);
	int rc = SQLITE_OK;
	if (r == RES_OK)
		rc = sqlite3_prepare_v2(t->db, delete_post, -1, &t->post, NULL);
	if (r == RES_OK && rc == SQLITE_OK)
		rc = sqlite3_prepare_v2(
		    t->db, delete_message, -1, &t->message, NULL);
	if (r == RES_OK)
		r = index_failed(t->db, rc, "prepare", err);
	for (size_t i = 0; r == RES_OK && i < count; i++)
		r = stop != NULL && *stop ? RES_AGAIN
					  : take_frame(t, numbers[i], err);
	sqlite3_finalize(t->post);
	sqlite3_finalize(t->message);
	if (r == RES_OK)
		r = index_run(t->db, count_again, err);
	return r == RES_OK ? index_run(t->db, "COMMIT", err) : r;
}

/* --- what is live, and nothing else --- */

static enum res
ask(sqlite3 *db, const char *sql, int64_t *out, struct err *err)
{
	sqlite3_stmt *st = NULL;
	int rc = sqlite3_prepare_v2(db, sql, -1, &st, NULL);
	if (rc == SQLITE_OK)
		rc = sqlite3_step(st);
	if (rc == SQLITE_ROW)
		*out = sqlite3_column_int64(st, 0);
	enum res r = index_failed(db, rc, "check", err);
	sqlite3_finalize(st);
	return r;
}

/* A deleted posting goes when it is merged with the one it deletes: after
 * this there is one tree, and nothing in it is deleted. */
static enum res
merge(sqlite3 *db, struct err *err)
{
	int64_t trees = 0;
	enum res r = index_run(db, merge_postings, err);
	if (r == RES_OK)
		r = ask(db, count_trees, &trees, err);
	return r == RES_OK && trees > 1 ? RES_UNSUPPORTED : r;
}

/* Free pages and gaps in pages of the copy still hold what was deleted: what
 * is live is written to a file of its own. */
static enum res
write_live(sqlite3 *db, const char *path, struct err *err)
{
	sqlite3_stmt *st = NULL;
	int rc = sqlite3_prepare_v2(db, "VACUUM INTO ?1", -1, &st, NULL);
	if (rc == SQLITE_OK) {
		sqlite3_bind_text(st, 1, path, -1, SQLITE_STATIC);
		rc = sqlite3_step(st);
	}
	enum res r = index_failed(db, rc, "vacuum", err);
	sqlite3_finalize(st);
	if (r == RES_OK)
		(void)chmod(path, ARCHIVE_FILE_MODE);
	return r;
}

static int
is_told_to_stop(void *stop)
{
	return *(const atomic_bool *)stop;
}

/* Any posting of one of these? */
static enum res
check_gone(const char *path, const uint64_t *numbers, size_t count,
    const atomic_bool *stop, struct err *err)
{
	sqlite3 *db = NULL;
	sqlite3_stmt *st = NULL;
	int64_t left = 0;
	enum res r = index_connect(path, SQLITE_OPEN_READWRITE, err, &db);
	if (r == RES_OK)
		r = index_run(db,
		    "CREATE VIRTUAL TABLE temp.posting USING"
		    " fts5vocab(main, post, instance);"
		    "CREATE TEMP TABLE gone(id INTEGER PRIMARY KEY)",
		    err);
	int rc = SQLITE_OK;
	if (r == RES_OK)
		rc = sqlite3_prepare_v2(
		    db, "INSERT OR IGNORE INTO gone VALUES(?1)", -1, &st, NULL);
	for (size_t i = 0; r == RES_OK && rc == SQLITE_OK && i < count; i++) {
		sqlite3_bind_int64(st, 1, (sqlite3_int64)numbers[i]);
		(void)sqlite3_step(st);
		rc = sqlite3_reset(st);
	}
	sqlite3_finalize(st);
	if (r == RES_OK)
		r = index_failed(db, rc, "check", err);
	if (stop != NULL)
		sqlite3_progress_handler(
		    db, 1000, is_told_to_stop, (void *)(uintptr_t)stop);
	if (r == RES_OK)
		r = ask(db,
		    "SELECT EXISTS (SELECT 1 FROM posting"
		    " WHERE doc IN (SELECT id FROM gone))",
		    &left, err);
	sqlite3_close(db);
	return r == RES_OK && left != 0 ? RES_UNSUPPORTED : r;
}

/* --- from outside --- */

void
forget_drop(const char *dir)
{
	generation_drop(dir, GENERATION_WORK);
	generation_drop(dir, GENERATION_NEW);
}

static enum res
make(struct taking *t, const char *dir, const uint64_t *numbers, size_t count,
    const atomic_bool *stop, struct err *err)
{
	char path[PATH_MAX];
	enum res r = io_path(path, "%s/" GENERATION_NEW, dir);
	if (r == RES_OK)
		r = segment_reader_open(dir, NULL, err, &t->reader);
	if (r == RES_OK)
		r = open_copy(
		    dir, segment_reader_shard(t->reader), err, &t->db);
	if (r == RES_OK)
		r = take_out(t, numbers, count, stop, err);
	if (r == RES_OK)
		r = merge(t->db, err);
	if (r == RES_OK && stop != NULL && *stop)
		r = RES_AGAIN;
	if (r == RES_OK)
		r = write_live(t->db, path, err);
	sqlite3_close(t->db);
	segment_reader_close(&t->reader);
	generation_drop(dir, GENERATION_WORK);
	if (r == RES_OK)
		r = check_gone(path, numbers, count, stop, err);
	return r;
}

enum res
forget_prepare(const char *dir, const uint64_t *numbers, size_t count,
    const atomic_bool *stop, struct err *err)
{
	struct taking t = { .builder = entry_builder_new() };
	forget_drop(dir);
	enum res r = t.builder != NULL ? RES_OK : RES_NOMEM;
	/* an interrupted reindex is not to go on without this shard */
	if (r == RES_OK && (index_is_building(dir) || rebuild_is_needed(dir)))
		r = RES_UNSUPPORTED;
	if (r == RES_OK)
		r = make(&t, dir, numbers, count, stop, err);
	if (r != RES_OK)
		forget_drop(dir);
	entry_builder_free(&t.builder);
	return r;
}

enum res
forget_publish(const char *dir, struct err *err)
{
	return generation_install(dir, GENERATION_NEW, err);
}
