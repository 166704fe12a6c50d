#include "keys/keystate.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "hn_test.h"

static void
good(void **state)
{
	struct arena *a = arena_new(0);
	struct keystate s;
	assert_ok(keystate_parse(a, STR("# comment\n\n"
	    "k1 active 100\n  k2\tnext   200  \nold retired 0"),
	    "f", NULL, &s));
	assert_int_equal(s.count, 3);
	assert_str(s.lines[0].selector, "k1");
	assert_int_equal(s.lines[0].state, KEY_STATE_ACTIVE);
	assert_int_equal(s.lines[0].since_s, 100);
	assert_str(s.lines[1].selector, "k2");
	assert_int_equal(s.lines[1].state, KEY_STATE_NEXT);
	assert_int_equal(s.lines[2].state, KEY_STATE_RETIRED);
	assert_ptr_equal(keystate_find(&s, STR("k2")), &s.lines[1]);
	assert_null(keystate_find(&s, STR("k")));
	assert_ok(keystate_parse(a, STR_EMPTY, "f", NULL, &s));
	assert_int_equal(s.count, 0);
	arena_free(&a);
}

static void
bad(void **state)
{
	static const struct {
		const char *text, *message;
		enum res want;
	} rows[] = {
		{ "k1\n", "f:1: not SELECTOR", RES_SYNTAX },
		{ "k1 active\n", "f:1: not SELECTOR", RES_SYNTAX },
		{ "\nk1 activ 1\n", "f:2: not SELECTOR", RES_SYNTAX },
		{ "k1 active x\n", "f:1: not SELECTOR", RES_SYNTAX },
		{ "k1 active -1\n", "f:1: not SELECTOR", RES_SYNTAX },
		{ "k1 active 99999999999999999999\n", "f:1: not", RES_SYNTAX },
		{ "k1 active 1 more\n", "f:1: not SELECTOR", RES_SYNTAX },
		{ "k1 next 1 2 3\n", "f:1: not SELECTOR", RES_SYNTAX },
		{ "k1 active 1\nk1 next 2\n", "f:2: selector k1 is named twice",
		    RES_SYNTAX },
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct arena *a = arena_new(0);
		struct keystate s;
		struct err e = { "" };
		assert_int_equal(keystate_parse(a, str_c(rows[i].text), "f",
				     &e, &s), rows[i].want);
		assert_true(str_starts(
		    str_c(e.text), str_c(rows[i].message)));
		arena_free(&a);
	}
}

static void
limit(void **state)
{
	struct arena *a = arena_new(0);
	struct keystate s;
	struct buf b;
	buf_init(&b, 1 << 20);
	for (int i = 0; i < KEYSTATE_MAX_LINES; i++)
		buf_addf(&b, "k%d active 1\n", i);
	assert_ok(keystate_parse(a, buf_str(&b), "f", NULL, &s));
	assert_int_equal(s.count, KEYSTATE_MAX_LINES);
	buf_add_c(&b, "more active 1\n");
	struct err e = { "" };
	assert_int_equal(
	    keystate_parse(a, buf_str(&b), "f", &e, &s), RES_LIMIT);
	assert_non_null(strstr(e.text, "f:257: more than 256"));
	buf_done(&b);
	arena_free(&a);
}

static void
write_and_read(void **state)
{
	char folder[256];
	struct err e = { "" };
	const char *tmp = getenv("TMPDIR");
	snprintf(folder, sizeof folder, "%s/keystateXXXXXX",
	    tmp != NULL ? tmp : "/tmp");
	assert_non_null(mkdtemp(folder));
	int fd = open(folder, O_RDONLY | O_DIRECTORY);
	struct arena *a = arena_new(0);
	struct keystate got;

	assert_ok(keystate_read(a, fd, folder, &e, &got));
	assert_int_equal(got.count, 0);

	struct keystate_line lines[] = {
		{ STR("k1"), KEY_STATE_ACTIVE, 1700000000, 0 },
		{ STR("k2"), KEY_STATE_NEXT, 1700000001, 1700000002 },
	};
	struct keystate s = { 2, lines };
	for (int round = 0; round < 2; round++) {
		assert_ok(keystate_write(fd, folder, &s, &e));
		assert_ok(keystate_read(a, fd, folder, &e, &got));
		assert_int_equal(got.count, 2 - round);
		assert_str(got.lines[0].selector, "k1");
		assert_int_equal(got.lines[0].since_s, 1700000000);
		assert_int_equal(got.lines[0].seen_s, 0);
		if (round == 0)
			assert_int_equal(got.lines[1].seen_s, 1700000002);
		s.count = 1;
	}
	assert_int_equal(faccessat(fd, ".state.new", F_OK, 0), -1);

	assert_int_equal(fchmodat(fd, "state", 0666, 0), 0);
	assert_int_equal(
	    keystate_read(a, fd, folder, &e, &got), RES_DENIED);
	assert_non_null(strstr(e.text, "/state: mode 0666"));
	assert_non_null(strstr(e.text, "run: chmod 0644 /"));

	unlinkat(fd, "state", 0);
	close(fd);
	rmdir(folder);
	err_clear(&e);
	fd = open("/", O_RDONLY | O_DIRECTORY);
	close(fd);
	assert_int_equal(keystate_write(fd, "gone", &s, &e), RES_IO);
	assert_true(str_starts(str_c(e.text), STR("gone/state: cannot write")));
	arena_free(&a);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(good),
		cmocka_unit_test(bad),
		cmocka_unit_test(limit),
		cmocka_unit_test(write_and_read),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
