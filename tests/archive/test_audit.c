/* The trail while it is being written: an event that is half there is awaited,
 * and is damage only when it stays so. */
#include "archive/keeping/audit.h"

#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include "store_test.h"

#define EVENTS 5

struct fixture {
	char path[PATH_MAX], segment[PATH_MAX];
	/* the last event, and half of the one before */
	uint64_t from, to;
	char bytes[4096];
};

static const struct audit_who who = { 7, { "tester", 6 } };

static void
put(const struct fixture *f, const char *bytes)
{
	int fd = open(f->segment, O_WRONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	ssize_t len = (ssize_t)(f->to - f->from);
	assert_int_equal(
	    pwrite(fd, bytes, (size_t)len, (off_t)f->from), len);
	close(fd);
}

static int
set_up(void **state)
{
	static struct fixture f;
	struct store *s;
	struct err err = { "" };
	char dir[PATH_MAX];
	struct segment_reader *r;
	struct segment_frame frame;
	scratch_make(f.path);
	const struct store_options o = { .path = f.path,
		.clock = { TEST_TIME }, .io = test_fast_io() };
	assert_ok(store_open(&o, &err, &s));
	for (int i = 0; i < EVENTS; i++) {
		uint64_t id;
		const struct audit_event e = { .action = STR("search"),
			.query = STR("some words"), .who = who };
		assert_ok(audit_write(s, &e, false, TEST_TIME + i, &id));
	}
	store_close(&s);
	assert_ok(io_path(dir, "%s/families/audit/2026-05.1", f.path));
	assert_ok(io_path(f.segment, "%s/segment", dir));
	assert_ok(segment_reader_open(dir, NULL, &err, &r));
	assert_ok(segment_reader_find(r, EVENTS - 2, &frame));
	f.from = frame.offset + FRAME_HEADER_BYTES + 8;
	assert_ok(segment_reader_find(r, EVENTS - 1, &frame));
	f.to = segment_frame_end(&frame);
	segment_reader_close(&r);
	assert_true(f.to - f.from <= sizeof f.bytes);
	int fd = open(f.segment, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(pread(fd, f.bytes, f.to - f.from, (off_t)f.from),
	    (ssize_t)(f.to - f.from));
	close(fd);
	*state = &f;
	return 0;
}

static int
tear_down(void **state)
{
	scratch_remove(((struct fixture *)*state)->path);
	return 0;
}

static bool
count(void *context, const struct audit_entry *e)
{
	assert_str(e->event.action, "search");
	++*(unsigned *)context;
	return true;
}

static unsigned
walk(const struct fixture *f, uint64_t *out_unreadable)
{
	struct err err = { "" };
	unsigned seen = 0;
	assert_ok(audit_walk(
	    f->path, 0, 0, false, count, &seen, out_unreadable, &err));
	return seen;
}

static void *
write_later(void *context)
{
	const struct fixture *f = context;
	(void)usleep(30000);
	put(f, f->bytes);
	return NULL;
}

static void
test_whole(void **state)
{
	uint64_t unreadable;
	assert_int_equal(walk(*state, &unreadable), EVENTS);
	assert_int_equal(unreadable, 0);
}

static void
test_being_written(void **state)
{
	static const char nothing[sizeof((struct fixture *)0)->bytes];
	struct fixture *f = *state;
	pthread_t writer;
	uint64_t unreadable;
	put(f, nothing);
	assert_int_equal(pthread_create(&writer, NULL, write_later, f), 0);
	assert_int_equal(walk(f, &unreadable), EVENTS);
	assert_int_equal(unreadable, 0);
	pthread_join(writer, NULL);
}

static void
test_damaged(void **state)
{
	struct fixture *f = *state;
	char wrong[sizeof f->bytes];
	uint64_t unreadable;
	memcpy(wrong, f->bytes, sizeof wrong);
	wrong[20] = (char)(wrong[20] ^ 1);
	put(f, wrong);
	assert_int_equal(walk(f, &unreadable), EVENTS - 1);
	assert_int_equal(unreadable, 1);
}

int
main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(test_whole),
		TEST(test_being_written),
		TEST(test_damaged),
	};
	return cmocka_run_group_tests_name("audit", tests, NULL, NULL);
}
