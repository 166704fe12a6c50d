/* What reading and writing an index have in common: SQLite's results in our
 * words, connections, the tables. Used inside archive/index alone. */
#ifndef ARCHIVE_INDEX_DB_H
#define ARCHIVE_INDEX_DB_H

#include "archive/index/index.h"

/* Of SQLite's result codes, extended or not. */
HN_CHECK enum res index_res(int rc);
/* The same, with a line that says what failed. */
HN_CHECK enum res index_failed(
    sqlite3 *db, int rc, const char *what, struct err *err);
/* Statements without results. */
HN_CHECK enum res index_run(sqlite3 *db, const char *sql, struct err *err);
/* Open a file, our tokenizer known; `flags` as for sqlite3_open_v2. */
HN_CHECK enum res index_connect(
    const char *path, int flags, struct err *err, sqlite3 **out);
/* The tables of an index, empty. */
HN_CHECK enum res index_create(
    sqlite3 *db, const struct shard_header *shard, struct err *err);
/* RES_UNSUPPORTED: of another version, or not of this shard (NULL: of
 * whatever shard it is). */
HN_CHECK enum res index_read_state(sqlite3 *db,
    const struct shard_header *shard, struct index_position *out);
/* The same, of a connection that is kept. */
HN_CHECK enum res index_view_state(struct index_view *v,
    const struct shard_header *shard, struct index_position *out);
/* Parameters 1 to 11: rowid and texts of table `post`, which are the entry's
 * until the statement is reset. */
void index_bind_post(sqlite3_stmt *st, const struct entry *e);

#endif
