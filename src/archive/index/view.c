#include "archive/index/view.h"

#include <string.h>

int
index_view_take(struct index_view *v, const char *sql, sqlite3_stmt **out)
{
	*out = NULL;
	for (size_t i = 0; i < INDEX_VIEW_IDLE; i++)
		if (v->idle[i] != NULL &&
		    strcmp(sqlite3_sql(v->idle[i]), sql) == 0) {
			*out = v->idle[i];
			v->idle[i] = NULL;
			return SQLITE_OK;
		}
	return sqlite3_prepare_v3(
	    v->db, sql, -1, SQLITE_PREPARE_PERSISTENT, out, NULL);
}

/* With no place free the first ones make room: they were used longest ago, or
 * come again. */
void
index_view_give(struct index_view *v, sqlite3_stmt *st)
{
	size_t at = 0;
	if (st == NULL)
		return;
	(void)sqlite3_reset(st); /* says again what the last step said */
	(void)sqlite3_clear_bindings(st);
	while (at < INDEX_VIEW_IDLE && v->idle[at] != NULL)
		at++;
	if (at == INDEX_VIEW_IDLE) {
		sqlite3_finalize(v->idle[0]);
		memmove(v->idle, v->idle + 1,
		    (INDEX_VIEW_IDLE - 1) * sizeof v->idle[0]);
		at = INDEX_VIEW_IDLE - 1;
	}
	v->idle[at] = st;
}

int
index_view_run(struct index_view *v, const char *sql)
{
	sqlite3_stmt *st;
	int rc = index_view_take(v, sql, &st);
	if (rc == SQLITE_OK)
		rc = sqlite3_step(st);
	index_view_give(v, st);
	return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

void
index_view_drop(struct index_view *v)
{
	for (size_t i = 0; i < INDEX_VIEW_IDLE; i++) {
		sqlite3_finalize(v->idle[i]);
		v->idle[i] = NULL;
	}
}

void
index_view_close(struct index_view *v)
{
	index_view_drop(v);
	sqlite3_close(v->db);
	v->db = NULL;
}
