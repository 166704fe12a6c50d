#include "archive/store/store.h"

#include <pthread.h>
#include <sys/stat.h>

#include "archive/format/period.h"
#include "archive/store/netfs.h"
#include "store_test.h"

struct fixture {
	char path[PATH_MAX];
	struct buf alarms;
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

static int
setup(void **state)
{
	struct fixture *f = calloc(1, sizeof *f);
	assert_non_null(f);
	scratch_make(f->path);
	buf_init(&f->alarms, 100000);
	pthread_mutex_init(&f->mutex, NULL);
	*state = f;
	return 0;
}

static int
teardown(void **state)
{
	struct fixture *f = *state;
	scratch_remove(f->path);
	buf_done(&f->alarms);
	pthread_mutex_destroy(&f->mutex);
	free(f);
	return 0;
}

static struct store *
open_store(struct fixture *f, uint64_t roll_bytes)
{
	struct store *s;
	struct err err = { "" };
	const struct store_options o = {
		.path = f->path,
		.roll_bytes = roll_bytes,
		.clock = { TEST_TIME },
		.alarm = on_alarm,
		.alarm_context = f,
	};
	if (store_open(&o, &err, &s) != RES_OK)
		fail_msg("%s", err.text);
	return s;
}

static void
submit_ok(struct store *s, struct str body)
{
	uint64_t id = 0;
	assert_ok(test_submit(s, "mail", TEST_TIME, STR("meta"), body, &id));
	assert_int_not_equal(id, 0);
}

/* Bodies of every kind come back byte for byte. */
static void
bodies(void **state)
{
	struct fixture *f = *state;
	struct inventory v;
	struct store *s = open_store(f, 0);
	/* hard to compress, so that it goes to a file of its own */
	size_t big = (size_t)30 << 20;
	char *noise = malloc(big);
	assert_non_null(noise);
	uint64_t x = 88172645463325252u;
	for (size_t i = 0; i < big; i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		noise[i] = (char)x;
	}
	const struct str all[] = {
		STR("x"),
		STR_EMPTY,
		str_of("a\0b\r\r\n\n\xff\0", 9),
		str_of(noise, SHARD_HEADER_BYTES),
		str_of(noise, ((size_t)1 << 20) - 1), /* the spool's limit */
		str_of(noise, (size_t)1 << 20),
		str_of(noise, ((size_t)1 << 20) + 1),
		str_of(noise, big),
	};
	size_t count = sizeof all / sizeof all[0];
	for (size_t i = 0; i < count; i++)
		submit_ok(s, all[i]);
	submit_ok(s, all[count - 1]); /* a second delivery of the large one */
	/* large, but it compresses: stays in the frame */
	memset(noise, 'z', big);
	submit_ok(s, str_of(noise, big));
	store_close(&s);
	inventory_take(&v, f->path);
	assert_int_equal(v.messages, count + 1);
	assert_int_equal(v.deliveries, 1);
	assert_int_equal(inventory_count(&v, str_of(noise, big)), 1);
	for (size_t i = 0; i < 4; i++) /* the rest was overwritten */
		assert_int_equal(
		    inventory_count(&v, i == 3 ? STR("x") : all[i]), 1);
	inventory_done(&v);
	free(noise);
	/* nothing is left lying about */
	char path[PATH_MAX];
	assert_ok(io_path(path, "%s/tmp", f->path));
	assert_int_equal(rmdir(path), 0);
	assert_int_equal(f->alarms.len, 0);
}

/* Any split of a body into chunks gives the same bytes and hash. */
static void
chunks(void **state)
{
	struct fixture *f = *state;
	struct inventory v;
	struct store *s = open_store(f, 0);
	size_t len = ((size_t)1 << 20) + 300000;
	char *text = malloc(len);
	assert_non_null(text);
	for (size_t i = 0; i < len; i++)
		text[i] = (char)(i * i >> 7);
	static const size_t steps[] = { 1, 4096, 999983, SIZE_MAX };
	for (size_t k = 0; k < 4; k++) {
		struct arena *a = arena_new(0);
		struct spool *sp = spool_new(a, s);
		uint64_t id;
		for (size_t at = 0; at < len;) {
			size_t n = len - at < steps[k] ? len - at : steps[k];
			sink_push(spool_sink(sp), text + at, n);
			at += n;
		}
		assert_ok(sink_finish(spool_sink(sp)));
		const struct store_message m = { .family = "mail",
			.time_us = TEST_TIME, .body = sp };
		assert_ok(store_submit(s, &m, &id));
		arena_free(&a);
	}
	store_close(&s);
	inventory_take(&v, f->path);
	assert_int_equal(v.messages, 1);
	assert_int_equal(v.deliveries, 3);
	assert_int_equal(inventory_count(&v, str_of(text, len)), 1);
	inventory_done(&v);
	free(text);
}

#define THREADS  8
#define PER_THREAD 60

struct submitter {
	struct store *store;
	unsigned first;
	enum res worst;
	pthread_t thread;
};

static void *
submit_many(void *arg)
{
	struct submitter *su = arg;
	for (unsigned i = 0; i < PER_THREAD; i++) {
		char text[4096];
		uint64_t id;
		/* every tenth is the same for all */
		unsigned n = i % 10 == 0 ? 1000000 + i : su->first + i;
		enum res r = test_submit(su->store, "mail", TEST_TIME,
		    STR("meta"), test_text(text, sizeof text, n), &id);
		if (r != RES_OK)
			su->worst = r;
	}
	return NULL;
}

static void
threads(void **state)
{
	struct fixture *f = *state;
	struct inventory v;
	struct store *s = open_store(f, 0);
	struct submitter all[THREADS];
	for (unsigned t = 0; t < THREADS; t++) {
		all[t] = (struct submitter){ .store = s, .first = t * 1000 };
		assert_int_equal(pthread_create(&all[t].thread, NULL,
				     submit_many, &all[t]), 0);
	}
	for (unsigned t = 0; t < THREADS; t++) {
		pthread_join(all[t].thread, NULL);
		assert_ok(all[t].worst);
	}
	struct store_counters c;
	store_counters(s, &c);
	assert_int_equal(c.messages, THREADS * PER_THREAD);
	assert_true(c.groups <= c.messages);
	/* the appliers follow */
	for (int i = 0; i < 2000 && c.unapplied > 0; i++) {
		usleep(10000);
		store_counters(s, &c);
	}
	assert_int_equal(c.unapplied, 0);
	store_close(&s);
	inventory_take(&v, f->path);
	assert_int_equal(v.frames, THREADS * PER_THREAD);
	assert_int_equal(v.deliveries, (THREADS - 1) * PER_THREAD / 10);
	assert_int_equal(c.deliveries, v.deliveries);
	for (unsigned t = 0; t < THREADS; t++)
		for (unsigned i = 0; i < PER_THREAD; i++) {
			char text[4096];
			unsigned n = i % 10 == 0 ? 1000000 + i : t * 1000 + i;
			assert_int_equal(inventory_count(&v,
					     test_text(text, sizeof text, n)),
			    1);
		}
	inventory_done(&v);
	assert_int_equal(f->alarms.len, 0);
}

/* Rolling by size seals, links and numbers the shards. */
static void
roll_by_size(void **state)
{
	struct fixture *f = *state;
	struct store *s = open_store(f, SHARD_HEADER_BYTES + 2000);
	char text[4096];
	for (unsigned i = 0; i < 20; i++)
		submit_ok(s, test_text(text, sizeof text, i));
	store_close(&s);
	struct arena *a = arena_new(0);
	struct shard_entry *e;
	size_t count;
	assert_ok(store_dir_shards(f->path, "mail", a, NULL, &e, &count));
	assert_true(count > 3);
	for (size_t i = 0; i < count; i++) {
		struct segment_reader *r;
		struct segment_frame fr, last = { .offset = 0 };
		struct merkle tree;
		uint64_t at = SHARD_HEADER_BYTES;
		uint8_t root[32];
		assert_int_equal(e[i].header.number, i + 1);
		assert_int_equal(e[i].header.previous, i);
		assert_int_equal(e[i].ordinal, i + 1);
		assert_string_equal(e[i].period, "2026-05");
		assert_ok(segment_reader_open(e[i].dir, NULL, NULL, &r));
		merkle_init(&tree);
		while (segment_reader_at(r, at, &fr) == RES_OK) {
			last = fr;
			assert_ok(merkle_add(&tree, fr.header.leaf));
			at = segment_frame_end(&fr);
		}
		segment_reader_close(&r);
		if (i + 1 == count)
			break;
		assert_int_equal(last.header.type, FRAME_SEAL);
		assert_int_equal(at, e[i + 1].header.previous_bytes);
		assert_int_equal(
		    tree.count, e[i + 1].header.previous_frames);
		assert_ok(merkle_root(&tree, root));
		assert_memory_equal(root, e[i + 1].header.previous_root, 32);
	}
	arena_free(&a);
	assert_int_equal(f->alarms.len, 0);
}

static size_t
shards_of(struct fixture *f, const char *family, const char *period)
{
	struct arena *a = arena_new(0);
	struct shard_entry *e;
	size_t count, n = 0;
	assert_ok(store_dir_shards(f->path, family, a, NULL, &e, &count));
	for (size_t i = 0; i < count; i++)
		n += strcmp(e[i].period, period) == 0;
	arena_free(&a);
	return n;
}

#define MONTH ((int64_t)31 * 86400 * 1000000)

static void
roll_by_month(void **state)
{
	struct fixture *f = *state;
	struct store *s = open_store(f, 0);
	char text[4096];
	uint64_t id;
	static const struct {
		int64_t after;
		const char *period; /* where it goes */
	} rows[] = {
		{ 0, "2026-05" },
		{ -2 * MONTH, "2026-05" },       /* never backwards */
		{ 120 * MONTH, "2026-05" },      /* the clock jumped */
		{ MONTH, "2026-06" },
		{ 0, "2026-06" },
	};
	for (unsigned i = 0; i < 5; i++) {
		assert_ok(test_submit(s, "mail", TEST_TIME + rows[i].after,
		    STR_EMPTY, test_text(text, sizeof text, i), &id));
		assert_int_equal(shards_of(f, "mail", rows[i].period), 1);
	}
	assert_int_equal(shards_of(f, "mail", "2026-05"), 1);
	assert_non_null(strstr(buf_cstr(&f->alarms), "more than a month"));
	/* imports go where they belong, any order, also into the past */
	static const int64_t months[] = { -200, -3, -200, -3, -1, -200 };
	for (unsigned i = 0; i < 6; i++)
		assert_ok(test_submit(s, STORE_IMPORT_FAMILY,
		    TEST_TIME + months[i] * MONTH, STR_EMPTY,
		    test_text(text, sizeof text, 100 + i), &id));
	store_close(&s);
	char period[SHARD_MAX_PERIOD + 1];
	for (unsigned i = 0; i < 6; i++) {
		period_format(period_of(TEST_TIME + months[i] * MONTH),
		    period);
		assert_int_equal(
		    shards_of(f, STORE_IMPORT_FAMILY, period), 1);
	}
	/* and are found there again */
	s = open_store(f, 0);
	assert_ok(test_submit(s, STORE_IMPORT_FAMILY,
	    TEST_TIME - 200 * MONTH, STR_EMPTY, STR("more"), &id));
	store_close(&s);
	struct inventory v;
	inventory_take(&v, f->path);
	assert_int_equal(v.messages, 5 + 6 + 1);
	assert_int_equal(v.shards, 2 + 3);
	inventory_done(&v);
}

/* A family that another process writes is refused, the rest works. */
static void
locked(void **state)
{
	struct fixture *f = *state;
	struct store *first = open_store(f, 0);
	submit_ok(first, STR("one"));
	struct store *second = open_store(f, 0);
	uint64_t id;
	assert_non_null(strstr(buf_cstr(&f->alarms), "another process"));
	assert_int_equal(test_submit(second, "mail", TEST_TIME, STR_EMPTY,
			     STR("two"), &id), RES_AGAIN);
	assert_ok(test_submit(
	    second, "audit", TEST_TIME, STR_EMPTY, STR("three"), &id));
	store_close(&first);
	assert_ok(test_submit(
	    second, "mail", TEST_TIME, STR_EMPTY, STR("four"), &id));
	store_close(&second);
}

static void
move(const char *top, const char *from, const char *to)
{
	char a[PATH_MAX], b[PATH_MAX];
	assert_ok(io_path(a, "%s/%s", top, from));
	assert_ok(io_path(b, "%s/%s", top, to));
	assert_int_equal(rename(a, b), 0);
}

/* Nothing is acknowledged into a folder that is not there any more. */
static void
removed(void **state)
{
	struct fixture *f = *state;
	uint64_t id = 0;
	struct inventory v;
	struct store *s = open_store(f, 0);
	submit_ok(s, STR("before"));
	move(f->path, "families", "away");
	assert_int_not_equal(test_submit(s, "mail", TEST_TIME, STR_EMPTY,
				 STR("lost"), &id), RES_OK);
	assert_int_equal(id, 0);
	/* nor into one that is no more the same */
	move(f->path, "away", "families");
	enum res r = RES_AGAIN;
	for (int i = 0; i < 100 && r != RES_OK; i++) {
		r = test_submit(s, "mail", TEST_TIME, STR_EMPTY,
		    STR("after"), &id);
		if (r != RES_OK)
			nanosleep(&(struct timespec){ 0, 100000000 }, NULL);
	}
	assert_ok(r);
	store_close(&s);
	assert_non_null(strstr(buf_cstr(&f->alarms), "was removed or moved"));
	inventory_take(&v, f->path);
	assert_int_equal(v.messages, 2);
	inventory_done(&v);
}

static void
refused(void **state)
{
	struct fixture *f = *state;
	struct store *s = open_store(f, 0);
	uint64_t id = 77;
	static const char *const families[] = { "", "-x", "Mail", "a/b", "..",
		"a-family-of-more-than-31-bytes-x" };
	for (size_t i = 0; i < sizeof families / sizeof families[0]; i++)
		assert_int_equal(test_submit(s, families[i], TEST_TIME,
				     STR_EMPTY, STR("x"), &id), RES_INVALID);
	char *large = malloc(SEGMENT_MAX_RECORD + 1);
	assert_non_null(large);
	memset(large, 'm', SEGMENT_MAX_RECORD + 1);
	assert_int_equal(test_submit(s, "mail", TEST_TIME,
			     str_of(large, SEGMENT_MAX_RECORD + 1), STR("x"),
			     &id), RES_LIMIT);
	assert_int_equal(id, 77);
	assert_ok(test_submit(s, "mail", TEST_TIME,
	    str_of(large, SEGMENT_MAX_RECORD), STR("x"), &id));
	free(large);
	/* a message needs a body, an event does not */
	struct store_message m = { .family = "audit", .time_us = TEST_TIME,
		.meta = STR("searched") };
	assert_int_equal(store_submit(s, &m, &id), RES_INVALID);
	m.type = FRAME_EVENT;
	assert_ok(store_submit(s, &m, &id));
	store_close(&s);
	struct store_options o = { .path = "/nonexistent/store",
		.clock = CLOCK_SYSTEM };
	struct err err = { "" };
	assert_int_not_equal(store_open(&o, &err, &s), RES_OK);
	assert_non_null(strstr(err.text, "/nonexistent/store"));
}

static uint64_t faked_type;

static int
faked_fs_type(const struct archive_io *io, const char *path, uint64_t *out)
{
	struct stat st;
	(void)io;
	*out = faked_type;
	return stat(path, &st); /* as statfs: nothing of what is not there */
}

/* Refused before anything is made there; what is not known to be bad, is
 * not. f_type is signed: CIFS comes with all upper bits set. */
static void
network(void **state)
{
	static const struct {
		uint64_t type;
		enum netfs kind;
		const char *name;
	} rows[] = { { 0x6969, NETFS_REFUSED, "NFS" },
		{ 0xff534d42, NETFS_REFUSED, "CIFS" },
		{ 0xffffffffff534d42, NETFS_REFUSED, "CIFS" },
		{ 0x01021997, NETFS_UNSURE, "9p" },
		{ 0x65735546, NETFS_UNSURE, "FUSE" },
		{ 0xef53, NETFS_LOCAL, "" }, { 0, NETFS_LOCAL, "" } };
	struct fixture *f = *state;
	struct archive_io io = archive_io_system;
	char path[PATH_MAX];
	const char *name;
	io.fs_type = faked_fs_type;
	assert_ok(io_path(path, "%s/not/there", f->path));
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct store *s = NULL;
		struct err err = { "" };
		const struct store_options o = { .path = f->path, .io = &io,
			.clock = { TEST_TIME } };
		faked_type = rows[i].type;
		assert_int_equal(netfs_at(&io, path, &name), rows[i].kind);
		assert_string_equal(name, rows[i].name);
		enum res r = store_open(&o, &err, &s);
		bool refused = rows[i].kind == NETFS_REFUSED;
		assert_int_equal(r, refused ? RES_UNSUPPORTED : RES_OK);
		assert_int_equal(strstr(err.text, name) != NULL &&
			strstr(err.text, "network file system") != NULL,
		    refused);
		store_close(&s);
	}
	assert_int_equal(netfs_at(&io, "not/there", &name), NETFS_LOCAL);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(bodies, setup, teardown),
		cmocka_unit_test_setup_teardown(chunks, setup, teardown),
		cmocka_unit_test_setup_teardown(threads, setup, teardown),
		cmocka_unit_test_setup_teardown(roll_by_size, setup, teardown),
		cmocka_unit_test_setup_teardown(roll_by_month, setup, teardown),
		cmocka_unit_test_setup_teardown(locked, setup, teardown),
		cmocka_unit_test_setup_teardown(removed, setup, teardown),
		cmocka_unit_test_setup_teardown(refused, setup, teardown),
		cmocka_unit_test_setup_teardown(network, setup, teardown),
	};
	return cmocka_run_group_tests_name("store", tests, NULL, NULL);
}
