#include "archive/store/shard.h"

#include "archive_test.h"
#include "base/codec.h"

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
	/* wherever it looked before */
	for (uint64_t i = 0; i < 16; i++) {
		assert_ok(segment_reader_find(r, i / 4, &fr));
		assert_ok(segment_reader_find(r, i % 4, &fr));
		assert_int_equal(fr.header.number, i % 4);
	}
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

/* --- recovery: archive.md §4 --- */

/* Three groups of one message each; where frames begin is noted. */
static void
three(struct fixture *f, uint64_t at[4])
{
	struct shard *s = create(f);
	static const char *const texts[] = { "one one one", "two two two",
		"three three" };
	for (int i = 0; i < 3; i++) {
		at[i] = s->durable;
		assert_ok(test_append(s, STR("meta"), str_c(texts[i])));
	}
	at[3] = s->durable;
	shard_close(&s);
}

static const char *
shard_dir(struct fixture *f)
{
	struct str s = arena_printf(
	    f->a, "%s/families/mail/2026-05.1", f->path);
	return s.ptr;
}

/* Everything in lost/, one behind the other. */
static struct str
lost_bytes(struct fixture *f)
{
	struct buf b;
	char command[PATH_MAX + 64], piece[4096];
	size_t n;
	buf_init(&b, 1 << 20);
	snprintf(command, sizeof command, "cat '%s'/lost/* 2>/dev/null",
	    shard_dir(f));
	FILE *p = popen(command, "r");
	assert_non_null(p);
	while ((n = fread(piece, 1, sizeof piece, p)) > 0)
		buf_add(&b, piece, n);
	pclose(p);
	struct str s = arena_dup(f->a, buf_str(&b));
	buf_done(&b);
	return s;
}

/* lost/ holds exactly these bytes; zeros at the end need not be kept. */
static void
assert_lost(struct fixture *f, struct str want)
{
	struct str lost = lost_bytes(f);
	assert_true(lost.len > 0 && lost.len <= want.len);
	assert_memory_equal(lost.ptr, want.ptr, lost.len);
	for (size_t i = lost.len; i < want.len; i++)
		assert_int_equal(want.ptr[i], 0);
}

static struct str
with_tail(struct fixture *f, struct str bytes, struct str tail)
{
	char *p = arena_alloc(f->a, bytes.len + tail.len);
	assert_non_null(p);
	memcpy(p, bytes.ptr, bytes.len);
	memcpy(p + bytes.len, tail.ptr, tail.len);
	return str_of(p, bytes.len + tail.len);
}

/* Reserved space is no damage and nothing lost. */
static void
zero_tail(void **state)
{
	struct fixture *f = *state;
	uint64_t at[4];
	struct shard *s;
	three(f, at);
	struct str whole = segment_bytes(f);
	assert_int_equal(whole.len, at[3]);
	char *zeros = arena_alloc(f->a, 100000);
	put_segment(f, with_tail(f, whole, str_of(zeros, 100000)));
	assert_ok(reopen(f, 0, &s));
	assert_int_equal(s->frames, 3);
	assert_int_equal(s->durable, at[3]);
	assert_true(shard_writable(s));
	shard_close(&s);
	assert_int_equal(segment_bytes(f).len, at[3]);
	assert_int_equal(lost_bytes(f).len, 0);
	assert_int_equal(f->alarms.len, 0);
}

/* A torn group goes to lost/ and is cut off, wherever it was torn. */
static void
torn_tail(void **state)
{
	struct fixture *f = *state;
	uint64_t at[4];
	struct shard *s;
	three(f, at);
	struct str whole = segment_bytes(f);
	for (uint64_t cut = at[2] + 1; cut < at[3]; cut += 13) {
		put_segment(f, str_sub(whole, 0, (size_t)cut));
		assert_ok(reopen(f, 0, &s));
		assert_int_equal(s->frames, 2);
		assert_int_equal(s->durable, at[2]);
		assert_true(shard_writable(s));
		/* and goes on with the same number */
		assert_ok(test_append(s, STR("meta"), STR("new")));
		assert_int_equal(s->frames, 3);
		shard_close(&s);
		assert_lost(f, str_sub(whole, (size_t)at[2],
				   (size_t)(cut - at[2])));
		char path[PATH_MAX];
		assert_ok(io_path(path, "%s/lost", shard_dir(f)));
		scratch_remove(path);
	}
	assert_int_equal(f->alarms.len, 0);
}

/* Whole frames nobody was told about stay. */
static void
whole_unacknowledged(void **state)
{
	struct fixture *f = *state;
	uint64_t at[4];
	struct shard *s;
	three(f, at);
	/* frame 2 says only that bytes below at[2] are durable */
	assert_ok(reopen(f, 0, &s));
	assert_int_equal(s->frames, 3);
	shard_close(&s);
	assert_int_equal(lost_bytes(f).len, 0);
}

/* Any flipped bit of an acknowledged frame is found, named and walked around;
 * nothing is cut. */
static void
flipped_bits(void **state)
{
	struct fixture *f = *state;
	uint64_t at[4];
	three(f, at);
	struct str whole = segment_bytes(f);
	char *bytes = arena_alloc(f->a, whole.len);
	memcpy(bytes, whole.ptr, whole.len);
	struct str damaged = str_of(bytes, whole.len);
	char wanted[64];
	snprintf(wanted, sizeof wanted, "damaged at %llu to %llu",
	    (unsigned long long)at[1], (unsigned long long)at[2]);
	for (uint64_t i = at[1]; i < at[2]; i++) {
		struct segment_reader *r;
		struct segment_frame fr;
		/* every bit over time, one of each byte */
		bytes[i] ^= (char)(1 << (i * 5 + i / 8) % 8);
		put_segment(f, damaged);
		assert_ok(segment_reader_open(shard_dir(f), NULL, NULL, &r));
		enum res res = segment_reader_at(r, at[1], &fr);
		if (res == RES_OK)
			res = segment_reader_check(r, &fr);
		assert_int_equal(res, RES_CORRUPT);
		assert_ok(segment_reader_resync(r, at[1] + 8, 1, &fr));
		assert_int_equal(fr.offset, at[2]);
		segment_reader_close(&r);
		if (i % 7 == 0) {
			struct shard *s;
			buf_reset(&f->alarms);
			assert_ok(reopen(f, 0, &s));
			assert_false(shard_writable(s));
			assert_int_equal(s->frames, 3);
			assert_int_equal(s->durable, at[3]);
			shard_close(&s);
			assert_non_null(
			    strstr(buf_cstr(&f->alarms), wanted));
			assert_int_equal(segment_bytes(f).len, whole.len);
		}
		bytes[i] = whole.ptr[i];
	}
	assert_int_equal(lost_bytes(f).len, 0);
}

/* The newest group is known durable only through the index or a successor. */
static void
damage_below_floor(void **state)
{
	struct fixture *f = *state;
	uint64_t at[4];
	struct shard *s;
	three(f, at);
	struct str whole = segment_bytes(f);
	char *bytes = arena_alloc(f->a, whole.len);
	memcpy(bytes, whole.ptr, whole.len);
	bytes[at[3] - 20] ^= 1;
	put_segment(f, str_of(bytes, whole.len));
	assert_ok(reopen(f, at[3], &s));
	assert_false(shard_writable(s));
	shard_close(&s);
	assert_non_null(strstr(buf_cstr(&f->alarms), "acknowledged data"));
	assert_int_equal(segment_bytes(f).len, whole.len);
	/* the file itself too short */
	buf_reset(&f->alarms);
	put_segment(f, str_sub(whole, 0, (size_t)at[2]));
	assert_ok(reopen(f, at[3], &s));
	assert_false(shard_writable(s));
	shard_close(&s);
	assert_non_null(strstr(buf_cstr(&f->alarms), "acknowledged data"));
	/* without that knowledge it is the torn end of a group */
	buf_reset(&f->alarms);
	put_segment(f, str_of(bytes, whole.len));
	assert_ok(reopen(f, 0, &s));
	assert_true(shard_writable(s));
	assert_int_equal(s->frames, 2);
	shard_close(&s);
	assert_int_equal(f->alarms.len, 0);
}

/* A page of zeros in the middle is damage, not the end. */
static void
zeroed_page(void **state)
{
	struct fixture *f = *state;
	uint64_t at[4];
	struct shard *s;
	three(f, at);
	struct str whole = segment_bytes(f);
	char *bytes = arena_alloc(f->a, whole.len);
	memcpy(bytes, whole.ptr, whole.len);
	memset(bytes + at[0], 0, (size_t)(at[1] - at[0]));
	put_segment(f, str_of(bytes, whole.len));
	assert_ok(reopen(f, 0, &s));
	assert_false(shard_writable(s));
	assert_true(s->holes);
	shard_close(&s);
	char wanted[64];
	snprintf(wanted, sizeof wanted, "damaged at 4096 to %llu",
	    (unsigned long long)at[1]);
	assert_non_null(strstr(buf_cstr(&f->alarms), wanted));
	struct segment_reader *r;
	struct segment_frame fr;
	assert_ok(segment_reader_open(shard_dir(f), NULL, NULL, &r));
	assert_int_equal(segment_reader_at(r, at[0], &fr), RES_CORRUPT);
	assert_ok(segment_reader_find(r, 2, &fr));
	assert_int_equal(fr.offset, at[2]);
	assert_int_equal(segment_reader_find(r, 0, &fr), RES_NOTFOUND);
	segment_reader_close(&r);
}

/* One group of three whose middle did not get to the disk. */
static void
reordered_group(void **state)
{
	struct fixture *f = *state;
	struct shard *s = create(f);
	struct draft d[3], *group[3];
	uint64_t at[4] = { s->durable };
	static const char *const texts[] = { "first", "second", "third" };
	for (size_t i = 0; i < 3; i++) {
		group[i] = &d[i];
		test_draft(&d[i], STR("meta"), str_c(texts[i]));
		assert_ok(shard_place(s, group, i, at[i], &d[i]));
		at[i + 1] = at[i] + d[i].header.total;
	}
	assert_ok(shard_append(s, group, 3));
	for (size_t i = 0; i < 3; i++)
		draft_done(&d[i]);
	shard_close(&s);
	struct str whole = segment_bytes(f);
	char *bytes = arena_alloc(f->a, whole.len);
	memcpy(bytes, whole.ptr, whole.len);
	memset(bytes + at[1], 0, (size_t)(at[2] - at[1]));
	put_segment(f, str_of(bytes, whole.len));
	assert_ok(reopen(f, 0, &s));
	assert_true(shard_writable(s));
	assert_int_equal(s->frames, 1);
	assert_int_equal(s->durable, at[1]);
	shard_close(&s);
	assert_lost(f, str_skip(str_of(bytes, whole.len), (size_t)at[1]));
	assert_int_equal(f->alarms.len, 0);
}

static void
bad_header(void **state)
{
	struct fixture *f = *state;
	uint64_t at[4];
	struct shard *s = NULL;
	three(f, at);
	struct str whole = segment_bytes(f);
	char *bytes = arena_alloc(f->a, whole.len);
	memcpy(bytes, whole.ptr, whole.len);
	bytes[100] ^= 1;
	put_segment(f, str_of(bytes, whole.len));
	assert_int_equal(reopen(f, 0, &s), RES_CORRUPT);
	assert_int_equal(segment_bytes(f).len, whole.len);
}

/* What a successor says wins: whole frames behind it go to lost/. */
static void
cut_by_successor(void **state)
{
	struct fixture *f = *state;
	uint64_t at[4];
	three(f, at);
	struct str whole = segment_bytes(f);
	assert_ok(shard_cut(&f->env, shard_dir(f), at[2]));
	assert_int_equal(segment_bytes(f).len, at[2]);
	assert_lost(f, str_skip(whole, (size_t)at[2]));
	assert_int_equal(f->alarms.len, 0);
	assert_int_equal(
	    shard_cut(&f->env, shard_dir(f), at[3]), RES_CORRUPT);
	assert_non_null(strstr(buf_cstr(&f->alarms), "data missing"));
	assert_int_equal(segment_bytes(f).len, at[2]);
}

/* A body that holds this very segment, at every alignment, stored as it is:
 * when its own header is damaged, nothing in it is taken for a frame. */
static void
mailed_segment(void **state)
{
	struct fixture *f = *state;
	uint64_t at[4];
	struct shard *s;
	three(f, at);
	struct str whole = segment_bytes(f);
	struct buf body;
	buf_init(&body, 1 << 20);
	uint64_t x = 88172645463325252u;
	for (int pad = 0; pad < 8; pad++) {
		for (int i = 0; i < 3000 + pad; i++) {
			x = x * 6364136223846793005u + 1442695040888963407u;
			buf_add_char(&body, (char)(x >> 56));
		}
		buf_add_str(&body, str_skip(whole, at[0]));
		while (body.len % 8 != 0)
			buf_add_char(&body, 'p');
	}
	assert_ok(reopen(f, 0, &s));
	/* stored as one raw zstd block: as a hostile sender would want it */
	struct draft d, *one = &d;
	uint8_t hash[32];
	draft_init(&d, FRAME_MESSAGE, TEST_TIME);
	assert_ok(digest_sha256(body.ptr, body.len, hash));
	assert_ok(draft_body_begin(&d, body.len, hash));
	static const uint8_t frame_head[] = { 0x28, 0xB5, 0x2F, 0xFD, 0xA0 };
	uint8_t sizes[4 + 3];
	put_le32(sizes, (uint32_t)body.len);
	uint32_t block = (uint32_t)body.len << 3 | 1; /* last, raw */
	sizes[4] = (uint8_t)block;
	sizes[5] = (uint8_t)(block >> 8);
	sizes[6] = (uint8_t)(block >> 16);
	buf_add(&d.bytes, frame_head, sizeof frame_head);
	buf_add(&d.bytes, sizes, sizeof sizes);
	buf_add_str(&d.bytes, buf_str(&body));
	assert_ok(draft_body_end(&d));
	assert_ok(shard_place(s, NULL, 0, s->durable, &d));
	uint64_t start = s->durable;
	assert_ok(shard_append(s, &one, 1));
	draft_done(&d);
	assert_ok(test_append(s, STR("meta"), STR("behind")));
	uint64_t end = s->durable, behind = 0;
	shard_close(&s);
	struct segment_reader *r;
	struct segment_frame fr;
	struct buf got;
	assert_ok(segment_reader_open(shard_dir(f), NULL, NULL, &r));
	assert_ok(segment_reader_at(r, start, &fr));
	assert_ok(test_body(r, &fr, &got)); /* and it comes back */
	assert_int_equal(got.len, body.len);
	assert_memory_equal(got.ptr, body.ptr, got.len);
	behind = segment_frame_end(&fr);
	segment_reader_close(&r);
	buf_done(&got);
	struct str all = segment_bytes(f);
	char *bytes = arena_alloc(f->a, all.len);
	memcpy(bytes, all.ptr, all.len);
	bytes[start + 9] ^= 4;
	put_segment(f, str_of(bytes, all.len));
	/* the bytes are really there, one of the eight aligned */
	size_t inside = 0;
	for (uint64_t i = start + 128; i < behind; i += 8)
		inside += memcmp(bytes + i, "\xF5HNF", 4) == 0;
	assert_true(inside >= 3);
	assert_ok(reopen(f, 0, &s));
	assert_false(shard_writable(s));
	assert_int_equal(s->frames, 5);
	assert_int_equal(s->durable, end);
	shard_close(&s);
	char wanted[64];
	snprintf(wanted, sizeof wanted, "damaged at %llu to %llu\n",
	    (unsigned long long)start, (unsigned long long)behind);
	assert_non_null(strstr(buf_cstr(&f->alarms), wanted));
	buf_done(&body);
}

static void
lock_and_seal(void **state)
{
	struct fixture *f = *state;
	struct shard *s = create(f), *other = NULL;
	assert_ok(test_append(s, STR("meta"), STR("one")));
	assert_int_equal(reopen(f, 0, &other), RES_DENIED);
	assert_ok(shard_seal(s, TEST_TIME));
	assert_false(shard_writable(s));
	assert_int_equal(test_append(s, STR("meta"), STR("two")), RES_IO);
	struct shard_link before = shard_link_of(s);
	shard_close(&s);
	assert_ok(reopen(f, 0, &s));
	assert_true(s->sealed);
	assert_false(shard_writable(s));
	struct shard_link after = shard_link_of(s);
	assert_int_equal(after.frames, 2);
	assert_memory_equal(before.root, after.root, 32);
	shard_close(&s);
}

/* Content that is damaged or erased on the disk is new mail again. */
static void
damaged_content_again(void **state)
{
	struct fixture *f = *state;
	struct shard *s = create(f);
	for (int erase = 0; erase < 2; erase++) {
		char path[PATH_MAX];
		uint8_t bad[40];
		memset(bad, erase ? 0 : 0x55, sizeof bad);
		uint64_t before = s->durable;
		struct str text = erase ? STR("erased") : STR("damaged");
		assert_ok(test_append(s, STR("meta"), text));
		/* the body block is the last of its frame */
		assert_ok(io_path(path, "%s/segment", s->dir));
		FILE *file = fopen(path, "r+b");
		assert_non_null(file);
		fseek(file, (long)(s->durable - 8 - sizeof bad), SEEK_SET);
		assert_int_equal(
		    fwrite(bad, 1, sizeof bad, file), sizeof bad);
		fclose(file);
		uint64_t next = s->durable;
		assert_ok(test_append(s, STR("meta"), text));
		struct segment_reader *r;
		struct segment_frame fr;
		assert_ok(segment_reader_open(s->dir, NULL, NULL, &r));
		assert_ok(segment_reader_at(r, before, &fr));
		assert_int_equal(segment_reader_check(r, &fr), RES_CORRUPT);
		assert_ok(segment_reader_at(r, next, &fr));
		assert_int_equal(fr.header.type, FRAME_MESSAGE);
		segment_reader_close(&r);
		/* the whole one is found from now on */
		uint64_t third = s->durable;
		assert_ok(test_append(s, STR("meta"), text));
		assert_ok(segment_reader_open(s->dir, NULL, NULL, &r));
		assert_ok(segment_reader_at(r, third, &fr));
		assert_int_equal(fr.header.type, FRAME_DELIVERY);
		segment_reader_close(&r);
	}
	shard_close(&s);
}

/* An erased block is told, the rest of the frame still reads. */
static void
erased(void **state)
{
	struct fixture *f = *state;
	uint64_t at[4];
	struct segment_reader *r;
	struct segment_frame fr;
	struct segment_content c;
	struct buf body;
	three(f, at);
	assert_ok(segment_reader_open(shard_dir(f), NULL, NULL, &r));
	assert_ok(segment_reader_at(r, at[1], &fr));
	struct str whole = segment_bytes(f);
	char *bytes = arena_alloc(f->a, whole.len);
	memcpy(bytes, whole.ptr, whole.len);
	memset(bytes + at[1] + frame_block_offset(&fr.header, BLOCK_BODY), 0,
	    (size_t)frame_padded(fr.header.stored[BLOCK_BODY]));
	segment_reader_close(&r);
	put_segment(f, str_of(bytes, whole.len));
	assert_ok(segment_reader_open(shard_dir(f), NULL, NULL, &r));
	assert_ok(segment_reader_at(r, at[1], &fr));
	assert_ok(segment_reader_load(r, f->a, &fr, NULL, &c));
	assert_int_equal(c.state[BLOCK_BODY], BLOCK_ERASED);
	assert_int_equal(c.state[BLOCK_META], BLOCK_WHOLE);
	assert_int_equal(c.state[BLOCK_EDITS], BLOCK_ABSENT);
	assert_str(c.meta, "meta");
	assert_int_equal(test_body(r, &fr, &body), RES_NOTFOUND);
	buf_done(&body);
	segment_reader_close(&r);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
		CASE(append_and_read),
		CASE(zero_tail),
		CASE(torn_tail),
		CASE(whole_unacknowledged),
		CASE(flipped_bits),
		CASE(damage_below_floor),
		CASE(zeroed_page),
		CASE(reordered_group),
		CASE(bad_header),
		CASE(cut_by_successor),
		CASE(mailed_segment),
		CASE(lock_and_seal),
		CASE(damaged_content_again),
		CASE(erased),
	};
	return cmocka_run_group_tests_name("shard", tests, NULL, NULL);
}
