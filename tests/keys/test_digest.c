#include "keys/digest.h"

#include "base/codec.h"
#include "hn_test.h"

static void
assert_hex(const uint8_t got[DIGEST_LEN], const char *want)
{
	struct buf hex;
	buf_init(&hex, 256);
	hex_encode(&hex, got, DIGEST_LEN);
	assert_str(buf_str(&hex), want);
	buf_done(&hex);
}

/* FIPS 180-4 examples */
static const struct {
	const char *text, *hex;
} vectors[] = {
	{ "", "e3b0c44298fc1c149afbf4c8996fb924"
	      "27ae41e4649b934ca495991b7852b855" },
	{ "abc", "ba7816bf8f01cfea414140de5dae2223"
		 "b00361a396177a9cb410ff61f20015ad" },
	{ "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
	    "248d6a61d20638b8e5c026930c3e6039"
	    "a33ce45964ff2167f6ecedd419db06c1" },
};

static void
one_go(void **state)
{
	uint8_t out[DIGEST_LEN];
	for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++) {
		assert_ok(digest_sha256(
		    vectors[i].text, strlen(vectors[i].text), out));
		assert_hex(out, vectors[i].hex);
	}
	assert_ok(digest_sha256(NULL, 0, out));
	assert_hex(out, vectors[0].hex);
}

static void
any_split(void **state)
{
	const char *text = vectors[2].text;
	size_t len = strlen(text);
	for (size_t cut = 0; cut <= len; cut++) {
		uint8_t out[DIGEST_LEN];
		struct arena *a = arena_new(0);
		struct sink *s = digest_sink(a, out);
		assert_non_null(s);
		sink_push(s, text, cut);
		sink_push(s, NULL, 0);
		for (size_t i = cut; i < len; i++)
			sink_push(s, text + i, 1);
		assert_ok(sink_finish(s));
		assert_hex(out, vectors[2].hex);
		struct str parts[] = { str_of(text, cut), STR_EMPTY,
			str_of(text + cut, len - cut) };
		assert_ok(digest_sha256_parts(parts, 3, out));
		assert_hex(out, vectors[2].hex);
		arena_free(&a);
	}
}

static void
peek_and_fork_at_every_point(void **state)
{
	const char *text = vectors[2].text;
	size_t len = strlen(text);
	for (size_t cut = 0; cut <= len; cut++) {
		uint8_t out[DIGEST_LEN], got[DIGEST_LEN], want[DIGEST_LEN];
		struct arena *a = arena_new(0);
		struct sink *s = digest_sink(a, out);
		sink_push(s, text, cut);
		assert_ok(digest_sha256(text, cut, want));
		assert_ok(digest_peek(s, got));
		assert_memory_equal(got, want, DIGEST_LEN);
		struct sink *fork = digest_fork(a, s);
		assert_non_null(fork);
		sink_push(fork, "other", 5);
		sink_push(s, text + cut, len - cut);
		assert_ok(sink_finish(s));
		assert_hex(out, vectors[2].hex);
		struct str parts[] = { str_of(text, cut), STR("other") };
		assert_ok(digest_sha256_parts(parts, 2, want));
		assert_ok(digest_peek(fork, got));
		assert_memory_equal(got, want, DIGEST_LEN);
		assert_ok(sink_finish(fork));
		assert_int_equal(digest_peek(s, got), RES_INVALID);
		assert_null(digest_fork(a, s));
		arena_free(&a);
	}
}

static void
unfinished_sink_is_freed(void **state)
{
	uint8_t out[DIGEST_LEN];
	struct arena *a = arena_new(0);
	struct sink *s = digest_sink(a, out);
	sink_push(s, "abc", 3);
	arena_free(&a);
	a = arena_new(16);
	assert_null(digest_sink(a, out));
	arena_free(&a);
}

static void
finish_twice_is_invalid(void **state)
{
	uint8_t out[DIGEST_LEN];
	struct arena *a = arena_new(0);
	struct sink *s = digest_sink(a, out);
	assert_ok(sink_finish(s));
	assert_int_equal(sink_finish(s), RES_INVALID);
	arena_free(&a);
}

/* RFC 4231 §4.2, §4.3, §4.7 (a key longer than the block) */
static void
hmac(void **state)
{
	uint8_t out[DIGEST_LEN];
	char key[131];
	memset(key, 0x0b, 20);
	assert_ok(digest_hmac(str_of(key, 20), STR("Hi There"), out));
	assert_hex(out, "b0344c61d8db38535ca8afceaf0bf12b"
			"881dc200c9833da726e9376c2e32cff7");
	assert_ok(digest_hmac(
	    STR("Jefe"), STR("what do ya want for nothing?"), out));
	assert_hex(out, "5bdcc146bf60754e6a042426089575c7"
			"5a003f089d2739839dec58b964ec3843");
	memset(key, 0xaa, sizeof key);
	assert_ok(digest_hmac(str_of(key, sizeof key),
	    STR("Test Using Larger Than Block-Size Key - Hash Key First"),
	    out));
	assert_hex(out, "60e431591ee0b67f0d8a26aacbf5b77f"
			"8e0bc6213728c5140546040f0ee37f54");
	/* exactly one block is not hashed first */
	memset(key, 0, sizeof key);
	uint8_t other[DIGEST_LEN];
	assert_ok(digest_hmac(str_of(key, 64), STR("x"), out));
	assert_ok(digest_hmac(STR_EMPTY, STR("x"), other));
	assert_memory_equal(out, other, DIGEST_LEN);
}

static void
equal(void **state)
{
	assert_true(digest_equal("abc", "abc", 3));
	assert_false(digest_equal("abc", "abd", 3));
	assert_false(digest_equal("bbc", "abc", 3));
	assert_true(digest_equal(NULL, NULL, 0));
}

static void
random_bytes(void **state)
{
	static uint8_t big[70000];
	uint8_t a[16], b[16];
	assert_ok(digest_random(a, sizeof a));
	assert_ok(digest_random(b, sizeof b));
	assert_memory_not_equal(a, b, sizeof a);
	assert_ok(digest_random(big, sizeof big));
	size_t zeros = 0;
	for (size_t i = 65536; i < sizeof big; i++)
		zeros += big[i] == 0;
	assert_true(zeros < 200); /* the second round was filled too */
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_go),
		cmocka_unit_test(any_split),
		cmocka_unit_test(peek_and_fork_at_every_point),
		cmocka_unit_test(unfinished_sink_is_freed),
		cmocka_unit_test(finish_twice_is_invalid),
		cmocka_unit_test(hmac),
		cmocka_unit_test(equal),
		cmocka_unit_test(random_bytes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
