/* Signing a store's trees, and what recovery makes of the notes. */
#include <pthread.h>

#include "archive/proof/checkpoints.h"
#include "archive/proof/verify.h"
#include "fault_io.h"
#include "note_test.h"
#include "store_test.h"

#define DAY 86400

struct fixture {
	char path[PATH_MAX];
	struct note_test keys;
	struct buf alarms;
	struct store *store;
	int64_t now_us;
	pthread_mutex_t mutex;
};

static void
on_alarm(void *context, const char *line)
{
	struct fixture *f = context;
	pthread_mutex_lock(&f->mutex);
	buf_add_c(&f->alarms, line);
	buf_add_char(&f->alarms, '\n');
	pthread_mutex_unlock(&f->mutex);
}

static void
open_store(struct fixture *f)
{
	struct err err = { "" };
	const struct store_options o = { .path = f->path,
		.signer = f->keys.signer,
		.without_index = true,
		.clock = { f->now_us },
		.alarm = on_alarm,
		.alarm_context = f };
	if (store_open(&o, &err, &f->store) != RES_OK)
		fail_msg("%s", err.text);
}

static void
reopen(struct fixture *f)
{
	store_close(&f->store);
	open_store(f);
}

static int
setup(void **state)
{
	struct fixture *f = calloc(1, sizeof *f);
	assert_non_null(f);
	scratch_make(f->path);
	buf_init(&f->alarms, 100000);
	pthread_mutex_init(&f->mutex, NULL);
	f->now_us = TEST_TIME;
	note_test_add(&f->keys, TEST_TIME / 1000000 - DAY);
	open_store(f);
	*state = f;
	return 0;
}

static int
teardown(void **state)
{
	struct fixture *f = *state;
	store_close(&f->store);
	note_test_done(&f->keys);
	scratch_remove(f->path);
	buf_done(&f->alarms);
	pthread_mutex_destroy(&f->mutex);
	free(f);
	return 0;
}

static void
submit(struct fixture *f, unsigned n)
{
	char text[4096];
	uint64_t id;
	assert_ok(test_submit(f->store, "mail", f->now_us, STR("\1"),
	    test_text(text, sizeof text, n), &id));
}

struct said {
	enum res r;
	char note[SHARD_MAX_NOTE + 1];
	unsigned count;
};

static void
say(void *context, const char *family, enum res r, struct str note)
{
	struct said *s = context;
	s->r = r;
	s->count++;
	memcpy(s->note, note.ptr != NULL ? note.ptr : "", note.len);
	s->note[note.len] = '\0';
}

/* The checkpoint of family mail, checked with the key of `when`. */
static struct note_head
checkpoint(struct fixture *f)
{
	struct said s = { .count = 0 };
	struct note n;
	struct note_head h;
	struct note_key k;
	assert_int_equal(store_checkpoint(f->store, say, &s), 0);
	assert_int_equal(s.count, 1);
	assert_ok(s.r);
	assert_ok(note_open(str_c(s.note), &n));
	assert_ok(note_head_parse(n.text, &h));
	assert_ok(note_newest_key(
	    f->keys.signer, h.origin.store, f->now_us, &k));
	assert_ok(note_check(&n, &k));
	return h;
}

/* What the shard with this number in the family is; its frames by type. */
struct look {
	struct shard_header header;
	size_t frames, types[16], notes;
	uint8_t root[64][32]; /* after each frame */
};

static void
look(struct fixture *f, unsigned ordinal, const char *period, struct look *l)
{
	char dir[PATH_MAX];
	struct segment_reader *r;
	struct segment_frame fr;
	struct merkle m;
	struct str text, note;
	struct arena *a = arena_new(0);
	*l = (struct look){ .frames = 0 };
	assert_ok(io_path(dir, "%s/families/mail/%s.%u", f->path, period,
	    ordinal));
	assert_ok(segment_reader_open(dir, NULL, NULL, &r));
	l->header = *segment_reader_shard(r);
	merkle_init(&m);
	for (uint64_t at = SHARD_HEADER_BYTES;
	     segment_reader_at(r, at, &fr) == RES_OK;
	     at = segment_frame_end(&fr)) {
		assert_ok(segment_reader_check(r, &fr));
		assert_true(l->frames < 64);
		l->types[fr.header.type]++;
		assert_ok(merkle_add(&m, fr.header.leaf));
		assert_ok(merkle_root(&m, l->root[l->frames++]));
	}
	segment_reader_close(&r);
	assert_ok(checkpoints_read(&archive_io_system, dir, a, &text));
	while (checkpoints_next(&text, &note)) {
		struct note n;
		struct note_head h;
		l->notes++;
		assert_ok(note_open(note, &n));
		assert_ok(note_head_parse(n.text, &h));
		assert_true(h.size > 0 && h.size <= l->frames);
		assert_memory_equal(h.root, l->root[h.size - 1], 32);
	}
	arena_free(&a);
}

static void
signs_what_is_there(void **state)
{
	struct fixture *f = *state;
	struct look l;
	struct said s = { .count = 0 };
	assert_int_equal(store_checkpoint(f->store, say, &s), 0);
	assert_int_equal(s.count, 0); /* nothing there */
	submit(f, 1);
	submit(f, 2);
	struct note_head h = checkpoint(f);
	/* the key stands in the header: it was known when the shard began */
	assert_int_equal(h.size, 2);
	assert_int_equal(h.origin.epoch, 1);
	assert_int_equal(h.origin.shard, 1);
	assert_int_equal(h.time_us, f->now_us);
	/* the note's own frame is no news */
	struct note_head again = checkpoint(f);
	assert_int_equal(again.size, 2);
	submit(f, 3);
	assert_int_equal(checkpoint(f).size, 4);
	store_close(&f->store);
	look(f, 1, "2026-05", &l);
	assert_int_equal(l.types[FRAME_MESSAGE], 3);
	assert_int_equal(l.types[FRAME_NOTE], 2);
	assert_int_equal(l.types[FRAME_KEY], 0);
	assert_int_equal(l.notes, 2);
	assert_true(str_starts(str_c(l.header.key), STR("hanaper/")));
	/* after a start the last note is known */
	open_store(f);
	assert_int_equal(checkpoint(f).size, 4);
	submit(f, 4);
	assert_int_equal(checkpoint(f).size, 6);
	assert_int_equal(f->alarms.len, 0);
}

static void
successor_carries_it(void **state)
{
	struct fixture *f = *state;
	struct look l, next;
	struct note n;
	struct note_head h;
	submit(f, 1);
	assert_int_equal(checkpoint(f).size, 1);
	submit(f, 2);
	store_close(&f->store);
	f->now_us += (int64_t)31 * DAY * 1000000;
	open_store(f);
	submit(f, 3); /* of June */
	store_close(&f->store);
	look(f, 1, "2026-05", &l);
	look(f, 1, "2026-06", &next);
	/* message, note, message, seal; the second note only in the file */
	assert_int_equal(l.frames, 4);
	assert_int_equal(l.types[FRAME_SEAL], 1);
	assert_int_equal(l.notes, 2);
	assert_int_equal(next.header.previous, l.header.number);
	assert_int_equal(next.header.previous_frames, 4);
	assert_memory_equal(next.header.previous_root, l.root[3], 32);
	assert_ok(note_open(str_c(next.header.previous_note), &n));
	assert_ok(note_head_parse(n.text, &h));
	assert_int_equal(h.size, 4);
	assert_memory_equal(h.root, l.root[3], 32);
	open_store(f);
}

/* The old key says who comes next; both sign for 30 days. */
static void
key_rotation(void **state)
{
	struct fixture *f = *state;
	struct look l;
	struct note_key old, new;
	struct note n;
	struct said s = { .count = 0 };
	submit(f, 1);
	struct note_head h = checkpoint(f);
	assert_ok(note_newest_key(
	    f->keys.signer, h.origin.store, f->now_us, &old));
	f->now_us += (int64_t)DAY * 1000000;
	note_test_add(&f->keys, f->now_us / 1000000);
	assert_ok(note_newest_key(
	    f->keys.signer, h.origin.store, f->now_us, &new));
	assert_false(note_key_same(&old, &new));
	reopen(f);
	submit(f, 2);
	assert_int_equal(store_checkpoint(f->store, say, &s), 0);
	assert_ok(note_open(str_c(s.note), &n));
	assert_ok(note_check(&n, &old));
	assert_ok(note_check(&n, &new));
	assert_ok(note_head_parse(n.text, &h));
	assert_int_equal(h.size, 4); /* message, note, message, key */
	store_close(&f->store);
	look(f, 1, "2026-05", &l);
	assert_int_equal(l.types[FRAME_KEY], 1);
	f->now_us += (int64_t)30 * DAY * 1000000;
	open_store(f);
	submit(f, 3);
	assert_int_equal(store_checkpoint(f->store, say, &s), 0);
	assert_ok(note_open(str_c(s.note), &n));
	assert_int_equal(note_check(&n, &old), RES_NOTFOUND);
	assert_ok(note_check(&n, &new));
	assert_int_equal(f->alarms.len, 0);
}

/* A store that had no key gets one. */
static void
first_key_later(void **state)
{
	struct fixture *f = *state;
	struct signer *signer = f->keys.signer;
	struct look l;
	struct said s = { .count = 0 };
	store_close(&f->store);
	f->keys.signer = NULL;
	open_store(f);
	submit(f, 1);
	assert_int_equal(store_checkpoint(f->store, say, &s), 0);
	assert_int_equal(s.count, 0);
	f->keys.signer = signer;
	reopen(f);
	assert_int_equal(checkpoint(f).size, 2); /* message, key */
	store_close(&f->store);
	look(f, 1, "2026-05", &l);
	assert_int_equal(l.types[FRAME_KEY], 1);
	assert_int_equal(l.notes, 1);
	open_store(f);
}

static void
segment_path(struct fixture *f, char out[PATH_MAX])
{
	assert_ok(
	    io_path(out, "%s/families/mail/2026-05.1/segment", f->path));
}

static void
expect_new_epoch(struct fixture *f, const char *why)
{
	struct store_identity id;
	struct look l;
	open_store(f);
	assert_non_null(
	    strstr(buf_cstr(&f->alarms), why));
	submit(f, 50);
	struct note_head h = checkpoint(f);
	assert_int_equal(h.origin.epoch, 2);
	assert_int_equal(h.origin.shard, 2);
	assert_int_equal(h.size, 1);
	assert_ok(store_dir_identity(f->path, NULL, &id));
	assert_int_equal(id.epoch, 2);
	/* once, however often it is opened */
	reopen(f);
	reopen(f);
	assert_ok(store_dir_identity(f->path, NULL, &id));
	assert_int_equal(id.epoch, 2);
	store_close(&f->store);
	look(f, 2, "2026-05", &l);
	assert_int_equal(l.header.epoch, 2);
	assert_int_equal(l.header.previous, 1);
	open_store(f);
}

static void
smaller_tree(void **state)
{
	struct fixture *f = *state;
	char path[PATH_MAX];
	struct stat st;
	submit(f, 1);
	segment_path(f, path);
	struct arena *a = arena_new(0);
	struct segment_reader *r;
	struct segment_frame fr;
	char dir[PATH_MAX];
	submit(f, 2);
	assert_int_equal(checkpoint(f).size, 2);
	store_close(&f->store);
	/* the second message never was */
	assert_ok(io_path(dir, "%s/families/mail/2026-05.1", f->path));
	assert_ok(segment_reader_open(dir, NULL, NULL, &r));
	assert_ok(segment_reader_at(r, SHARD_HEADER_BYTES, &fr));
	segment_reader_close(&r);
	assert_int_equal(truncate(path, (off_t)segment_frame_end(&fr)), 0);
	expect_new_epoch(f, "2 frames were signed, and not all are there");
	/* nothing of the old one was touched */
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_size, segment_frame_end(&fr));
	arena_free(&a);
}

/* Another history of the same length, as from a backup that went on. */
static void
other_tree(void **state)
{
	struct fixture *f = *state;
	char path[PATH_MAX], notes[PATH_MAX];
	struct arena *a = arena_new(0);
	segment_path(f, path);
	assert_ok(io_path(
	    notes, "%s/families/mail/2026-05.1/checkpoints", f->path));
	submit(f, 1);
	store_close(&f->store);
	struct str before = test_read_file(a, path);
	open_store(f);
	submit(f, 2);
	assert_int_equal(checkpoint(f).size, 2);
	store_close(&f->store);
	struct str signed_note = test_read_file(a, notes);
	test_write_file(path, before);
	assert_int_equal(unlink(notes), 0);
	open_store(f);
	submit(f, 3);
	store_close(&f->store);
	test_write_file(notes, signed_note);
	expect_new_epoch(f, "are not those that were signed");
	arena_free(&a);
}

/* A restored store says so by its epoch. */
static void
restored(void **state)
{
	struct fixture *f = *state;
	submit(f, 1);
	assert_int_equal(checkpoint(f).size, 1);
	store_close(&f->store);
	assert_ok(store_dir_new_epoch(&archive_io_system, f->path, 1, NULL));
	assert_ok(store_dir_new_epoch(&archive_io_system, f->path, 1, NULL));
	expect_new_epoch(f, "");
	assert_int_equal(f->alarms.len, 0);
}

/* A damaged note is named, and is no reason to doubt the tree. */
static void
damaged_note(void **state)
{
	struct fixture *f = *state;
	char notes[PATH_MAX];
	struct arena *a = arena_new(0);
	struct store_identity id;
	submit(f, 1);
	assert_int_equal(checkpoint(f).size, 1);
	store_close(&f->store);
	assert_ok(io_path(
	    notes, "%s/families/mail/2026-05.1/checkpoints", f->path));
	struct str bytes = test_read_file(a, notes);
	char *copy = arena_alloc(a, bytes.len);
	for (size_t at = 0; at < bytes.len; at += 7) {
		memcpy(copy, bytes.ptr, bytes.len);
		copy[at] ^= 4;
		test_write_file(notes, str_of(copy, bytes.len));
		buf_reset(&f->alarms);
		open_store(f);
		store_close(&f->store);
		assert_ok(store_dir_identity(f->path, NULL, &id));
		assert_int_equal(id.epoch, 1);
		assert_non_null(strstr(
		    buf_cstr(&f->alarms), "/checkpoints: "));
	}
	open_store(f);
	submit(f, 2);
	assert_true(checkpoint(f).size >= 2);
	arena_free(&a);
}

static void
on_fault(void *context, const struct verify_fault *v)
{
	struct buf *b = context;
	buf_addf(b, "%s: frame %llu: %s\n", v->dir,
	    (unsigned long long)v->frame, v->text);
}

/* What was imported by another process, month by month. */
static void
imported_months(void **state)
{
	struct fixture *f = *state;
	struct signer *signer = f->keys.signer;
	struct said s = { .count = 0 };
	struct verify_counts counts;
	struct buf faults;
	char text[4096];
	uint64_t id;
	const struct verify_options o = { .fault = on_fault,
		.context = &faults };
	store_close(&f->store);
	f->keys.signer = NULL;
	open_store(f);
	for (unsigned i = 0; i < 6; i++)
		assert_ok(test_submit(f->store, STORE_IMPORT_FAMILY,
		    f->now_us - (int64_t)(i / 2) * 40 * DAY * 1000000,
		    STR("\1"), test_text(text, sizeof text, i), &id));
	f->keys.signer = signer;
	reopen(f);
	assert_int_equal(store_checkpoint_left(f->store, say, &s), 0);
	assert_int_equal(s.count, 3);
	assert_ok(s.r);
	store_close(&f->store);
	buf_init(&faults, 100000);
	assert_ok(verify_store(f->path, &o, NULL, &counts));
	if (counts.faults > 0)
		fail_msg("%s", buf_cstr(&faults));
	assert_int_equal(counts.notes, 3);
	/* behind each only the note's own frame */
	assert_int_equal(counts.unsigned_frames, 3);
	/* nothing is new */
	open_store(f);
	s.count = 0;
	assert_int_equal(store_checkpoint_left(f->store, say, &s), 0);
	assert_int_equal(s.count, 0);
	buf_done(&faults);
}

/* --- a disk that fails ----------------------------------------------------- */

/* Whatever happened: what is there is whole, and signed notes are about what
 * is there, so that no new epoch begins. */
static void
must_be_whole(struct fixture *f, const char *what, unsigned long n)
{
	struct store_identity id;
	struct verify_counts counts;
	struct buf faults;
	const struct verify_options o = { .fault = on_fault,
		.context = &faults };
	open_store(f);
	submit(f, 1000);
	store_checkpoint(f->store, NULL, NULL);
	store_close(&f->store);
	assert_ok(store_dir_identity(f->path, NULL, &id));
	if (id.epoch != 1)
		fail_msg("%s %lu: a new epoch: %s", what, n,
		    buf_cstr(&f->alarms));
	buf_init(&faults, 100000);
	assert_ok(verify_store(f->path, &o, NULL, &counts));
	if (counts.faults > 0)
		fail_msg("%s %lu: %s", what, n, buf_cstr(&faults));
	if (counts.notes == 0)
		fail_msg("%s %lu: nothing was signed", what, n);
	buf_done(&faults);
}

static void
try_to_sign(struct fixture *f, struct fault_io *fault)
{
	struct err err = { "" };
	char text[4096];
	uint64_t id;
	const struct store_options o = { .path = f->path,
		.signer = f->keys.signer,
		.roll_bytes = 9000,
		.retry_us = 1,
		.without_index = true,
		.clock = { f->now_us },
		.io = &fault->io };
	if (store_open(&o, &err, &f->store) != RES_OK &&
	    store_open(&o, &err, &f->store) != RES_OK)
		fail_msg("%s", err.text);
	for (unsigned i = 0; i < 6; i++) {
		(void)!test_submit(f->store, "mail", f->now_us, STR("\1"),
		    test_text(text, sizeof text, i), &id);
		store_checkpoint(f->store, NULL, NULL);
	}
}

static void
fail_once(struct fixture *f, unsigned long write, unsigned long sync,
    bool cut, const char *what)
{
	struct fault_io fault;
	unsigned long n = write + sync;
	store_close(&f->store);
	scratch_remove(f->path);
	scratch_make(f->path);
	buf_reset(&f->alarms);
	fault_init(&fault, n + 1000 * cut);
	fault.fail_write = write;
	fault.write_kind = FAULT_TORN;
	fault.fail_sync = sync;
	try_to_sign(f, &fault);
	if (cut)
		fault_off(&fault);
	store_close(&f->store);
	if (cut)
		fault_cut(&fault);
	fault_done(&fault);
	must_be_whole(f, what, n);
}

static void
nth_write_and_sync(void **state)
{
	struct fixture *f = *state;
	for (unsigned long n = 1; n <= 16; n++) {
		fail_once(f, n, 0, n % 2, "torn write");
		fail_once(f, 0, n, false, "failed sync");
		fail_once(f, 0, n, true, "failed sync, cut");
	}
	for (unsigned long n = 17; n <= 60; n += 6)
		fail_once(f, 0, n, n % 2, "failed sync, later");
}

/* --- everybody at once ------------------------------------------------------ */

#define SENDERS 4
#define EACH    30

struct sender {
	pthread_t thread;
	struct store *store;
	unsigned first, good;
};

static void *
send_on(void *arg)
{
	struct sender *s = arg;
	for (unsigned i = 0; i < EACH; i++) {
		char text[4096];
		uint64_t id;
		s->good += test_submit(s->store, "mail", TEST_TIME,
		    STR("\1"), test_text(text, sizeof text, s->first + i),
		    &id) == RES_OK;
	}
	return NULL;
}

/* The notary, somebody who asks, and mail; shards are left meanwhile. */
static void
while_mail_comes(void **state)
{
	struct fixture *f = *state;
	struct sender senders[SENDERS];
	struct err err = { "" };
	struct verify_counts counts;
	struct buf faults;
	const struct verify_options v = { .fault = on_fault,
		.context = &faults };
	const struct store_options o = { .path = f->path,
		.signer = f->keys.signer,
		.checkpoint_us = 1000,
		.roll_bytes = 60000,
		.without_index = true,
		.clock = { f->now_us },
		.alarm = on_alarm,
		.alarm_context = f };
	store_close(&f->store);
	assert_ok(store_open(&o, &err, &f->store));
	for (unsigned i = 0; i < SENDERS; i++) {
		senders[i] = (struct sender){ .store = f->store,
			.first = i * 1000 };
		assert_int_equal(pthread_create(&senders[i].thread, NULL,
		    send_on, &senders[i]), 0);
	}
	for (int i = 0; i < 10; i++)
		store_checkpoint(f->store, NULL, NULL);
	for (unsigned i = 0; i < SENDERS; i++) {
		pthread_join(senders[i].thread, NULL);
		assert_int_equal(senders[i].good, EACH);
	}
	store_close(&f->store);
	buf_init(&faults, 100000);
	assert_ok(verify_store(f->path, &v, NULL, &counts));
	if (counts.faults > 0)
		fail_msg("%s", buf_cstr(&faults));
	assert_int_equal(counts.messages, SENDERS * EACH);
	assert_true(counts.notes > 2 && counts.shards > 1);
	/* the stop signed all but its own note */
	assert_true(counts.unsigned_frames <= 1);
	buf_done(&faults);
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(signs_what_is_there),
		TEST(successor_carries_it),
		TEST(key_rotation),
		TEST(first_key_later),
		TEST(smaller_tree),
		TEST(other_tree),
		TEST(restored),
		TEST(damaged_note),
		TEST(imported_months),
		TEST(nth_write_and_sync),
		TEST(while_mail_comes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
