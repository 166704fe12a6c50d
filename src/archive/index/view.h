/* A connection for reading and its statements, prepared once: SQLite takes
 * longer to prepare a search than to do it. One thread at a time. */
#ifndef ARCHIVE_INDEX_VIEW_H
#define ARCHIVE_INDEX_VIEW_H

#include <sqlite3.h>

#define INDEX_VIEW_IDLE 8 /* statements that are kept */

/* Begins as { .db = db }; no db: there is nothing to take. */
struct index_view {
	sqlite3 *db;
	sqlite3_stmt *idle[INDEX_VIEW_IDLE];
};

/* A statement with nothing bound; SQLite's result code. It goes back with
 * index_view_give, whatever came of it; NULL may go back. */
int index_view_take(
    struct index_view *v, const char *sql, sqlite3_stmt **out);
void index_view_give(struct index_view *v, sqlite3_stmt *st);
/* A statement without results; SQLite's result code. */
int index_view_run(struct index_view *v, const char *sql);
/* Forget the statements; the connection is somebody else's. */
void index_view_drop(struct index_view *v);
/* The same, and close the connection. */
void index_view_close(struct index_view *v);

#endif
