#include "archive/index/index_db.h"

#include <pthread.h>
#include <string.h>

#include "archive/index/tokenizer.h"
#include "base/codec.h"

#define BUSY_MS 2000

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

/* What one transaction of the applier adds is held in memory and written as one
 * b-tree of postings, and eight of these are merged at a time, not four: half
 * of what FTS5 does otherwise is merging. */
static const char settings[] =
    "INSERT INTO post(post, rank) VALUES('hashsize', 4194304);"
    "INSERT INTO post(post, rank) VALUES('automerge', 8);";

static const char select_state[] =
    "SELECT position, frames, messages, deliveries, min_time, max_time,"
    " schema, tokenizer, shard FROM state";

#define SHARD_KEY_BYTES 20

/* --- results --- */

enum res
index_res(int rc)
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

enum res
index_failed(sqlite3 *db, int rc, const char *what, struct err *err)
{
	enum res r = index_res(rc);
	if (r != RES_OK)
		err_set(err, "index: %s: %s", what, sqlite3_errmsg(db));
	return r;
}

enum res
index_run(sqlite3 *db, const char *sql, struct err *err)
{
	int rc = sqlite3_exec(db, sql, NULL, NULL, NULL);
	return index_failed(db, rc, sql, err);
}

/* --- the state row --- */

static void
shard_key(const struct shard_header *shard, uint8_t out[SHARD_KEY_BYTES])
{
	memcpy(out, shard->store_uuid, 16);
	put_le32(out + 16, shard->number);
}

enum res
index_read_state(sqlite3 *db, const struct shard_header *shard,
    struct index_position *out)
{
	struct index_view v = { .db = db };
	enum res r = index_view_state(&v, shard, out);
	index_view_drop(&v);
	return r;
}

enum res
index_view_state(struct index_view *v, const struct shard_header *shard,
    struct index_position *out)
{
	sqlite3_stmt *st;
	int rc = index_view_take(v, select_state, &st);
	if (rc != SQLITE_OK)
		return (rc & 0xff) == SQLITE_ERROR ? RES_UNSUPPORTED
						   : index_res(rc);
	rc = sqlite3_step(st);
	enum res r = rc == SQLITE_ROW ? RES_OK :
	    rc == SQLITE_DONE	      ? RES_UNSUPPORTED
				      : index_res(rc);
	if (r == RES_OK) {
		const char *tokenizer =
		    (const char *)sqlite3_column_text(st, 7);
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
	index_view_give(v, st);
	return r;
}

enum res
index_create(sqlite3 *db, const struct shard_header *shard, struct err *err)
{
	uint8_t key[SHARD_KEY_BYTES];
	sqlite3_stmt *st = NULL;
	enum res r = index_run(db, "BEGIN IMMEDIATE", err);
	if (r == RES_OK)
		r = index_run(db, schema, err);
	if (r == RES_OK)
		r = index_run(db, settings, err);
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
	r = index_failed(db, rc, "create", err);
	return r == RES_OK ? index_run(db, "COMMIT", err) : r;
}

/* --- opening --- */

/* Twenty pages for the cache of each connection at once, touched as they are
 * made, are a third of what it costs to look into one shard. */
static void
no_pages_in_advance(void)
{
	(void)sqlite3_config(SQLITE_CONFIG_PAGECACHE, NULL, 0, 0);
}

enum res
index_connect(const char *path, int flags, struct err *err, sqlite3 **out)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	sqlite3 *db = NULL;
	(void)pthread_once(&once, no_pages_in_advance);
	int rc = sqlite3_open_v2(path, &db, flags | SQLITE_OPEN_NOMUTEX, NULL);
	enum res r = RES_OK;
	if (rc != SQLITE_OK) {
		r = index_res(rc);
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
