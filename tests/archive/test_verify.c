/* A whole store has no faults; whatever is changed in it is found and named:
 * every byte of segments and checkpoints, one by one. */
#include "archive/proof/verify.h"

#include <fcntl.h>

#include "archive/keeping/erase.h"
#include "archive/keeping/erasures.h"
#include "archive/proof/checkpoints.h"
#include "note_test.h"
#include "store_test.h"

#define DAY_US ((int64_t)86400 * 1000000)
#define LARGE  ((size_t)5 << 20) /* kept in a file of its own */

struct fixture {
	char path[PATH_MAX];
	struct note_test keys;
	/* faults of the last run */
	unsigned faults;
	struct verify_counts counts;
	char first[1024], first_dir[PATH_MAX];
	struct verify_fault fault; /* the first one, its texts above */
	bool saw_dir;
	const char *want_dir, *want_words;
	bool saw_words;
};

static void
open_store(struct fixture *f, int64_t now_us, struct store **out)
{
	const struct store_options o = { .path = f->path,
		.signer = f->keys.signer,
		.without_index = true,
		.clock = { now_us } };
	assert_ok(store_open(&o, NULL, out));
}

static void
submit(struct store *s, int64_t now_us, unsigned n)
{
	char text[4096];
	uint64_t id;
	assert_ok(test_submit(s, "mail", now_us,
	    STR("\1\1\0\2\0\0\0in"), test_text(text, sizeof text, n), &id));
}

static void
submit_large(struct store *s, int64_t now_us)
{
	char *text = malloc(LARGE);
	uint64_t id, x = 7;
	assert_non_null(text);
	for (size_t i = 0; i < LARGE; i++) {
		x = x * 6364136223846793005u + 1442695040888963407u;
		text[i] = (char)(x >> 56);
	}
	assert_ok(test_submit(s, "mail", now_us, STR("\1"),
	    str_of(text, LARGE), &id));
	free(text);
}

/* Shard 1 with two messages, a delivery, a new key, two notes and a seal;
 * shard 2 with one message. */
static void
fill(struct fixture *f, bool large)
{
	struct store *s;
	int64_t now_us = TEST_TIME;
	note_test_add(&f->keys, TEST_TIME / 1000000 - 86400);
	open_store(f, now_us, &s);
	submit(s, now_us, 1);
	submit(s, now_us, 1); /* the same again: a delivery */
	if (large)
		submit_large(s, now_us);
	assert_int_equal(store_checkpoint(s, NULL, NULL), 0);
	note_test_add(&f->keys, TEST_TIME / 1000000 - 1000);
	submit(s, now_us, 2);
	assert_int_equal(store_checkpoint(s, NULL, NULL), 0);
	store_close(&s);
	now_us += 10 * DAY_US; /* June */
	open_store(f, now_us, &s);
	submit(s, now_us, 3);
	assert_int_equal(store_checkpoint(s, NULL, NULL), 0);
	store_close(&s);
}

static int
setup(void **state)
{
	struct fixture *f = calloc(1, sizeof *f);
	assert_non_null(f);
	scratch_make(f->path);
	*state = f;
	return 0;
}

static int
teardown(void **state)
{
	struct fixture *f = *state;
	note_test_done(&f->keys);
	scratch_remove(f->path);
	free(f);
	return 0;
}

static void
on_fault(void *context, const struct verify_fault *v)
{
	struct fixture *f = context;
	if (f->faults++ == 0) {
		f->fault = *v;
		snprintf(f->first, sizeof f->first, "%s", v->text);
		snprintf(f->first_dir, sizeof f->first_dir, "%s", v->dir);
	}
	if (f->want_dir == NULL || strstr(v->dir, f->want_dir) == NULL)
		return;
	f->saw_dir = true;
	if (f->want_words != NULL && strstr(v->text, f->want_words) != NULL)
		f->saw_words = true;
}

static unsigned
verify(struct fixture *f)
{
	struct err err = { "" };
	const struct verify_options o = { .fault = on_fault, .context = f };
	f->faults = 0;
	f->saw_dir = f->saw_words = false;
	f->first[0] = '\0';
	if (verify_store(f->path, &o, &err, &f->counts) != RES_OK)
		fail_msg("%s", err.text);
	assert_int_equal(f->counts.faults, f->faults);
	return f->faults;
}

static void
expect_one(struct fixture *f, const char *dir, const char *words)
{
	f->want_dir = dir;
	f->want_words = words;
	if (verify(f) == 0)
		fail_msg("nothing found instead of \"%s\"", words);
	if (!f->saw_words)
		fail_msg("in %s: \"%s\", not \"%s\"", f->first_dir, f->first,
		    words);
}

static void
whole(void **state)
{
	struct fixture *f = *state;
	fill(f, true);
	if (verify(f) != 0)
		fail_msg("%s: %s", f->first_dir, f->first);
	assert_int_equal(f->counts.shards, 2);
	assert_int_equal(f->counts.messages, 5);
	/* notes: two, one after the seal; one of June */
	assert_int_equal(f->counts.notes, 4);
	assert_int_equal(f->counts.unsigned_frames, 1); /* the last NOTE */
}

static struct str
path_of(struct fixture *f, struct arena *a, const char *rest)
{
	return arena_printf(a, "%s/families/mail/%s", f->path, rest);
}

/* Flip one bit of each byte of a file from `from` on; every time the shard is
 * named. */
static void
flip_each(
    struct fixture *f, const char *name, const char *dir, uint64_t from)
{
	struct arena *a = arena_new(0);
	struct str path = path_of(f, a, name);
	struct str bytes = test_read_file(a, path.ptr);
	int fd = open(path.ptr, O_RDWR);
	assert_true(fd >= 0);
	f->want_dir = dir;
	/* the header's text and its padding are long, and under one CRC */
	for (size_t i = (size_t)from; i < bytes.len;
	    i += i > 1330 && i < 4000 ? 13 : 1) {
		char changed = (char)(bytes.ptr[i] ^ (1 << (i * 5 % 8)));
		assert_int_equal(pwrite(fd, &changed, 1, (off_t)i), 1);
		if (verify(f) == 0 || !f->saw_dir)
			fail_msg("%s: byte %zu is not missed", name, i);
		assert_int_equal(pwrite(fd, bytes.ptr + i, 1, (off_t)i), 1);
	}
	close(fd);
	arena_free(&a);
	if (verify(f) != 0)
		fail_msg("%s: %s", f->first_dir, f->first);
}

static void
every_byte(void **state)
{
	struct fixture *f = *state;
	struct store *s;
	note_test_add(&f->keys, TEST_TIME / 1000000 - 86400);
	open_store(f, TEST_TIME, &s);
	submit(s, TEST_TIME, 9);
	submit(s, TEST_TIME, 9);
	assert_int_equal(store_checkpoint(s, NULL, NULL), 0);
	store_close(&s);
	open_store(f, TEST_TIME + 10 * DAY_US, &s);
	submit(s, TEST_TIME + 10 * DAY_US, 8);
	store_close(&s);
	flip_each(f, "2026-05.1/segment", "2026-05.1", 0);
	flip_each(f, "2026-05.1/checkpoints", "2026-05.1", 0);
	flip_each(f, "2026-06.1/segment", "2026-06.1", 0);
}

/* Notes of two keys, and the frame that hands over. */
static void
every_byte_of_two_keys(void **state)
{
	struct fixture *f = *state;
	struct segment_reader *r;
	struct segment_frame fr;
	struct arena *a = arena_new(0);
	struct store *s;
	note_test_add(&f->keys, TEST_TIME / 1000000 - 86400);
	open_store(f, TEST_TIME, &s);
	submit(s, TEST_TIME, 9);
	note_test_add(&f->keys, TEST_TIME / 1000000 - 1000);
	assert_int_equal(store_checkpoint(s, NULL, NULL), 0);
	store_close(&s);
	assert_ok(segment_reader_open(
	    path_of(f, a, "2026-05.1").ptr, NULL, NULL, &r));
	assert_ok(segment_reader_find(r, 1, &fr));
	assert_int_equal(fr.header.type, FRAME_KEY);
	segment_reader_close(&r);
	flip_each(f, "2026-05.1/segment", "2026-05.1", fr.offset);
	flip_each(f, "2026-05.1/checkpoints", "2026-05.1", 0);
	arena_free(&a);
}

/* A frame is named by number and offset, its block by name. */
static void
names_the_place(void **state)
{
	struct fixture *f = *state;
	struct segment_reader *r;
	struct segment_frame fr;
	struct arena *a = arena_new(0);
	fill(f, false);
	struct str dir = path_of(f, a, "2026-05.1");
	struct str path = path_of(f, a, "2026-05.1/segment");
	assert_ok(segment_reader_open(dir.ptr, NULL, NULL, &r));
	/* message, delivery, note, message */
	assert_ok(segment_reader_find(r, 3, &fr));
	int fd = open(path.ptr, O_RDWR);
	char bad = 'x', was;
	off_t at = (off_t)(fr.offset +
	    frame_block_offset(&fr.header, BLOCK_META) + 3);
	assert_int_equal(pread(fd, &was, 1, at), 1);
	assert_int_equal(pwrite(fd, &bad, 1, at), 1);
	expect_one(f, "2026-05.1", "META is damaged");
	assert_int_equal(f->faults, 1);
	assert_int_equal(f->fault.shard, 1);
	assert_true(f->fault.has_frame && f->fault.has_offset);
	assert_int_equal(f->fault.frame, 3);
	assert_int_equal(f->fault.offset, fr.offset);
	assert_int_equal(pwrite(fd, &was, 1, at), 1);
	/* its header: the frame is lost, the one behind it is found */
	at = (off_t)fr.offset + 20;
	assert_int_equal(pread(fd, &was, 1, at), 1);
	assert_int_equal(pwrite(fd, &bad, 1, at), 1);
	expect_one(f, "2026-05.1", "no whole frame header; the next one is "
	    "frame 4");
	assert_int_equal(f->fault.offset, fr.offset);
	assert_int_equal(pwrite(fd, &was, 1, at), 1);
	close(fd);
	segment_reader_close(&r);
	arena_free(&a);
}

/* Damage that no checksum shows. */
static void
what_was_signed(void **state)
{
	struct fixture *f = *state;
	struct arena *a = arena_new(0);
	fill(f, false);
	struct str notes = path_of(f, a, "2026-05.1/checkpoints");
	struct str bytes = test_read_file(a, notes.ptr);
	struct str rest = bytes, first, second, third;
	assert_true(checkpoints_next(&rest, &first));
	assert_true(checkpoints_next(&rest, &second));
	assert_true(checkpoints_next(&rest, &third));
	/* a note is gone */
	test_write_file(notes.ptr, str_skip(bytes, first.len + 1));
	expect_one(f, "2026-05.1", "its note is missing in checkpoints");
	test_write_file(notes.ptr, STR(""));
	expect_one(f, "2026-05.1", "its note is missing in checkpoints");
	test_write_file(notes.ptr, bytes);
	/* a file that a body is in */
	struct str old = path_of(f, a, "2026-05.1");
	struct str other = path_of(f, a, "2026-05.2");
	/* the middle of a family's history is gone */
	assert_int_equal(rename(old.ptr, other.ptr), 0);
	if (verify(f) != 0)
		fail_msg("%s", f->first); /* its number counts, not N */
	struct str aside = arena_printf(a, "%s/aside", f->path);
	assert_int_equal(rename(other.ptr, aside.ptr), 0);
	assert_int_equal(verify(f), 0); /* the oldest may have expired */
	assert_int_equal(rename(aside.ptr, old.ptr), 0);
	struct store *s;
	open_store(f, TEST_TIME + 50 * DAY_US, &s); /* July */
	submit(s, TEST_TIME + 50 * DAY_US, 9);
	store_close(&s);
	assert_int_equal(verify(f), 0);
	struct str june = path_of(f, a, "2026-06.1");
	assert_int_equal(rename(june.ptr, aside.ptr), 0);
	expect_one(f, "2026-07.1", "which it follows, is missing");
	assert_int_equal(rename(aside.ptr, june.ptr), 0);
	/* a shard of another family */
	struct str moved = arena_printf(a, "%s/families/other", f->path);
	assert_int_equal(mkdir(moved.ptr, 0755), 0);
	moved = arena_printf(a, "%s/families/other/2026-06.1", f->path);
	assert_int_equal(rename(june.ptr, moved.ptr), 0);
	expect_one(f, "other/2026-06.1", "its header says it is of mail");
	arena_free(&a);
}

/* The same frames once more, each whole, under another history. */
static void
other_history(void **state)
{
	struct fixture *f = *state;
	struct arena *a = arena_new(0);
	struct store *s;
	fill(f, false);
	struct str segment = path_of(f, a, "2026-06.1/segment");
	struct str notes = path_of(f, a, "2026-06.1/checkpoints");
	struct str before = test_read_file(a, segment.ptr);
	struct str signed_notes = test_read_file(a, notes.ptr);
	/* drop all frames and write others: what a rewrite of history does */
	test_write_file(segment.ptr, str_sub(before, 0, SHARD_HEADER_BYTES));
	assert_int_equal(unlink(notes.ptr), 0);
	struct signer *signer = f->keys.signer;
	f->keys.signer = NULL;
	open_store(f, TEST_TIME + 10 * DAY_US, &s);
	submit(s, TEST_TIME + 10 * DAY_US, 77);
	submit(s, TEST_TIME + 10 * DAY_US, 78);
	store_close(&s);
	f->keys.signer = signer;
	assert_int_equal(verify(f), 0); /* nothing here says otherwise … */
	test_write_file(notes.ptr, signed_notes); /* … but the notes do */
	expect_one(f, "2026-06.1", "the frames are not those that were signed");
	/* fewer than were signed */
	test_write_file(segment.ptr, str_sub(before, 0, SHARD_HEADER_BYTES));
	expect_one(f, "2026-06.1", "the segment has only 0 frames");
	test_write_file(segment.ptr, before);
	assert_int_equal(verify(f), 0);
	arena_free(&a);
}

static void
body_files(void **state)
{
	struct fixture *f = *state;
	struct arena *a = arena_new(0);
	fill(f, true);
	struct segment_reader *r;
	struct segment_frame fr;
	struct frame_body b;
	char name[FRAME_BODY_NAME];
	struct str dir = path_of(f, a, "2026-05.1");
	assert_ok(segment_reader_open(dir.ptr, NULL, NULL, &r));
	assert_ok(segment_reader_find(r, 2, &fr));
	assert_true(fr.header.flags & FRAME_BODY_IN_FILE);
	assert_ok(segment_reader_peek_body(r, &fr, &b));
	segment_reader_close(&r);
	frame_body_name(&b, name);
	struct str path = arena_printf(a, "%s/bodies/%s", dir.ptr, name);
	struct str bytes = test_read_file(a, path.ptr);
	int fd = open(path.ptr, O_RDWR);
	for (size_t i = 0; i < bytes.len; i += bytes.len / 7) {
		char changed = (char)(bytes.ptr[i] ^ 16);
		assert_int_equal(pwrite(fd, &changed, 1, (off_t)i), 1);
		expect_one(f, "2026-05.1", "BODY: ");
		assert_int_equal(f->fault.frame, 2);
		assert_int_equal(pwrite(fd, bytes.ptr + i, 1, (off_t)i), 1);
	}
	assert_int_equal(pwrite(fd, "x", 1, (off_t)bytes.len), 1);
	expect_one(f, "2026-05.1", "BODY: its file in bodies has another");
	close(fd);
	assert_int_equal(unlink(path.ptr), 0);
	expect_one(f, "2026-05.1", "BODY: ");
	arena_free(&a);
}

/* What was erased in order is no fault; what was blanked is. */
static void
erased(void **state)
{
	struct fixture *f = *state;
	struct arena *a = arena_new(0);
	struct store *s;
	struct err err = { "" };
	struct erase_outcome outcome;
	const uint64_t id = (uint64_t)1 << 32; /* and its delivery */
	fill(f, false);
	const struct erase_request rq = { .ids = &id,
		.count = 1,
		.reason = STR("asked to") };
	open_store(f, TEST_TIME + 10 * DAY_US, &s);
	if (archive_erase(s, &rq, &err, &outcome) != RES_OK)
		fail_msg("%s", err.text);
	assert_int_equal(outcome.frames, 2);
	store_close(&s);
	if (verify(f) != 0)
		fail_msg("%s: %s", f->first_dir, f->first);
	assert_int_equal(f->counts.erased, 2);
	/* nobody meant the other message */
	struct segment_reader *r;
	struct segment_frame fr;
	assert_ok(segment_reader_open(
	    path_of(f, a, "2026-05.1").ptr, NULL, NULL, &r));
	assert_ok(segment_reader_find(r, 3, &fr));
	segment_reader_close(&r);
	int fd = open(path_of(f, a, "2026-05.1/segment").ptr, O_RDWR);
	size_t len = (size_t)(fr.header.total - FRAME_HEADER_BYTES);
	char *zeros = arena_alloc(a, len);
	assert_int_equal(pwrite(fd, zeros, len,
	    (off_t)fr.offset + FRAME_HEADER_BYTES), (ssize_t)len);
	close(fd);
	expect_one(f, "2026-05.1", "it was blanked, and no erasure names it");
	assert_int_equal(f->fault.frame, 3);
	/* … and a list beside it does not make it meant */
	struct erasures e;
	struct erased_frame more[8];
	assert_ok(erasures_read(
	    path_of(f, a, "2026-05.1").ptr, a, &err, &e));
	assert_true(e.count < 8);
	memcpy(more, e.frames, e.count * sizeof *more);
	more[e.count] = (struct erased_frame){ 3, e.frames[0].intent };
	e.frames = more;
	e.count++;
	assert_ok(erasures_write(
	    &archive_io_system, path_of(f, a, "2026-05.1").ptr, &e));
	expect_one(f, "2026-05.1", "does not name it");
	arena_free(&a);
}

static void
no_store(void **state)
{
	struct fixture *f = *state;
	struct err err = { "" };
	struct verify_counts n;
	const struct verify_options o = { .fault = on_fault, .context = f };
	assert_int_equal(
	    verify_store(f->path, &o, &err, &n), RES_NOTFOUND);
	assert_non_null(strstr(err.text, "no archive store here"));
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(whole),
		TEST(every_byte),
		TEST(every_byte_of_two_keys),
		TEST(names_the_place),
		TEST(what_was_signed),
		TEST(other_history),
		TEST(body_files),
		TEST(erased),
		TEST(no_store),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
