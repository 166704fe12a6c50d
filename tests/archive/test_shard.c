#include "archive/shard.h"

#include "archive_test.h"

struct fixture {
	char path[PATH_MAX];
	struct shard_env env;
	struct arena *a;
	struct buf alarms;
};

static void
on_alarm(void *context, const char *line)
{
	struct buf *b = context;
	buf_add_c(b, line);
	buf_add_char(b, '\n');
}

static int
setup(void **state)
{
	struct store_identity id;
	struct fixture *f = calloc(1, sizeof *f);
	assert_non_null(f);
	f->a = arena_new(0);
	scratch_make(f->path);
	buf_init(&f->alarms, 100000);
	f->env = (struct shard_env){ .io = &archive_io_system,
		.store_path = f->path, .alarm = on_alarm,
		.alarm_context = &f->alarms };
	assert_ok(store_dir_create(&archive_io_system, f->path, NULL, &id));
	*state = f;
	return 0;
}

static int
teardown(void **state)
{
	struct fixture *f = *state;
	scratch_remove(f->path);
	arena_free(&f->a);
	buf_done(&f->alarms);
	free(f);
	return 0;
}

static struct shard *
create(struct fixture *f)
{
	struct shard *s;
	struct err err = { "" };
	const struct shard_link none = { .number = 0 };
	if (shard_create(&f->env, "mail", "2026-05", &none, TEST_TIME, &err,
		&s) != RES_OK)
		fail_msg("%s", err.text);
	return s;
}

static enum res
reopen(struct fixture *f, uint64_t applied, struct shard **out)
{
	struct shard_entry *entries;
	size_t count;
	assert_ok(store_dir_shards(
	    f->path, "mail", f->a, NULL, &entries, &count));
	assert_int_equal(count, 1);
	return shard_open(&f->env, &entries[0], applied, NULL, out);
}

static struct str
segment_bytes(struct fixture *f)
{
	char path[PATH_MAX];
	assert_ok(io_path(path, "%s/families/mail/2026-05.1/segment", f->path));
	return test_read_file(f->a, path);
}

static void
put_segment(struct fixture *f, struct str bytes)
{
	char path[PATH_MAX];
	assert_ok(io_path(path, "%s/families/mail/2026-05.1/segment", f->path));
	test_write_file(path, bytes);
}

static void
append_and_read(void **state)
{
	struct fixture *f = *state;
	struct shard *s = create(f);
	assert_ok(test_append(s, STR("m1"), STR("first")));
	assert_ok(test_append(s, STR("m2"), STR("second")));
	assert_ok(test_append(s, STR("m3"), STR("first"))); /* again */
	struct segment_reader *r;
	assert_ok(segment_reader_open(s->dir, NULL, NULL, &r));
	static const char *const bodies[] = { "first", "second", "first" };
	uint64_t at = SHARD_HEADER_BYTES;
	struct segment_frame fr;
	for (int i = 0; i < 3; i++) {
		struct segment_content c;
		struct buf body;
		assert_ok(segment_reader_at(r, at, &fr));
		assert_int_equal(fr.header.number, i);
		assert_int_equal(fr.header.type,
		    i == 2 ? FRAME_DELIVERY : FRAME_MESSAGE);
		assert_ok(segment_reader_load(r, f->a, &fr, NULL, &c));
		assert_int_equal(c.meta.ptr[1], '1' + i);
		assert_ok(test_body(r, &fr, &body));
		assert_str(buf_str(&body), bodies[i]);
		buf_done(&body);
		at = segment_frame_end(&fr);
	}
	assert_int_equal(segment_reader_at(r, at, &fr), RES_NOTFOUND);
	/* what comes later is seen by a reader already open */
	assert_ok(test_append(s, STR("m4"), STR("fourth")));
	assert_ok(segment_reader_at(r, at, &fr));
	assert_ok(segment_reader_find(r, 1, &fr));
	assert_int_equal(fr.header.number, 1);
	assert_int_equal(segment_reader_find(r, 4, &fr), RES_NOTFOUND);
	segment_reader_close(&r);
	shard_close(&s);
	assert_ok(reopen(f, 0, &s));
	assert_int_equal(s->frames, 4);
	assert_int_equal(segment_bytes(f).len, s->durable);
	/* dedupe outlives the restart */
	assert_ok(test_append(s, STR("m5"), STR("second")));
	assert_ok(segment_reader_open(s->dir, NULL, NULL, &r));
	assert_ok(segment_reader_find(r, 4, &fr));
	assert_int_equal(fr.header.type, FRAME_DELIVERY);
	segment_reader_close(&r);
	shard_close(&s);
	assert_int_equal(f->alarms.len, 0);
	put_segment(f, segment_bytes(f));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
		    append_and_read, setup, teardown),
	};
	return cmocka_run_group_tests_name("shard", tests, NULL, NULL);
}
