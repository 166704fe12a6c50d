/* The decision store: put and found, bounded, damaged files set aside. */
#include "archive/state/decisions.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "hn_test.h"

static char dir[] = "/tmp/hanaper-decisions.XXXXXX";
static char path[128];

static int
setup(void **state)
{
	(void)state;
	strcpy(dir, "/tmp/hanaper-decisions.XXXXXX");
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof path, "%s/decisions.db", dir);
	return 0;
}

static int
teardown(void **state)
{
	static const char *const names[] = { "", "-wal", "-shm", ".bad",
		".bad-wal", ".bad-shm" };
	char name[160];
	(void)state;
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
		snprintf(name, sizeof name, "%s%s", path, names[i]);
		(void)unlink(name);
	}
	return rmdir(dir);
}

static struct decisions *
open_it(int64_t now_us, uint64_t max_bytes)
{
	struct decisions *d = NULL;
	struct err err = { "" };
	struct decisions_options o = { .path = path,
		.keep_us = 1000000,
		.max_bytes = max_bytes,
		.clock = { now_us } };
	if (decisions_open(&o, &err, &d) != RES_OK)
		fail_msg("%s", err.text);
	return d;
}

static void
put(struct decisions *d, const char *id, const char *qid, int64_t time_us)
{
	const struct decision_row rows[] = {
		{ STR("example.org"), STR("row") },
		{ STR("example.net"), STR("second") } };
	struct decision_entry e = { .id = str_c(id),
		.queue_id = str_c(qid),
		.time_us = time_us,
		.trace = STR("trace\0bytes"),
		.evidence = STR("ev"),
		.rows = rows,
		.row_count = 2 };
	decisions_put(d, &e);
}

static size_t
found(const char *key)
{
	struct arena *a = arena_new(0);
	struct err err = { "" };
	struct decision_entry *e;
	size_t count = 0;
	if (decisions_find(path, a, str_c(key), &err, &e, &count) != RES_OK)
		count = 0;
	else
		assert_str(e[0].evidence, "ev");
	arena_free(&a);
	return count;
}

static void
by_id_and_by_queue_id(void **state)
{
	struct decisions *d = open_it(5000000, 1 << 30);
	struct arena *a = arena_new(0);
	struct decision_entry e;
	(void)state;
	put(d, "id1", "Q1", 5000000);
	put(d, "id2", "Q1", 5000001); /* Postfix used the queue id again */
	/* found at once, written or not */
	assert_ok(decisions_get(d, a, STR("id1"), &e));
	assert_int_equal(e.trace.len, 11);
	assert_memory_equal(e.trace.ptr, "trace\0bytes", 11);
	assert_int_equal(
	    decisions_get(d, a, STR("Q1"), &e), RES_NOTFOUND);
	decisions_flush(d);
	assert_ok(decisions_get(d, a, STR("id2"), &e));
	assert_int_equal(found("id1"), 1);
	assert_int_equal(found("Q1"), 2);
	assert_int_equal(found("none"), 0);
	assert_int_equal(found("' OR 1=1 --"), 0);
	decisions_close(&d);
	/* and after the writer is gone */
	assert_int_equal(found("Q1"), 2);
	arena_free(&a);
}

static void
count_row(void *context, struct str domain, int64_t time_us, struct str row)
{
	(void)time_us;
	if (str_eq(domain, STR("example.org")))
		assert_str(row, "row");
	else
		assert_str(row, "second");
	(*(int *)context)++;
}

static void
rows_of_a_day(void **state)
{
	struct decisions *d = open_it(5000000, 1 << 30);
	struct err err = { "" };
	int n = 0;
	(void)state;
	for (int i = 0; i < 5; i++) {
		char id[8];
		snprintf(id, sizeof id, "r%d", i);
		put(d, id, "Q", 5000000 + i);
	}
	decisions_flush(d);
	assert_ok(decisions_rows(path, STR("example.org"), 5000001, 5000004,
	    &err, count_row, &n));
	assert_int_equal(n, 3);
	n = 0;
	assert_ok(decisions_rows(
	    path, STR_EMPTY, 0, INT64_MAX, &err, count_row, &n));
	assert_int_equal(n, 10);
	n = 0;
	assert_ok(decisions_rows(
	    path, STR("other"), 0, INT64_MAX, &err, count_row, &n));
	assert_int_equal(n, 0);
	decisions_close(&d);
}

static void
old_entries_go(void **state)
{
	struct decisions *d = open_it(5000000, 1 << 30);
	(void)state;
	put(d, "old", "Q", 5000000);
	decisions_close(&d);
	d = open_it(9000000, 1 << 30);
	put(d, "new", "Q", 9000000);
	decisions_close(&d);
	assert_int_equal(found("old"), 0);
	assert_int_equal(found("new"), 1);
}

static void
the_file_is_bounded(void **state)
{
	struct decisions *d = open_it(5000000, 200000);
	struct stat st;
	(void)state;
	char id[16];
	for (int i = 0; i < 20000; i++) {
		snprintf(id, sizeof id, "b%d", i);
		put(d, id, "Q", 5000000 + i);
		if (i % 1000 == 0)
			decisions_flush(d);
	}
	decisions_close(&d);
	assert_int_equal(stat(path, &st), 0);
	assert_true(st.st_size < 3000000);
	assert_int_equal(found("b19999"), 1);
	assert_int_equal(found("b0"), 0);
}

static void
a_damaged_file_is_set_aside(void **state)
{
	char bad[160];
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	(void)state;
	assert_true(write(fd, "this is no database, it is a letter......", 40) > 0);
	close(fd);
	struct decisions *d = open_it(5000000, 1 << 30);
	put(d, "x", "Q", 5000000);
	decisions_close(&d);
	assert_int_equal(found("x"), 1);
	snprintf(bad, sizeof bad, "%s.bad", path);
	assert_int_equal(access(bad, F_OK), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
		    by_id_and_by_queue_id, setup, teardown),
		cmocka_unit_test_setup_teardown(rows_of_a_day, setup, teardown),
		cmocka_unit_test_setup_teardown(old_entries_go, setup, teardown),
		cmocka_unit_test_setup_teardown(
		    the_file_is_bounded, setup, teardown),
		cmocka_unit_test_setup_teardown(
		    a_damaged_file_is_set_aside, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
