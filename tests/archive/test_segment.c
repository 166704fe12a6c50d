#include "archive/format/segment.h"

#include "archive/format/leaf.h"
#include "archive/format/merkle.h"
#include "base/codec.h"
#include "hn_test.h"
#include "keys/digest.h"

static struct shard_header
sample_shard(void)
{
	struct shard_header h = {
		.flags = 0x0102, .number = 7, .epoch = 3,
		.family = "mail", .period = "2026-11",
		.created_us = 1796060000000000, .tokenizer = "hanaper1",
		.previous = 6, .previous_bytes = 123456,
		.previous_frames = 99, .previous_note = "note text\n",
		.key = "key text",
	};
	for (uint8_t i = 0; i < 16; i++) {
		h.store_uuid[i] = i;
		h.nonce[i] = (uint8_t)(0x40 + i);
	}
	memset(h.previous_root, 0xAB, sizeof h.previous_root);
	return h;
}

/* The offsets are for ever: they stand here a second time as numbers. */
static void
shard_golden(void **state)
{
	uint8_t b[SHARD_HEADER_BYTES];
	struct shard_header h = sample_shard();
	shard_header_encode(&h, b);
	assert_memory_equal(b, "\x89HNSEG\r\n", 8);
	assert_int_equal(get_le16(b + 8), 1);
	assert_int_equal(get_le16(b + 10), 0x0102);
	assert_int_equal(get_le32(b + 12), 7);
	assert_int_equal(get_le32(b + 16), 3);
	assert_memory_equal(b + 20, h.store_uuid, 16);
	assert_memory_equal(b + 36, "mail\0\0\0", 7);
	assert_memory_equal(b + 68, "2026-11\0", 8);
	assert_int_equal(get_le64(b + 76), 1796060000000000);
	assert_memory_equal(b + 84, h.nonce, 16);
	assert_memory_equal(b + 100, "hanaper1\0\0", 10);
	assert_int_equal(get_le32(b + 116), 6);
	assert_int_equal(get_le64(b + 120), 123456);
	assert_int_equal(get_le64(b + 128), 99);
	assert_int_equal(b[136], 0xAB);
	assert_int_equal(b[167], 0xAB);
	assert_memory_equal(b + 168, "note text\n\0", 11);
	assert_memory_equal(b + 1192, "key text\0", 9);
	assert_memory_equal(b + 1320, "\nHanaper archive segment", 24);
	assert_int_equal(get_le32(b + 4092), crc32c(0, b, 4092));
	struct shard_header back;
	assert_ok(shard_header_decode(b, &back));
	assert_int_equal(back.flags, h.flags);
	assert_int_equal(back.previous_frames, 99);
	assert_string_equal(back.family, "mail");
	assert_string_equal(back.period, "2026-11");
	assert_string_equal(back.previous_note, "note text\n");
	assert_string_equal(back.key, "key text");
	assert_string_equal(back.tokenizer, "hanaper1");
}

static void
shard_full_texts(void **state)
{
	uint8_t b[SHARD_HEADER_BYTES];
	struct shard_header h = sample_shard(), back;
	memset(h.family, 'f', SHARD_MAX_FAMILY);
	memset(h.previous_note, 'n', SHARD_MAX_NOTE);
	memset(h.key, 'k', SHARD_MAX_KEY);
	shard_header_encode(&h, b);
	assert_ok(shard_header_decode(b, &back));
	assert_string_equal(back.family, h.family);
	assert_string_equal(back.previous_note, h.previous_note);
	assert_string_equal(back.key, h.key);
}

static void
shard_flips(void **state)
{
	uint8_t b[SHARD_HEADER_BYTES];
	struct shard_header h = sample_shard(), back;
	shard_header_encode(&h, b);
	for (size_t i = 0; i < sizeof b * 8; i++) {
		b[i / 8] ^= (uint8_t)(1u << i % 8);
		assert_int_equal(shard_header_decode(b, &back), RES_CORRUPT);
		b[i / 8] ^= (uint8_t)(1u << i % 8);
	}
	put_le16(b + 8, 2); /* a later version, whole */
	put_le32(b + 4092, crc32c(0, b, 4092));
	assert_int_equal(shard_header_decode(b, &back), RES_UNSUPPORTED);
}

static struct frame_header
sample_frame(void)
{
	struct frame_header h = {
		.type = FRAME_MESSAGE, .flags = 0, .number = 41,
		.time_us = 1796060000123456, .durable_upto = 4096,
		.stored = { 33, 0, 17, 100 }, .dictionary = 5,
		.body_plain = 2100, .crc = { 1, 2, 3, 4 },
	};
	memset(h.leaf, 0xCD, sizeof h.leaf);
	h.total = frame_total(&h);
	return h;
}

static void
frame_golden(void **state)
{
	uint8_t b[FRAME_HEADER_BYTES], hash[32], nonce[16];
	struct frame_header h = sample_frame(), back;
	memset(nonce, 9, sizeof nonce);
	assert_int_equal(h.total, 128 + 40 + 0 + 24 + 104);
	assert_int_equal(frame_block_offset(&h, BLOCK_META), 128);
	assert_int_equal(frame_block_offset(&h, BLOCK_EVIDENCE), 168);
	assert_int_equal(frame_block_offset(&h, BLOCK_EDITS), 168);
	assert_int_equal(frame_block_offset(&h, BLOCK_BODY), 192);
	assert_ok(frame_header_encode(&h, nonce, b));
	assert_memory_equal(b, "\xF5HNF", 4);
	assert_int_equal(b[4], 1);
	assert_int_equal(b[5], 1);
	assert_int_equal(get_le16(b + 6), 0);
	assert_int_equal(get_le64(b + 8), 41);
	assert_int_equal(get_le64(b + 16), 1796060000123456);
	assert_int_equal(get_le64(b + 24), 4096);
	assert_int_equal(get_le64(b + 32), h.total);
	assert_int_equal(get_le32(b + 40), 33);
	assert_int_equal(get_le32(b + 44), 0);
	assert_int_equal(get_le32(b + 48), 17);
	assert_int_equal(get_le32(b + 52), 5);
	assert_int_equal(get_le64(b + 56), 100);
	assert_int_equal(get_le64(b + 64), 2100);
	assert_int_equal(b[72], 0xCD);
	assert_int_equal(b[103], 0xCD);
	for (uint32_t i = 0; i < 4; i++)
		assert_int_equal(get_le32(b + 104 + 4 * i), i + 1);
	const struct str parts[] = { str_of(nonce, 16), str_of(b, 120) };
	assert_ok(digest_sha256_parts(parts, 2, hash));
	assert_memory_equal(b + 120, hash, 8);
	assert_ok(frame_header_decode(b, nonce, &back));
	assert_int_equal(back.number, 41);
	assert_int_equal(back.stored[BLOCK_BODY], 100);
	assert_int_equal(back.crc[3], 4);
	for (size_t i = 0; i < sizeof b * 8; i++) {
		b[i / 8] ^= (uint8_t)(1u << i % 8);
		assert_int_equal(
		    frame_header_decode(b, nonce, &back), RES_CORRUPT);
		b[i / 8] ^= (uint8_t)(1u << i % 8);
	}
	/* the tag is keyed: a frame of another shard is none here */
	nonce[0]++;
	assert_int_equal(frame_header_decode(b, nonce, &back), RES_CORRUPT);
}

/* Headers whose tag is right but whose lengths cannot be. */
static void
frame_lengths(void **state)
{
	static const struct {
		uint64_t meta, body;
		uint16_t flags;
		uint64_t more; /* added to total */
		enum res want;
	} rows[] = {
		{ 0, 0, 0, 0, RES_OK },
		{ 15, 0, 0, 0, RES_CORRUPT },
		{ 16, 47, 0, 0, RES_CORRUPT },
		{ 16, 48, 0, 0, RES_OK },
		{ 16, 48, 0, 8, RES_CORRUPT },
		{ FRAME_MAX_SMALL_BLOCK, 0, 0, 0, RES_OK },
		{ FRAME_MAX_SMALL_BLOCK + 1, 0, 0, 0, RES_CORRUPT },
		{ 0, FRAME_MAX_BODY_BLOCK, 0, 0, RES_OK },
		{ 0, FRAME_MAX_BODY_BLOCK + 1, 0, 0, RES_CORRUPT },
		{ 0, FRAME_BODY_FILE_BYTES, FRAME_BODY_IN_FILE, 0, RES_OK },
		{ 0, 81, FRAME_BODY_IN_FILE, 0, RES_CORRUPT },
		{ 0, FRAME_BODY_FRAME_BYTES, FRAME_BODY_IN_FRAME, 0, RES_OK },
		{ 0, 72, FRAME_BODY_IN_FRAME, 0, RES_CORRUPT },
		{ 0, FRAME_BODY_FILE_BYTES,
		    FRAME_BODY_IN_FILE | FRAME_BODY_IN_FRAME, 0, RES_CORRUPT },
	};
	uint8_t b[FRAME_HEADER_BYTES], nonce[16] = { 0 };
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct frame_header h = { .type = 1, .flags = rows[i].flags,
			.stored = { rows[i].meta, 0, 0, rows[i].body } };
		h.total = frame_total(&h) + rows[i].more;
		assert_ok(frame_header_encode(&h, nonce, b));
		assert_int_equal(
		    frame_header_decode(b, nonce, &h), rows[i].want);
	}
}

static void
blocks(void **state)
{
	uint8_t bytes[24] = "0123456789abcdefghi\0\0\0\0";
	struct frame_header h = { .stored = { 19, 0, 0, 0 } };
	h.crc[BLOCK_META] = crc32c(0, bytes, 24);
	assert_int_equal(
	    frame_block_check(&h, BLOCK_META, bytes), BLOCK_WHOLE);
	for (size_t i = 0; i < sizeof bytes * 8; i++) { /* padding too */
		bytes[i / 8] ^= (uint8_t)(1u << i % 8);
		assert_int_equal(frame_block_check(&h, BLOCK_META, bytes),
		    BLOCK_DAMAGED);
		bytes[i / 8] ^= (uint8_t)(1u << i % 8);
	}
	memset(bytes, 0, sizeof bytes);
	assert_int_equal(
	    frame_block_check(&h, BLOCK_META, bytes), BLOCK_ERASED);
	assert_int_equal(
	    frame_block_check(&h, BLOCK_EDITS, bytes), BLOCK_ABSENT);
	assert_string_equal(frame_block_name(BLOCK_EVIDENCE), "EVIDENCE");
}

static void
bodies(void **state)
{
	uint8_t out[FRAME_BODY_FILE_BYTES];
	struct frame_body b = { .file_bytes = 5000000, .file_crc = 0x01020304,
		.frame = 12, .offset = 8192 }, back;
	memset(b.salt, 1, sizeof b.salt);
	memset(b.sha256, 2, sizeof b.sha256);
	memset(b.file_name, 3, sizeof b.file_name);
	struct frame_header h = { .flags = FRAME_BODY_IN_FILE };
	h.stored[BLOCK_BODY] = frame_body_encode(h.flags, &b, out);
	assert_int_equal(h.stored[BLOCK_BODY], 80);
	assert_int_equal(out[15], 1);
	assert_int_equal(out[47], 2);
	assert_int_equal(get_le64(out + 48), 5000000);
	assert_int_equal(get_le32(out + 56), 0x01020304);
	assert_int_equal(get_le32(out + 60), 0);
	assert_int_equal(out[64], 3);
	assert_ok(frame_body_decode(&h, out, 80, &back));
	assert_int_equal(back.file_bytes, 5000000);
	assert_int_equal(
	    frame_body_decode(&h, out, 79, &back), RES_CORRUPT);
	h.flags = FRAME_BODY_IN_FRAME;
	h.stored[BLOCK_BODY] = frame_body_encode(h.flags, &b, out);
	assert_int_equal(h.stored[BLOCK_BODY], 64);
	assert_int_equal(get_le64(out + 48), 12);
	assert_int_equal(get_le64(out + 56), 8192);
	assert_ok(frame_body_decode(&h, out, 64, &back));
	assert_int_equal(back.frame, 12);
	assert_int_equal(back.offset, 8192);
	assert_int_equal(frame_body_encode(0, &b, out), 48);
}

static void
hex_is(const uint8_t *got, const char *want)
{
	struct buf b;
	buf_init(&b, 100);
	hex_encode(&b, got, 32);
	assert_str(buf_str(&b), want);
	buf_done(&b);
}

/* Computed with Python's hashlib from archive-format(5), not with our code. */
static void
leaf_golden(void **state)
{
	uint8_t salt[16], plain[32], c[4][32] = { 0 }, leaf[32];
	struct shard_header s = sample_shard();
	struct frame_header h = sample_frame();
	memset(salt, 0x11, sizeof salt);
	assert_ok(digest_sha256("abc", 3, plain));
	assert_ok(leaf_commit(BLOCK_META, salt, plain, c[0]));
	assert_ok(leaf_commit(BLOCK_EDITS, salt, plain, c[2]));
	assert_ok(leaf_commit(BLOCK_BODY, salt, plain, c[3]));
	assert_ok(leaf_hash(&s, &h, c, leaf));
	hex_is(c[0], "088fd13274f92c3c902ad28f4ec4869b"
	    "e59dbf76d2ea498b8938bb56bc9d590a");
	hex_is(c[3], "db21f65ecd64d37dc5e7e6203c4fa81f"
	    "66eb810e94cde728aa26a23d6f64b575");
	hex_is(leaf, "849d87e78fd353ab7cc6cbf3da8e7632"
	    "927747cfbee2c1e0ace5b7496f6f42b9");
	assert_ok(leaf_commit(BLOCK_EVIDENCE, salt, plain, c[1]));
	hex_is(c[1], "e9caf3622c54e24f837edd54a35e2923"
	    "3b1b1680a887f4ba1f1fefa5d5644eb6");
}

/* The leaves and heads that RFC 6962 implementations share as test vectors
 * (certificate-transparency's merkle tree tests). */
static void
merkle_known(void **state)
{
	static const struct {
		const char *leaf, *root;
	} rows[] = {
		{ "", "6e340b9cffb37a989ca544e6bb780a2c"
		      "78901d3fb33738768511a30617afa01d" },
		{ "00", "fac54203e7cc696cf0dfcb42c92a1d9d"
			"baf70ad9e621f4bd8d98662f00e3c125" },
		{ "10", "aeb6bcfe274b70a14fb067a5e5578264"
			"db0fa9b51af5e0ba159158f329e06e77" },
		{ "2021", "d37ee418976dd95753c1c73862b9398f"
			  "a2a2cf9b4ff0fdfe8b30cd95209614b7" },
		{ "3031", "4e3bbb1f7b478dcfe71fb631631519a3"
			  "bca12c9aefca1612bfce4c13a86264d4" },
		{ "40414243", "76e67dadbcdf1e10e1b74ddc608abd2f"
			      "98dfb16fbce75277b5232a127f2087ef" },
		{ "5051525354555657", "ddb89be403809e325750d3d263cd7892"
				      "9c2942b7942a34b77e122c9594a74c8c" },
		{ "606162636465666768696a6b6c6d6e6f",
		    "5dc9da79a70659a9ad559cb701ded9a2"
		    "ab9d823aad2f4960cfe370eff4604328" },
	};
	struct merkle m;
	uint8_t root[32];
	merkle_init(&m);
	assert_ok(merkle_root(&m, root));
	hex_is(root, "e3b0c44298fc1c149afbf4c8996fb924"
		     "27ae41e4649b934ca495991b7852b855");
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct buf leaf;
		uint8_t hash[32];
		buf_init(&leaf, 100);
		assert_ok(hex_decode(str_c(rows[i].leaf), &leaf));
		const struct str parts[] = { str_of("\0", 1), buf_str(&leaf) };
		assert_ok(digest_sha256_parts(parts, 2, hash));
		assert_ok(merkle_add(&m, hash));
		assert_ok(merkle_root(&m, root));
		hex_is(root, rows[i].root);
		buf_done(&leaf);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(shard_golden),
		cmocka_unit_test(shard_full_texts),
		cmocka_unit_test(shard_flips),
		cmocka_unit_test(frame_golden),
		cmocka_unit_test(frame_lengths),
		cmocka_unit_test(blocks),
		cmocka_unit_test(bodies),
		cmocka_unit_test(leaf_golden),
		cmocka_unit_test(merkle_known),
	};
	return cmocka_run_group_tests_name("segment", tests, NULL, NULL);
}
