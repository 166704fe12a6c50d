#include "archive/keeping/known.h"

#include <fcntl.h>

#include "fault_io.h"
#include "store_test.h"

/* Three messages of an import, the third in the last frame. */
static const struct str bodies[] = { STR("first"), STR("second"),
	STR("third") };

struct fixture {
	char path[PATH_MAX], segment[PATH_MAX];
	uint64_t last, end; /* where the last frame begins and ends */
};

static int
setup(void **state)
{
	struct fixture *f = calloc(1, sizeof *f);
	struct store *s;
	struct err err = { "" };
	assert_non_null(f);
	scratch_make(f->path);
	const struct store_options o = { .path = f->path,
		.clock = { TEST_TIME } };
	assert_ok(store_open(&o, &err, &s));
	for (size_t i = 0; i < 3; i++) {
		uint64_t id;
		assert_ok(test_submit(
		    s, "import", TEST_TIME, STR("meta"), bodies[i], &id));
	}
	store_close(&s);

	struct arena *a = arena_new(0);
	struct shard_entry *entries;
	struct segment_reader *r;
	struct segment_frame fr;
	size_t count;
	assert_ok(store_dir_shards(f->path, NULL, a, NULL, &entries, &count));
	assert_int_equal(count, 1);
	assert_ok(io_path(f->segment, "%s/segment", entries[0].dir));
	assert_ok(segment_reader_open(entries[0].dir, NULL, NULL, &r));
	f->end = SHARD_HEADER_BYTES;
	while (segment_reader_at(r, f->end, &fr) == RES_OK) {
		f->last = f->end;
		f->end = segment_frame_end(&fr);
	}
	segment_reader_close(&r);
	arena_free(&a);
	*state = f;
	return 0;
}

static int
teardown(void **state)
{
	struct fixture *f = *state;
	scratch_remove(f->path);
	free(f);
	return 0;
}

static void
is_known(const struct fixture *f, bool first, bool second, bool third)
{
	const bool want[] = { first, second, third };
	struct known *k;
	struct err err = { "" };
	assert_ok(known_new(f->path, NULL, &err, &k));
	for (size_t i = 0; i < 3; i++) {
		uint8_t hash[32];
		assert_ok(digest_sha256(bodies[i].ptr, bodies[i].len, hash));
		assert_int_equal(known_has(k, hash), want[i]);
	}
	known_free(&k);
}

static void
flip(const struct fixture *f, uint64_t at)
{
	char c;
	int fd = open(f->segment, O_RDWR);
	assert_true(fd >= 0);
	assert_int_equal(pread(fd, &c, 1, (off_t)at), 1);
	c ^= 0x40;
	assert_int_equal(pwrite(fd, &c, 1, (off_t)at), 1);
	close(fd);
}

static void
whole(void **state)
{
	is_known(*state, true, true, true);
}

/* A killed import leaves a torn last frame, which is cut off later: each of
 * its bytes counts, the header's and the blocks'. */
static void
torn(void **state)
{
	const struct fixture *f = *state;
	for (uint64_t at = f->last; at < f->end; at++) {
		flip(f, at);
		is_known(f, true, true, false);
		flip(f, at);
	}
	for (uint64_t end = f->end - 1; end >= f->last; end--) {
		assert_int_equal(truncate(f->segment, (off_t)end), 0);
		is_known(f, true, true, false);
	}
}

/* Pages of the end that never came to the disk read as zeros. */
static void
zeros(void **state)
{
	const struct fixture *f = *state;
	static const char none[4096];
	int fd = open(f->segment, O_RDWR);
	size_t size = (size_t)(f->end - f->last) - FRAME_HEADER_BYTES;
	assert_true(fd >= 0 && size <= sizeof none);
	assert_int_equal(
	    pwrite(fd, none, size, (off_t)(f->last + FRAME_HEADER_BYTES)),
	    (ssize_t)size);
	close(fd);
	is_known(f, true, true, false);
}

/* Damage in what a later frame calls durable cuts nothing off. */
static void
behind(void **state)
{
	const struct fixture *f = *state;
	flip(f, SHARD_HEADER_BYTES + FRAME_HEADER_BYTES + 20);
	is_known(f, false, true, true);
}

/* Written is not durable: when the sync fails, nothing is called known. */
static void
not_synced(void **state)
{
	const struct fixture *f = *state;
	struct fault_io io;
	struct known *k;
	struct err err = { "" };
	fault_init(&io, 1);
	io.fail_sync = 1;
	assert_int_equal(known_new(f->path, &io.io, &err, &k), RES_IO);
	assert_non_null(strstr(err.text, "cannot be synced"));
	fault_done(&io);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(whole, setup, teardown),
		cmocka_unit_test_setup_teardown(torn, setup, teardown),
		cmocka_unit_test_setup_teardown(zeros, setup, teardown),
		cmocka_unit_test_setup_teardown(behind, setup, teardown),
		cmocka_unit_test_setup_teardown(not_synced, setup, teardown),
	};
	return cmocka_run_group_tests_name("known", tests, NULL, NULL);
}
