#include "auth/bodyhash.h"

#include "auth_test.h"

/* One vector each of simple and relaxed (base64 of SHA-256). */
static const struct {
	const char *body;
	size_t len;
	const char *simple, *relaxed;
} vectors[] = {
#define EMPTY_SIMPLE  "frcCV1k9oG9oKj3dpUqdJg1PxRT2RSN/XKdLCPjaYaY="
#define EMPTY_RELAXED "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU="
#define A_LINE        "jkYhN5eG70Kk/sFVzVJcKR3X2zwf3jR4Ui9PYcA/0b0="
	{ "", 0, EMPTY_SIMPLE, EMPTY_RELAXED },
	{ "\r\n\r\n\r\n", 6, EMPTY_SIMPLE, EMPTY_RELAXED },
	{ " \r\n", 3,
	    "a99mtb8qROZYvqLuhmlasVCgbmAL9nzVzOJFrVSWLGE=", EMPTY_RELAXED },
	{ " \t\r\n\r\n", 6,
	    "u0A/YWu2LwxHPEJTRgHj2P4k+mGt1J9R9M26i9WFzik=", EMPTY_RELAXED },
	{ "a", 1, A_LINE, A_LINE },
	{ "a\r\n\r\n\r\n", 7, A_LINE, A_LINE },
	{ "a \t b  \r\n", 9, "8N0Wkq/Kx3L/G11k7gUD1Z/2XOrmoRkK/hReal/Levs=",
	    "SuEZjyiTjUp1XHpGpmLw9XKayjy3FMrk431guExO6cw=" },
	{ "\ta\r\n", 4, "8vgV/pay+tyckWAT/oy9pUSGVzefr12RgMNKG7OR7L0=",
	    "+XtPzaPbbZ5SxJybKNm0w8KWahR3VLbbOmDeeofaSbk=" },
	{ "a\r\n \r\n", 6,
	    "ZO3D7rdoCJvvsca7ByQ7rWtdZIR/wo1wyF+eBMjazgQ=", A_LINE },
	{ "a\r\n\t\r\n\r\n", 8,
	    "7ex0Giok8IzHhSrOQZFYyZKzoUDQPaZldd15QaMAPIg=", A_LINE },
	{ " C \r\nD \t E\r\n\r\n\r\n", 16,
	    "NOeivbQlDH9TmNKJUw7D53wZfsk8YMZ/hTuVVwTgi8s=",
	    "unak6JHq0wL+Q1HP7dW1tjBx9FLA6DffoZ0qrLwbbpo=" },
	{ "a\nb\r\n", 5, "CZCOWXbvVqHUlpngJvaSXBQ16goH5zAC0PHlq+eOhjQ=",
	    "CZCOWXbvVqHUlpngJvaSXBQ16goH5zAC0PHlq+eOhjQ=" },
	{ "a\rb\r\n", 5, "LyKRrVaOri6zT8fJNyWWbX0dJvvNQVCly5aCYrYNasE=",
	    "LyKRrVaOri6zT8fJNyWWbX0dJvvNQVCly5aCYrYNasE=" },
	{ "a\0b\r\n", 5, "7uTTqDM1tKte8yrdskzi9pZiTXxsZOijxNHq9IsNxd4=",
	    "7uTTqDM1tKte8yrdskzi9pZiTXxsZOijxNHq9IsNxd4=" },
	{ "\xc3\xa9\r\n", 4, "ZNpmmxK77aDKjyhAiRvYg05bggbyTHcD4grB1HJhKw4=",
	    "ZNpmmxK77aDKjyhAiRvYg05bggbyTHcD4grB1HJhKw4=" },
};

static void
expect_hash(const struct bodyhash_set *s, size_t index, const char *base64)
{
	struct buf b;
	buf_init(&b, 100);
	base64_encode(&b, bodyhash_digest(s, index), 32);
	assert_str(buf_str(&b), base64);
	buf_done(&b);
}

static void
known_hashes(void **state)
{
	for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++)
		for (size_t step = 1; step <= vectors[i].len + 1; step++) {
			struct arena *a = arena_new(0);
			struct bodyhash_set *s = bodyhash_new(a);
			size_t simple, relaxed;
			assert_ok(bodyhash_want(
			    s, CANON_SIMPLE, BODYHASH_WHOLE, &simple));
			assert_ok(bodyhash_want(
			    s, CANON_RELAXED, BODYHASH_WHOLE, &relaxed));
			struct sink *sink = bodyhash_sink(s);
			for (size_t at = 0; at < vectors[i].len; at += step) {
				struct str part = str_sub(
				    str_of(vectors[i].body, vectors[i].len), at,
				    step);
				sink_push(sink, part.ptr, part.len);
			}
			assert_ok(sink_finish(sink));
			expect_hash(s, simple, vectors[i].simple);
			expect_hash(s, relaxed, vectors[i].relaxed);
			arena_free(&a);
		}
}

/* A body larger than all that is held back, from a little generator. */
static void
fill(char *p, size_t len)
{
	uint32_t x = 1;
	for (size_t i = 0; i < len; i++) {
		x = x * 1664525 + 1013904223;
		p[i] = "abcdefgh \r\n\t"[(x >> 24) % 12];
	}
	for (size_t i = 79; i + 1 < len; i += 80)
		memcpy(p + i, "\r\n", 2);
	memcpy(p + len - 3, "x\r\n", 3);
}

#define BIG 100000

/* All l= values around every border, many at once, whatever the chunks. */
static void
lengths(void **state)
{
	static char body[BIG];
	static const size_t steps[] = { 1, 3, 80, 4095, 8192, 16384, 16385,
		65536, BIG };
	static const uint64_t want[] = { 0, 1, 2, 4095, 4096, 4097, 8191, 8192,
		8193, 16383, 16384, 16385, 24576, 32768, 65535, 65536, 65537,
		90000 };
	enum {
		WANTS = sizeof want / sizeof *want
	};
	fill(body, BIG);
	struct arena *a = arena_new(0);
	struct buf canonical;
	buf_init(&canonical, 2 * BIG);
	struct sink *c =
	    canon_body_reference(a, CANON_RELAXED, sink_buf(a, &canonical));
	sink_push(c, body, BIG);
	assert_ok(sink_finish(c));
	assert_true(canonical.len > want[WANTS - 1]);
	for (size_t t = 0; t < sizeof steps / sizeof *steps; t++) {
		struct arena *b = arena_new(0);
		struct bodyhash_set *s = bodyhash_new(b);
		size_t index[WANTS + 2];
		uint8_t digest[32];
		for (size_t i = 0; i < WANTS; i++)
			assert_ok(bodyhash_want(s, CANON_RELAXED,
			    want[WANTS - 1 - i], &index[WANTS - 1 - i]));
		assert_ok(bodyhash_want(
		    s, CANON_RELAXED, canonical.len, &index[WANTS]));
		assert_ok(bodyhash_want(
		    s, CANON_RELAXED, BODYHASH_WHOLE, &index[WANTS + 1]));
		struct sink *sink = bodyhash_sink(s);
		for (size_t at = 0; at < BIG; at += steps[t]) {
			struct str part =
			    str_sub(str_of(body, BIG), at, steps[t]);
			sink_push(sink, part.ptr, part.len);
		}
		assert_ok(sink_finish(sink));
		for (size_t i = 0; i < WANTS; i++) {
			assert_ok(digest_sha256(
			    canonical.ptr, (size_t)want[i], digest));
			assert_memory_equal(
			    bodyhash_digest(s, index[i]), digest, 32);
		}
		assert_ok(digest_sha256(canonical.ptr, canonical.len, digest));
		for (size_t i = WANTS; i < WANTS + 2; i++)
			assert_memory_equal(
			    bodyhash_digest(s, index[i]), digest, 32);
		assert_int_equal(
		    bodyhash_canonical_length(s, index[0]), canonical.len);
		arena_free(&b);
	}
	buf_done(&canonical);
	arena_free(&a);
}

static void
wants(void **state)
{
	struct arena *a = arena_new(0);
	struct bodyhash_set *s = bodyhash_new(a);
	size_t first, same, other;
	assert_ok(bodyhash_want(s, CANON_SIMPLE, BODYHASH_WHOLE, &first));
	assert_ok(bodyhash_want(s, CANON_RELAXED, BODYHASH_WHOLE, &other));
	assert_ok(bodyhash_want(s, CANON_SIMPLE, BODYHASH_WHOLE, &same));
	assert_int_equal(first, same);
	assert_int_not_equal(first, other);
	for (uint64_t l = 1; l <= BODYHASH_MAX - 2; l++)
		assert_ok(bodyhash_want(s, CANON_SIMPLE, l, &other));
	assert_int_equal(
	    bodyhash_want(s, CANON_SIMPLE, 1000, &other), RES_LIMIT);
	assert_ok(bodyhash_want(s, CANON_SIMPLE, 5, &other));
	struct sink *sink = bodyhash_sink(s);
	assert_ptr_equal(bodyhash_sink(s), sink);
	assert_int_equal(
	    bodyhash_want(s, CANON_SIMPLE, 5, &other), RES_INVALID);
	assert_ok(sink_finish(sink));
	arena_free(&a);
	a = arena_new(0);
	s = bodyhash_new(a);
	sink = bodyhash_sink(s); /* nothing wanted */
	sink_push(sink, "x", 1);
	assert_ok(sink_finish(sink));
	arena_free(&a);
}

/* No memory is taken per chunk. */
static void
constant_memory(void **state)
{
	static char chunk[65536];
	fill(chunk, sizeof chunk);
	struct arena *a = arena_new(0);
	struct bodyhash_set *s = bodyhash_new(a);
	size_t index;
	assert_ok(bodyhash_want(s, CANON_RELAXED, BODYHASH_WHOLE, &index));
	assert_ok(bodyhash_want(s, CANON_SIMPLE, BODYHASH_WHOLE, &index));
	struct sink *sink = bodyhash_sink(s);
	size_t before = arena_used(a);
	for (int i = 0; i < 64; i++)
		sink_push(sink, chunk, sizeof chunk);
	assert_int_equal(arena_used(a), before);
	assert_ok(sink_finish(sink));
	arena_free(&a);
}

/* --- for the diagnosis ---------------------------------------------------- */
static void
digest_of(struct str text, uint8_t out[32])
{
	assert_ok(digest_sha256(text.ptr, text.len, out));
}

static enum res
find_cut(
    struct str body, size_t step, const uint8_t want[32], uint64_t *out_length)
{
	struct arena *a = arena_new(0);
	struct bodyhash_set *s = bodyhash_new(a);
	size_t index;
	assert_ok(bodyhash_want(s, CANON_RELAXED, BODYHASH_WHOLE, &index));
	struct sink *sink = bodyhash_sink(s);
	for (size_t at = 0; at < body.len; at += step) {
		struct str part = str_sub(body, at, step);
		sink_push(sink, part.ptr, part.len);
	}
	assert_ok(sink_finish(sink));
	enum res r = bodyhash_find_cut(s, index, want, out_length);
	arena_free(&a);
	return r;
}

static void
cuts(void **state)
{
	uint8_t want[32];
	uint64_t length;
	struct str body = STR("one\r\ntwo\r\n\r\n\r\n-- \r\nfooter\r\n");
	digest_of(STR("one\r\ntwo\r\n"), want);
	for (size_t step = 1; step < 40; step++) {
		assert_ok(find_cut(body, step, want, &length));
		assert_int_equal(length, 10);
	}
	digest_of(STR("one\r\n"), want);
	assert_ok(find_cut(body, 9, want, &length));
	assert_int_equal(length, 5);
	digest_of(STR("one\r\ntwo\r\n\r\n"), want); /* not canonical */
	assert_int_equal(find_cut(body, 9, want, &length), RES_NOTFOUND);
	digest_of(STR("two\r\n"), want);
	assert_int_equal(find_cut(body, 9, want, &length), RES_NOTFOUND);
	digest_of(STR("one\r\ntwo\r\n\r\n\r\n--\r\nfooter\r\n"), want);
	assert_int_equal(find_cut(body, 9, want, &length), RES_NOTFOUND);
}

/* Behind a long body: the hash goes on from where the tail begins. */
static void
cut_of_a_long_body(void **state)
{
	static char body[BIG + 1000];
	uint8_t want[32];
	uint64_t length;
	for (size_t i = 0; i < sizeof body; i++)
		body[i] = i % 50 == 48 ? '\r' : i % 50 == 49 ? '\n' : 'x';
	struct str original = str_of(body, BIG);
	digest_of(original, want);
	for (size_t step = 1000; step < 70000; step += 6789) {
		assert_ok(
		    find_cut(str_of(body, BIG + 1000), step, want, &length));
		assert_int_equal(length, BIG);
	}
	/* too long ago */
	digest_of(str_of(body, BIG - 50000), want);
	assert_int_equal(find_cut(original, 4096, want, &length), RES_NOTFOUND);
	/* more lines than are tried */
	digest_of(str_of(body, BIG - 50 * (BODYHASH_MAX_CUTS + 1)), want);
	assert_int_equal(find_cut(original, 4096, want, &length), RES_NOTFOUND);
}

static void
whole_text(void **state)
{
	static char body[BODYHASH_TAIL_MAX + 2];
	memset(body, 'x', sizeof body);
	for (size_t len = BODYHASH_TAIL_MAX - 3; len < BODYHASH_TAIL_MAX;
	     len++) {
		struct arena *a = arena_new(0);
		struct bodyhash_set *s = bodyhash_new(a);
		size_t index;
		struct str text;
		assert_ok(
		    bodyhash_want(s, CANON_SIMPLE, BODYHASH_WHOLE, &index));
		struct sink *sink = bodyhash_sink(s);
		sink_push(sink, body, len);
		assert_ok(sink_finish(sink)); /* adds CRLF */
		enum res r = bodyhash_text(s, index, &text);
		assert_int_equal(
		    r, len + 2 <= BODYHASH_TAIL_MAX ? RES_OK : RES_NOTFOUND);
		if (r == RES_OK)
			assert_int_equal(text.len, len + 2);
		arena_free(&a);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(known_hashes),
		cmocka_unit_test(lengths),
		cmocka_unit_test(wants),
		cmocka_unit_test(constant_memory),
		cmocka_unit_test(cuts),
		cmocka_unit_test(cut_of_a_long_body),
		cmocka_unit_test(whole_text),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
