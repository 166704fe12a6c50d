/* Entries come in the order of their frames, whatever their size, each once,
 * and from wherever reading begins. */
#include "archive/index/ahead.h"

#include "store_test.h"

#define SMALL 100

struct fixture {
	char path[PATH_MAX], dir[PATH_MAX];
	struct ahead *ahead;
	/* of the segment */
	uint64_t offsets[1000];
	size_t count;
	uint64_t end;
};

static int
no_sync(const struct archive_io *io, int fd)
{
	(void)io;
	(void)fd;
	return 0;
}

static struct store *
open_store(const struct fixture *f)
{
	static struct archive_io fast;
	struct store *s;
	struct err err = { "" };
	fast = archive_io_system;
	fast.fdatasync = no_sync;
	const struct store_options o = { .path = f->path,
		.io = &fast,
		.without_index = true,
		.clock = { TEST_TIME } };
	assert_ok(store_open(&o, &err, &s));
	return s;
}

static void
submit(struct store *s, unsigned long long n, size_t bytes)
{
	uint64_t id;
	struct arena *a = arena_new(0);
	char *text = arena_alloc(a, bytes + 1000);
	assert_non_null(text);
	assert_ok(test_submit(s, "mail", TEST_TIME, STR_EMPTY,
	    test_sized_text(text, bytes + 1000, n, bytes), &id));
	arena_free(&a);
}

/* Where the frames stand. */
static void
survey(struct fixture *f)
{
	struct segment_reader *r;
	struct segment_frame frame;
	struct err err = { "" };
	f->count = 0;
	f->end = SHARD_HEADER_BYTES;
	assert_ok(io_path(f->dir, "%s/families/mail/2026-05.1", f->path));
	assert_ok(segment_reader_open(f->dir, NULL, &err, &r));
	while (segment_reader_at(r, f->end, &frame) == RES_OK) {
		f->offsets[f->count++] = f->end;
		f->end = segment_frame_end(&frame);
	}
	segment_reader_close(&r);
	assert_ok(ahead_start(f->dir, &err, &f->ahead));
}

static int
set_up(void **state)
{
	static struct fixture f;
	scratch_make(f.path);
	f.ahead = NULL;
	*state = &f;
	return 0;
}

static int
tear_down(void **state)
{
	struct fixture *f = *state;
	ahead_stop(&f->ahead);
	scratch_remove(f->path);
	return 0;
}

static void
fill(struct fixture *f, size_t count, size_t bytes)
{
	struct store *s = open_store(f);
	for (size_t i = 0; i < count; i++)
		submit(s, i, bytes);
	store_close(&s);
	survey(f);
	assert_int_equal(f->count, count);
}

/* Take and give back frames [from, to), all of them messages. */
static void
take(struct fixture *f, size_t from, size_t to)
{
	for (size_t i = from; i < to; i++) {
		const struct ahead_item *item = ahead_take(f->ahead);
		char subject[32];
		assert_false(item->end);
		assert_ok(item->res);
		assert_int_equal(item->entry.number, i);
		assert_int_equal(item->offset, f->offsets[i]);
		assert_int_equal(item->next_offset,
		    i + 1 < f->count ? f->offsets[i + 1] : f->end);
		assert_int_equal(item->next_frames, i + 1);
		snprintf(subject, sizeof subject, "message %zu", i);
		assert_str(buf_str(&item->entry.doc->subject), subject);
		ahead_give(f->ahead);
	}
}

static void
assert_end(struct fixture *f)
{
	const struct ahead_item *item = ahead_take(f->ahead);
	assert_true(item->end);
	ahead_give(f->ahead);
}

static void
test_in_order(void **state)
{
	struct fixture *f = *state;
	fill(f, SMALL, 300);
	ahead_begin(f->ahead, SHARD_HEADER_BYTES, 0, f->end);
	take(f, 0, SMALL);
	assert_end(f);
}

/* Each is as much as may wait, or more. */
static void
test_large(void **state)
{
	struct fixture *f = *state;
	fill(f, 12, AHEAD_BYTES - 100);
	ahead_begin(f->ahead, SHARD_HEADER_BYTES, 0, f->end);
	take(f, 0, 12);
	assert_end(f);
}

static void
test_mixed(void **state)
{
	struct fixture *f = *state;
	struct store *s = open_store(f);
	for (size_t i = 0; i < 3 * AHEAD_SLOTS; i++)
		submit(s, i, i % 7 == 3 ? AHEAD_KEEP * 5 : 200);
	store_close(&s);
	survey(f);
	ahead_begin(f->ahead, SHARD_HEADER_BYTES, 0, f->end);
	take(f, 0, 3 * AHEAD_SLOTS);
	assert_end(f);
}

/* What is durable grows while it is read; what was read ahead counts. */
static void
test_growing(void **state)
{
	struct fixture *f = *state;
	fill(f, SMALL, 300);
	for (size_t n = 0; n < SMALL; n += 10) {
		uint64_t durable = n + 10 < SMALL ? f->offsets[n + 10] : f->end;
		ahead_begin(f->ahead, f->offsets[n], n, durable);
		take(f, n, n + 10);
		assert_end(f);
	}
}

/* Back, as after a transaction that failed, and away from what waits. */
static void
test_begin_elsewhere(void **state)
{
	struct fixture *f = *state;
	fill(f, SMALL, 300);
	ahead_begin(f->ahead, SHARD_HEADER_BYTES, 0, f->end);
	take(f, 0, 5);
	ahead_begin(f->ahead, f->offsets[2], 2, f->end);
	take(f, 2, 30);
	ahead_begin(f->ahead, f->offsets[90], 90, f->end);
	take(f, 90, SMALL);
	assert_end(f);
	ahead_begin(f->ahead, SHARD_HEADER_BYTES, 0, f->offsets[1]);
	take(f, 0, 1);
	assert_end(f);
}

static void
test_nothing(void **state)
{
	struct fixture *f = *state;
	fill(f, 3, 300);
	ahead_begin(f->ahead, SHARD_HEADER_BYTES, 0, SHARD_HEADER_BYTES);
	assert_end(f);
	ahead_begin(f->ahead, f->end, 3, f->end);
	assert_end(f);
	/* and stopped with work that nobody takes */
	ahead_begin(f->ahead, SHARD_HEADER_BYTES, 0, f->end);
}

static void
test_damage(void **state)
{
	struct fixture *f = *state;
	char path[PATH_MAX];
	fill(f, SMALL, 300);
	assert_ok(io_path(path, "%s/segment", f->dir));
	FILE *stream = fopen(path, "r+b");
	assert_non_null(stream);
	assert_int_equal(fseek(stream, (long)f->offsets[50] + 20, SEEK_SET), 0);
	assert_int_equal(fputc(0xee, stream), 0xee);
	assert_int_equal(fclose(stream), 0);
	ahead_begin(f->ahead, SHARD_HEADER_BYTES, 0, f->end);
	take(f, 0, 50);
	const struct ahead_item *item = ahead_take(f->ahead);
	assert_true(item->skipped);
	assert_int_equal(item->entry.number, 51);
	assert_int_equal(item->offset, f->offsets[51]);
	ahead_give(f->ahead);
	take(f, 52, SMALL);
	assert_end(f);
}

#define WITH_STORE(test)                                                       \
	cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_STORE(test_in_order),
		WITH_STORE(test_large),
		WITH_STORE(test_mixed),
		WITH_STORE(test_growing),
		WITH_STORE(test_begin_elsewhere),
		WITH_STORE(test_nothing),
		WITH_STORE(test_damage),
	};
	return cmocka_run_group_tests_name(
	    "archive/ahead", tests, NULL, NULL);
}
