#include "hn_test.h"

#include <stdio.h>

#include "base/codec.h"
#include "base/word.h"

static void
test_integers(void **state)
{
	(void)state;
	uint8_t b[8];
	put_le16(b, 0xfedc);
	assert_memory_equal(b, "\xdc\xfe", 2);
	assert_int_equal(get_le16(b), 0xfedc);
	put_le32(b, 0xfedcba98);
	assert_memory_equal(b, "\x98\xba\xdc\xfe", 4);
	assert_int_equal(get_le32(b), 0xfedcba98);
	put_le64(b, UINT64_C(0xfedcba9876543210));
	assert_memory_equal(b, "\x10\x32\x54\x76\x98\xba\xdc\xfe", 8);
	assert_true(get_le64(b) == UINT64_C(0xfedcba9876543210));
	assert_int_equal(get_be16((const uint8_t *)"\xfe\xdc"), 0xfedc);
	assert_int_equal(
	    get_be32((const uint8_t *)"\xfe\xdc\xba\x98"), 0xfedcba98);
}

/* RFC 4648 §10. */
static const struct {
	const char *plain, *base64, *hex;
} vectors[] = {
	{ "", "", "" },
	{ "f", "Zg==", "66" },
	{ "fo", "Zm8=", "666f" },
	{ "foo", "Zm9v", "666f6f" },
	{ "foob", "Zm9vYg==", "666f6f62" },
	{ "fooba", "Zm9vYmE=", "666f6f6261" },
	{ "foobar", "Zm9vYmFy", "666f6f626172" },
};

static void
test_vectors(void **state)
{
	(void)state;
	struct buf b;
	buf_init(&b, 100);
	for (size_t i = 0; i < sizeof vectors / sizeof vectors[0]; i++) {
		const char *plain = vectors[i].plain;
		base64_encode(&b, plain, strlen(plain));
		assert_str(buf_str(&b), vectors[i].base64);
		buf_reset(&b);
		assert_ok(base64_decode(str_c(vectors[i].base64), false, &b));
		assert_str(buf_str(&b), plain);
		buf_reset(&b);
		hex_encode(&b, plain, strlen(plain));
		assert_str(buf_str(&b), vectors[i].hex);
		buf_reset(&b);
		assert_ok(hex_decode(str_c(vectors[i].hex), &b));
		assert_str(buf_str(&b), plain);
		buf_reset(&b);
	}
	buf_done(&b);
}

static void
test_all_bytes(void **state)
{
	(void)state;
	uint8_t all[256];
	struct buf text, back;
	buf_init(&text, 1000);
	buf_init(&back, 1000);
	for (int i = 0; i < 256; i++)
		all[i] = (uint8_t)i;
	for (size_t n = 250; n <= 256; n++) {
		base64_encode(&text, all, n);
		assert_ok(base64_decode(buf_str(&text), false, &back));
		assert_int_equal(back.len, n);
		assert_memory_equal(back.ptr, all, n);
		buf_reset(&text);
		buf_reset(&back);
	}
	hex_encode(&text, all, 256);
	assert_ok(hex_decode(buf_str(&text), &back));
	assert_memory_equal(back.ptr, all, 256);
	buf_done(&text);
	buf_done(&back);
}

static void
test_base64_strict(void **state)
{
	(void)state;
	static const struct {
		const char *in;
		bool fws, plain; /* accepted with and without skip_fws */
	} rows[] = {
		{ "Zg==", true, true },
		{ " Z\tg\r\n = = ", true, false },
		{ "Zg", false, false },
		{ "Zg=", false, false },
		{ "Zg===", false, false },
		{ "Zg==Zg==", false, false },
		{ "Z===", false, false },
		{ "Z", false, false },
		{ "Zm9=v", false, false },
		{ "=", false, false },
		{ "====", false, false },
		{ "Zm9v=", false, false },
		{ "Zm9v!", false, false },
		{ "Zm9-", false, false },
		{ "Zm9_", false, false },
		{ "Zm9\xc3", false, false },
		{ "Zm9\x0b"
		  "v",
		    false, false },
		{ "Zm8=v", false, false },
	};
	struct buf b;
	buf_init(&b, 100);
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct str s = str_c(rows[i].in);
		assert_int_equal(base64_decode(s, true, &b),
		    rows[i].fws ? RES_OK : RES_SYNTAX);
		assert_int_equal(base64_decode(s, false, &b),
		    rows[i].plain ? RES_OK : RES_SYNTAX);
	}
	buf_done(&b);
	buf_init(&b, 5);
	assert_int_equal(base64_decode(STR("Zm9vYmFy"), false, &b), RES_LIMIT);
	buf_done(&b);
	buf_init(&b, 7);
	base64_encode(&b, "foobar", 6);
	assert_int_equal(b.error, RES_LIMIT);
	buf_done(&b);
}

/* Groups of four are decoded at once where nothing is between: a blank at
 * every place, and every room from too little to enough. */
static void
test_base64_blanks_and_room(void **state)
{
	(void)state;
	static const char text[] = "SGFuYXBlciBrZWVwcyB0aGUgcm9sbHMu";
	static const char plain[] = "Hanaper keeps the rolls.";
	for (size_t at = 0; at < sizeof text; at++)
		for (size_t room = 0; room <= sizeof plain; room++) {
			char folded[128];
			struct buf b;
			snprintf(folded, sizeof folded, "%.*s\r\n\t%s\r\n ",
			    (int)at, text, text + at);
			buf_init(&b, room);
			enum res r = base64_decode(str_c(folded), true, &b);
			if (room < sizeof plain - 1) {
				assert_int_equal(r, RES_LIMIT);
				assert_int_equal(b.error, RES_LIMIT);
			} else {
				assert_ok(r);
				assert_str(buf_str(&b), plain);
			}
			buf_done(&b);
		}
}

static void
test_hex_strict(void **state)
{
	(void)state;
	struct buf b;
	buf_init(&b, 100);
	assert_ok(hex_decode(STR("aAfF09"), &b));
	assert_int_equal(b.len, 3);
	assert_memory_equal(b.ptr, "\xaa\xff\x09", 3);
	assert_int_equal(hex_decode(STR("a"), &b), RES_SYNTAX);
	assert_int_equal(hex_decode(STR("0g"), &b), RES_SYNTAX);
	assert_int_equal(hex_decode(STR(" 0"), &b), RES_SYNTAX);
	buf_done(&b);
	for (int c = 0; c < 256; c++) {
		int want = -1;
		if (c >= '0' && c <= '9')
			want = c - '0';
		if (c >= 'a' && c <= 'f')
			want = c - 'a' + 10;
		if (c >= 'A' && c <= 'F')
			want = c - 'A' + 10;
		assert_int_equal(hex_digit((char)c), want);
	}
}

/* The check value of the catalogue, and RFC 3720 appendix B.4. */
static void
test_crc32c(void **state)
{
	(void)state;
	uint8_t b[32];
	assert_int_equal(crc32c(0, "123456789", 9), 0xe3069283);
	assert_int_equal(crc32c(0, "", 0), 0);
	memset(b, 0, 32);
	assert_int_equal(crc32c(0, b, 32), 0x8a9136aa);
	memset(b, 0xff, 32);
	assert_int_equal(crc32c(0, b, 32), 0x62a8ab43);
	for (int i = 0; i < 32; i++)
		b[i] = (uint8_t)i;
	assert_int_equal(crc32c(0, b, 32), 0x46dd794e);
	for (size_t cut = 0; cut <= 32; cut++)
		assert_int_equal(
		    crc32c(crc32c(0, b, cut), b + cut, 32 - cut), 0x46dd794e);
}

static void
test_utf8(void **state)
{
	(void)state;
	static const struct {
		const char *bytes;
		uint32_t cp; /* 0: not valid */
	} rows[] = {
		{ "A", 'A' },
		{ "\x7f", 0x7f },
		{ "\xc2\x80", 0x80 },
		{ "\xdf\xbf", 0x7ff },
		{ "\xe0\xa0\x80", 0x800 },
		{ "\xed\x9f\xbf", 0xd7ff },
		{ "\xee\x80\x80", 0xe000 },
		{ "\xef\xbf\xbf", 0xffff },
		{ "\xf0\x90\x80\x80", 0x10000 },
		{ "\xf4\x8f\xbf\xbf", 0x10ffff },
		{ "\x80", 0 },
		{ "\xc0\x80", 0 },
		{ "\xc1\xbf", 0 },
		{ "\xe0\x9f\xbf", 0 },
		{ "\xed\xa0\x80", 0 }, /* a surrogate */
		{ "\xed\xbf\xbf", 0 },
		{ "\xf0\x8f\xbf\xbf", 0 },
		{ "\xf4\x90\x80\x80", 0 },
		{ "\xf5\x80\x80\x80", 0 },
		{ "\xff", 0 },
		{ "\xc3", 0 },
		{ "\xe2\x82", 0 },
		{ "\xf0\x9f\x98", 0 },
		{ "\xc3(", 0 },
	};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct str s = str_c(rows[i].bytes);
		uint32_t cp = 0;
		size_t n = utf8_decode(s, &cp);
		assert_int_equal(n, rows[i].cp != 0 ? s.len : 0);
		assert_int_equal(cp, rows[i].cp);
		assert_int_equal(utf8_valid(s), rows[i].cp != 0);
		if (rows[i].cp == 0)
			continue;
		struct buf b;
		buf_init(&b, 10);
		utf8_encode(&b, rows[i].cp);
		assert_str(buf_str(&b), rows[i].bytes);
		buf_done(&b);
	}
	uint32_t cp = 1;
	assert_int_equal(utf8_decode(str_of("\0", 1), &cp), 1);
	assert_int_equal(cp, 0);
	assert_int_equal(utf8_decode(STR_EMPTY, &cp), 0);
	assert_true(utf8_valid(STR_EMPTY));
	assert_true(utf8_valid(STR("a\xc3\xa9\xe2\x82\xac")));
	assert_false(utf8_valid(STR("a\xc3\xa9\xe2\x82")));
}

/* Each byte of a word is judged as it would be alone, whatever its
 * neighbours. */
static void
test_words(void **state)
{
	(void)state;
	static const char limits[] = { 1, '\t', ' ', '!', ';', 'A', '[', 127 };
	for (int at = 0; at < 8; at++)
		for (int around = 0; around < 256; around += 5)
			for (int c = 0; c < 256; c++) {
				uint8_t bytes[8];
				memset(bytes, around, 8);
				bytes[at] = (uint8_t)c;
				uint64_t w = get_le64(bytes);
				for (size_t i = 0; i < sizeof limits; i++) {
					uint64_t same = 0, least = 0;
					for (int k = 0; k < 8; k++) {
						uint64_t bit = UINT64_C(0x80)
						    << (8 * k);
						if (bytes[k] == limits[i])
							same |= bit;
						if (bytes[k] >= limits[i] &&
						    bytes[k] < 128)
							least |= bit;
					}
					assert_true(
					    word_equal(w, limits[i]) == same);
					assert_true(word_at_least(
							w, limits[i]) == least);
				}
			}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_words),
		cmocka_unit_test(test_integers),
		cmocka_unit_test(test_vectors),
		cmocka_unit_test(test_all_bytes),
		cmocka_unit_test(test_base64_strict),
		cmocka_unit_test(test_base64_blanks_and_room),
		cmocka_unit_test(test_hex_strict),
		cmocka_unit_test(test_crc32c),
		cmocka_unit_test(test_utf8),
	};
	return cmocka_run_group_tests_name("base/codec", tests, NULL, NULL);
}
