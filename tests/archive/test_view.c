#include "archive/index/view.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

static int
set_up(void **state)
{
	static struct index_view v;
	v = (struct index_view){ .db = NULL };
	if (sqlite3_open(":memory:", &v.db) != SQLITE_OK)
		return 1;
	*state = &v;
	return index_view_run(&v, "CREATE TABLE t(a INTEGER PRIMARY KEY)") !=
	    SQLITE_OK;
}

static int
tear_down(void **state)
{
	struct index_view *v = *state;
	sqlite3 *db = v->db;
	index_view_drop(v);
	/* what is still prepared would keep it from closing */
	return sqlite3_close(db) != SQLITE_OK;
}

static sqlite3_stmt *
take(struct index_view *v, const char *sql)
{
	sqlite3_stmt *st;
	assert_int_equal(index_view_take(v, sql, &st), SQLITE_OK);
	return st;
}

static void
is_kept_and_comes_back_clean(void **state)
{
	static const char sql[] = "SELECT ?1";
	struct index_view *v = *state;
	sqlite3_stmt *st = take(v, sql);
	sqlite3_bind_int(st, 1, 7);
	assert_int_equal(sqlite3_step(st), SQLITE_ROW);
	index_view_give(v, st);
	assert_ptr_equal(take(v, sql), st);
	assert_int_equal(sqlite3_step(st), SQLITE_ROW);
	assert_int_equal(sqlite3_column_type(st, 0), SQLITE_NULL);
	/* two at once are two */
	sqlite3_stmt *other = take(v, sql);
	assert_ptr_not_equal(other, st);
	index_view_give(v, st);
	index_view_give(v, other);
	index_view_give(v, NULL);
}

/* After an error, too: the transaction goes on. */
static void
is_kept_after_an_error(void **state)
{
	struct index_view *v = *state;
	static const char sql[] = "INSERT INTO t VALUES(1)";
	assert_int_equal(index_view_run(v, "BEGIN"), SQLITE_OK);
	assert_int_equal(index_view_run(v, sql), SQLITE_OK);
	assert_int_not_equal(index_view_run(v, sql), SQLITE_OK);
	assert_int_equal(index_view_run(v, "COMMIT"), SQLITE_OK);
	assert_int_equal(index_view_run(v, "DELETE FROM t"), SQLITE_OK);
	assert_int_equal(index_view_run(v, sql), SQLITE_OK);
	sqlite3_stmt *st;
	assert_int_equal(index_view_take(v, "SELECT nonsense", &st),
	    SQLITE_ERROR);
	assert_null(st);
}

static unsigned
prepared(struct index_view *v)
{
	unsigned count = 0;
	for (sqlite3_stmt *st = sqlite3_next_stmt(v->db, NULL); st != NULL;
	     st = sqlite3_next_stmt(v->db, st))
		count++;
	return count;
}

static void
keeps_the_newest_ones(void **state)
{
	struct index_view *v = *state;
	char sql[32];
	sqlite3_stmt *st = NULL;
	for (int i = 0; i < 3 * INDEX_VIEW_IDLE; i++) {
		snprintf(sql, sizeof sql, "SELECT %d", i);
		st = take(v, sql);
		index_view_give(v, st);
	}
	assert_int_equal(prepared(v), INDEX_VIEW_IDLE);
	assert_ptr_equal(take(v, sql), st);
	index_view_give(v, st);
	index_view_drop(v);
	assert_int_equal(prepared(v), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
		    is_kept_and_comes_back_clean, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
		    is_kept_after_an_error, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
		    keeps_the_newest_ones, set_up, tear_down),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
