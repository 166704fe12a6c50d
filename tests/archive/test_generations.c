#include "archive/index/generations.h"

#include "archive_test.h"

static char dir[PATH_MAX];

static void
put(const char *name)
{
	char path[PATH_MAX];
	assert_ok(io_path(path, "%s/%s", dir, name));
	test_write_file(path, str_c(name));
}

static bool
there(const char *name)
{
	char path[PATH_MAX];
	assert_ok(io_path(path, "%s/%s", dir, name));
	return access(path, F_OK) == 0;
}

static int
set_up(void **state)
{
	(void)state;
	scratch_make(dir);
	return 0;
}

static int
tear_down(void **state)
{
	(void)state;
	scratch_remove(dir);
	return 0;
}

static void
assert_newest(unsigned want)
{
	char path[PATH_MAX], expected[PATH_MAX];
	unsigned number = 77;
	enum res r = index_newest(dir, path, sizeof path, &number);
	assert_int_equal(r, want == 0 ? RES_NOTFOUND : RES_OK);
	assert_int_equal(number, want);
	if (want == 0)
		return;
	assert_ok(io_path(expected, "%s/index.g%u.db", dir, want));
	assert_string_equal(path, expected);
}

static void
test_newest(void **state)
{
	static const char *const others[] = { "index.g.db", "index.g3.dbx",
		"index.gx.db", "index.g12.db-wal", "index.g-1.db", "index.db",
		"Index.g4.db", "index.g99999999999.db", GENERATION_BUILDING,
		GENERATION_NEW, GENERATION_WORK, "segment" };
	(void)state;
	char path[PATH_MAX];
	unsigned number;
	assert_newest(0);
	for (size_t i = 0; i < sizeof others / sizeof *others; i++)
		put(others[i]);
	assert_newest(0);
	put("index.g1.db");
	assert_newest(1);
	put("index.g10.db");
	put("index.g9.db");
	assert_newest(10);
	assert_ok(generation_next(dir, path, sizeof path, &number));
	assert_int_equal(number, 11);
	assert_int_equal(index_newest(dir, path, 4, &number), RES_LIMIT);
	put("index.g1000000.db");
	assert_int_equal(
	    generation_next(dir, path, sizeof path, &number), RES_LIMIT);
}

static void
test_no_folder(void **state)
{
	(void)state;
	char path[PATH_MAX], missing[PATH_MAX];
	unsigned number = 77;
	struct err err = { "" };
	assert_ok(io_path(missing, "%s/none", dir));
	assert_int_equal(
	    index_newest(missing, path, sizeof path, &number), RES_NOTFOUND);
	assert_int_equal(number, 0);
	assert_true(generation_install(missing, GENERATION_NEW, &err) !=
	    RES_OK);
	assert_false(generation_exists(missing, GENERATION_NEW));
	generation_drop(missing, GENERATION_NEW);
	generation_remove_others(missing, 3);
}

/* Whatever was there before, also what several crashes left. */
static void
test_install(void **state)
{
	static const char *const gone[] = { "index.g1.db", "index.g2.db",
		"index.g2.db-wal", "index.g2.db-shm", "index.g4.db-journal",
		"index.g4.db", GENERATION_BUILDING, GENERATION_BUILDING "-wal",
		GENERATION_NEW, GENERATION_WORK };
	(void)state;
	char path[PATH_MAX];
	struct err err = { "" };
	struct arena *a = arena_new(0);
	for (size_t i = 0; i < sizeof gone / sizeof *gone; i++)
		put(gone[i]);
	put("segment");
	put("LOCK");
	assert_ok(generation_install(dir, GENERATION_NEW, &err));
	for (size_t i = 0; i < sizeof gone / sizeof *gone; i++)
		if (there(gone[i]))
			fail_msg("%s", gone[i]);
	assert_newest(5);
	assert_ok(io_path(path, "%s/index.g5.db", dir));
	assert_str(test_read_file(a, path), GENERATION_NEW);
	assert_true(there("segment"));
	assert_true(there("LOCK"));
	/* one that is not there takes nobody's place */
	assert_true(generation_install(dir, GENERATION_NEW, &err) != RES_OK);
	assert_true(err.text[0] != '\0');
	assert_newest(5);
	arena_free(&a);
}

/* Newer ones are not touched: nobody asked for that. */
static void
test_others(void **state)
{
	(void)state;
	put("index.g3.db");
	put("index.g4.db");
	put("index.g5.db");
	generation_remove_others(dir, 4);
	assert_false(there("index.g3.db"));
	assert_true(there("index.g4.db"));
	assert_true(there("index.g5.db"));
}

#define WITH_FOLDER(test)                                                      \
	cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_FOLDER(test_newest),
		WITH_FOLDER(test_no_folder),
		WITH_FOLDER(test_install),
		WITH_FOLDER(test_others),
	};
	return cmocka_run_group_tests_name(
	    "archive/generations", tests, NULL, NULL);
}
