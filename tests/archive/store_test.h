/* Helpers to fill a store and to see what is in it. */
#ifndef STORE_TEST_H
#define STORE_TEST_H

#include "archive/store/store.h"
#include "archive_test.h"

static inline int
test_no_sync(const struct archive_io *io, int fd)
{
	(void)io;
	(void)fd;
	return 0;
}

static inline int
test_no_sync_dir(const struct archive_io *io, const char *path)
{
	(void)io;
	(void)path;
	return 0;
}

/* The system without waiting for the disk. */
static inline const struct archive_io *
test_fast_io(void)
{
	static struct archive_io io;
	io = archive_io_system;
	io.fdatasync = io.fsync = test_no_sync;
	io.fsync_dir = test_no_sync_dir;
	return &io;
}

/* Submit a body with this META; type 0 is a message. */
static inline enum res
test_submit_as(struct store *s, uint8_t type, const char *family,
    int64_t time_us, struct str meta, struct str body, uint64_t *out_id)
{
	struct arena *a = arena_new(0);
	struct spool *sp = spool_new(a, s);
	assert_non_null(sp);
	sink_push(spool_sink(sp), body.ptr, body.len);
	enum res r = sink_finish(spool_sink(sp));
	const struct store_message m = { .family = family, .time_us = time_us,
		.meta = meta, .body = sp, .type = type };
	if (r == RES_OK)
		r = store_submit(s, &m, out_id);
	arena_free(&a);
	return r;
}

static inline enum res
test_submit(struct store *s, const char *family, int64_t time_us,
    struct str meta, struct str body, uint64_t *out_id)
{
	return test_submit_as(
	    s, 0, family, time_us, meta, body, out_id);
}

/* How often contents stand in a store: one entry a message frame. */
struct inventory {
	struct arena *a;
	size_t messages, deliveries, frames, shards;
	size_t cap;
	uint8_t (*hashes)[32];
};

static inline void
inventory_frame(struct inventory *v, struct segment_reader *r,
    const struct segment_frame *f)
{
	struct segment_content c;
	struct arena *a = arena_new(0);
	struct err err = { "" };
	if (segment_reader_load(r, a, f, &err, &c) != RES_OK)
		fail_msg("%s", err.text);
	v->frames++;
	v->deliveries += f->header.type == FRAME_DELIVERY;
	if (f->header.type == FRAME_MESSAGE) {
		if (v->messages == v->cap) {
			v->cap = v->cap == 0 ? 256 : v->cap * 2;
			v->hashes = realloc(v->hashes, v->cap * 32);
			assert_non_null(v->hashes);
		}
		memcpy(v->hashes[v->messages++], c.body.sha256, 32);
	}
	if (f->header.type == FRAME_MESSAGE ||
	    f->header.type == FRAME_DELIVERY) {
		if (segment_reader_body(r, f, &err, sink_null()) != RES_OK)
			fail_msg("%s", err.text);
	}
	arena_free(&a);
}

/* Read all of a store; every frame must be whole. */
static inline void
inventory_take(struct inventory *v, const char *path)
{
	struct shard_entry *entries;
	*v = (struct inventory){ .a = arena_new(0) };
	assert_ok(store_dir_shards(
	    path, NULL, v->a, NULL, &entries, &v->shards));
	for (size_t i = 0; i < v->shards; i++) {
		struct segment_reader *r;
		struct segment_frame f;
		enum res res;
		uint64_t at = SHARD_HEADER_BYTES, number = 0;
		assert_ok(segment_reader_open(entries[i].dir, NULL, NULL, &r));
		while ((res = segment_reader_at(r, at, &f)) == RES_OK) {
			assert_int_equal(f.header.number, number++);
			inventory_frame(v, r, &f);
			at = segment_frame_end(&f);
		}
		assert_int_equal(res, RES_NOTFOUND);
		segment_reader_close(&r);
	}
}

static inline void
inventory_done(struct inventory *v)
{
	arena_free(&v->a);
	free(v->hashes);
}

static inline size_t
inventory_count(const struct inventory *v, struct str body)
{
	uint8_t hash[32];
	size_t n = 0;
	assert_ok(digest_sha256(body.ptr, body.len, hash));
	for (size_t i = 0; i < v->messages; i++)
		n += memcmp(v->hashes[i], hash, 32) == 0;
	return n;
}

/* A message of its own for each number, with a body of `size` bytes or, for
 * 0, of up to 3,000. */
static inline struct str
test_sized_text(char *out, size_t cap, unsigned long long n, size_t size)
{
	int head = snprintf(out, cap, "Subject: message %llu\r\n\r\n", n);
	size_t len = (size_t)head +
	    (size != 0 ? size : (size_t)(n * 7919 % 3000));
	uint64_t x = n + 88172645463325252u;
	for (size_t i = (size_t)head; i < len && i < cap; i++) {
		x = x * 6364136223846793005u + 1442695040888963407u;
		out[i] = (char)('A' + (x >> 58));
	}
	return str_of(out, len < cap ? len : cap);
}

static inline struct str
test_text(char *out, size_t cap, unsigned long long n)
{
	return test_sized_text(out, cap, n, 0);
}

#endif
