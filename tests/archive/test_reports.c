/* The state of sent reports: kept, tried again, dead addresses; and gzip. */
#include "archive/state/reports.h"

#include <stdio.h>
#include <unistd.h>

#include "archive/state/gzip.h"
#include "hn_test.h"

#define NOW 1700000000
#define DAY 86400

static char dir[64], path[128];

static int
setup(void **state)
{
	strcpy(dir, "/tmp/hanaper-reports.XXXXXX");
	if (mkdtemp(dir) == NULL)
		return -1;
	snprintf(path, sizeof path, "%s/" REPORTS_FILE, dir);
	(void)state;
	return 0;
}

static int
teardown(void **state)
{
	static const char *const ends[] = { "", ".lock", "-journal" };
	char name[160];
	for (size_t i = 0; i < 3; i++) {
		snprintf(name, sizeof name, "%s%s", path, ends[i]);
		(void)unlink(name);
	}
	(void)state;
	return rmdir(dir);
}

static struct reports *
open_it(void)
{
	struct reports *r = NULL;
	struct err err = { "" };
	if (reports_open(path, false, &err, &r) != RES_OK)
		fail_msg("%s", err.text);
	return r;
}

static void
put(struct reports *r, const char *address, const char *token, int64_t day)
{
	struct report_mail m = { .domain = STR("example.com"),
		.address = str_c(address), .day = day,
		.state = REPORT_SENT, .tries = 1 };
	snprintf(m.token, sizeof m.token, "%s", token);
	assert_ok(reports_put(r, &m, NOW));
}

static void
a_mail_is_remembered(void **state)
{
	struct reports *r = open_it();
	struct report_mail m = { .domain = STR("example.com"),
		.address = STR("a@example.com"), .day = 19000 };
	assert_ok(reports_get(r, &m));
	assert_int_equal(m.state, REPORT_DUE);
	assert_int_equal(m.tries, 0);
	assert_string_equal(m.token, "");
	m.tries = 2;
	m.next_s = NOW + 5;
	strcpy(m.token, "t1");
	assert_ok(reports_put(r, &m, NOW));
	reports_close(&r);
	r = open_it();
	struct report_mail again = { .domain = m.domain,
		.address = m.address, .day = m.day };
	assert_ok(reports_get(r, &again));
	assert_int_equal(again.state, REPORT_DUE);
	assert_int_equal(again.tries, 2);
	assert_int_equal(again.next_s, NOW + 5);
	assert_string_equal(again.token, "t1");
	again.day++;
	assert_ok(reports_get(r, &again));
	assert_int_equal(again.tries, 0);
	/* long ago is forgotten */
	assert_ok(reports_trim(r, NOW + REPORTS_KEEP_S));
	again.day = m.day;
	assert_ok(reports_get(r, &again));
	assert_int_equal(again.tries, 2);
	assert_ok(reports_trim(r, NOW + REPORTS_KEEP_S + 1));
	assert_ok(reports_get(r, &again));
	assert_int_equal(again.tries, 0);
	reports_close(&r);
	(void)state;
}

static void
one_at_a_time(void **state)
{
	struct err err = { "" };
	struct reports *none = NULL, *reader = NULL;
	assert_int_equal(
	    reports_open(path, true, &err, &reader), RES_NOTFOUND);
	struct reports *r = open_it();
	assert_int_equal(reports_open(path, false, &err, &none), RES_AGAIN);
	assert_non_null(strstr(err.text, "being sent already"));
	/* looking is allowed */
	assert_ok(reports_open(path, true, &err, &reader));
	reports_close(&reader);
	reports_close(&r);
	r = open_it();
	reports_close(&r);
	(void)state;
}

static void
a_file_of_another_kind_is_refused(void **state)
{
	struct err err = { "" };
	struct reports *r = NULL;
	FILE *f = fopen(path, "w");
	assert_non_null(f);
	fputs("this is no database, only a text that is long enough\n", f);
	fclose(f);
	assert_int_not_equal(reports_open(path, false, &err, &r), RES_OK);
	assert_null(r);
	assert_non_null(strstr(err.text, path));
	(void)state;
}

static void
addresses_that_bounce_get_a_rest(void **state)
{
	struct reports *r = open_it();
	struct str a = STR("a@example.com");
	char token[8];
	int64_t until, now = NOW;
	for (int i = 0; i < 10; i++) {
		snprintf(token, sizeof token, "t%d", i);
		put(r, "a@example.com", token, 19000 + i);
	}
	put(r, "b@example.com", "other", 19000);
	assert_int_equal(reports_bounced(r, STR("no"), now), RES_NOTFOUND);
	assert_int_equal(reports_bounced(r, STR_EMPTY, now), RES_NOTFOUND);
	/* once may be a warning; and the same mail counts once */
	assert_ok(reports_bounced(r, STR("t0"), now));
	assert_int_equal(reports_bounced(r, STR("t0"), now), RES_NOTFOUND);
	assert_ok(reports_dead_until(r, a, &until));
	assert_true(until <= now);
	/* 2, 4, 8 … 64 days, then no more */
	for (int i = 1; i < 9; i++) {
		int64_t days = i < 6 ? (int64_t)1 << i : 64;
		snprintf(token, sizeof token, "t%d", i);
		assert_ok(reports_bounced(r, str_c(token), now));
		assert_ok(reports_dead_until(r, a, &until));
		assert_int_equal(until, now + days * DAY);
		now = until + 4 * DAY;
	}
	/* well for longer: it begins anew */
	assert_ok(reports_bounced(r, STR("t9"), now + 1));
	assert_ok(reports_dead_until(r, a, &until));
	assert_true(until <= now + 1);
	assert_ok(reports_dead_until(r, STR("b@example.com"), &until));
	assert_int_equal(until, 0);
	reports_close(&r);
	(void)state;
}

static void
waiting_grows(void **state)
{
	assert_int_equal(reports_next_s(1, 0), 900);
	assert_int_equal(reports_next_s(2, 0), 1800);
	assert_int_equal(reports_next_s(5, 0), 14400);
	assert_int_equal(reports_next_s(6, 0), 21600);
	assert_int_equal(reports_next_s(REPORTS_MAX_TRIES, 7), 21607);
	(void)state;
}

/* That it can be read back is tested with another program (cli/report.py). */
static void
gzip_is_bounded_and_always_the_same(void **state)
{
	struct buf in, one, two;
	buf_init(&in, 1 << 20);
	for (unsigned i = 0; i < 30000; i++)
		buf_addf(&in, "%u ", i * 2654435761u);
	buf_init(&one, 1 << 20);
	buf_init(&two, 1 << 20);
	assert_ok(gzip_compress(buf_str(&in), &one));
	assert_ok(gzip_compress(buf_str(&in), &two));
	assert_true(str_eq(buf_str(&one), buf_str(&two)));
	assert_memory_equal(one.ptr, "\x1f\x8b\x08\0\0\0\0\0", 8);
	assert_true(one.len < in.len / 2 + 4096);
	buf_done(&two);
	buf_init(&two, one.len);
	assert_ok(gzip_compress(buf_str(&in), &two));
	buf_done(&two);
	buf_init(&two, one.len - 1);
	assert_int_equal(gzip_compress(buf_str(&in), &two), RES_LIMIT);
	buf_done(&two);
	buf_init(&two, 100);
	assert_ok(gzip_compress(STR_EMPTY, &two));
	assert_int_equal(two.len, 20);
	buf_done(&in);
	buf_done(&one);
	buf_done(&two);
	(void)state;
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
		    a_mail_is_remembered, setup, teardown),
		cmocka_unit_test_setup_teardown(
		    one_at_a_time, setup, teardown),
		cmocka_unit_test_setup_teardown(
		    a_file_of_another_kind_is_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(
		    addresses_that_bounce_get_a_rest, setup, teardown),
		cmocka_unit_test(waiting_grows),
		cmocka_unit_test(gzip_is_bounded_and_always_the_same),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
