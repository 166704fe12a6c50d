#include "hn_test.h"

#include "base/buf.h"
#include "base/codec.h"
#include "mail/charset.h"

struct row {
	const char *charset;
	const char *in;
	const char *out;
};

static const struct row rows[] = {
	{ "utf-8", "Gr\xc3\xbc\xc3\x9f"
		   "e", "Grüße" },
	{ "UTF-8", "a\xff"
		   "b\xc3", "a\xef\xbf\xbd"
			    "b\xef\xbf\xbd" },
	{ "utf-8", "\xed\xa0\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd" },
	{ "iso-8859-1", "Gr\xfc\xdf"
			"e \x80", "Grüße €" },
	{ "ISO_8859-15", "\xa4", "€" },
	{ "windows-1251", "\xcf\xf0\xe8\xe2\xe5\xf2", "Привет" },
	{ "koi8-r", "\xf0\xd2\xc9\xd7\xc5\xd4", "Привет" },
	{ "Shift_JIS", "\x93\xfa\x96\x7b", "日本" },
	{ "iso-2022-jp", "\x1b$BF|K\\\x1b(B!", "日本!" },
	{ "euc-kr", "\xc7\xd1\xb1\xdb", "한글" },
	{ "gb2312", "\xd6\xd0\xce\xc4", "中文" },
	{ "gb18030", "\xd6\xd0\x81\x30\x81\x31", "中\xc2\x81" },
	{ "hz-gb-2312", "a~{VPND~}b~~c", "a中文b~c" },
	{ "big5", "\xa4\xa4\xa4\xe5", "中文" },
	{ "utf-7", "Fr+APY-sche", "Frösche" },
	/* not declared, unknown, or not ASCII after all */
	{ "", "Gr\xc3\xbc\xdf"
	      "e", "Grüße" },
	{ "us-ascii", "\x93quoted\x94", "“quoted”" },
	{ "x-no-such-thing", "caf\xe9", "café" },
	/* names that must never reach iconv */
	{ "UTF-8//TRANSLIT", "\xe9", "\xc3\xa9" },
	{ "../../etc/passwd", "x\xe9", "xé" },
	{ "windows-1255", "\xf9\xec\xe5\xed", "שלום" },
};

static void
test_rows(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct buf b;
		buf_init(&b, 1000);
		charset_decode(str_c(rows[i].charset), str_c(rows[i].in), &b);
		assert_ok(b.error);
		assert_str(buf_str(&b), rows[i].out);
		buf_done(&b);
	}
}

static void
test_any_split(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct str in = str_c(rows[i].in);
		for (size_t step = 1; step <= 3; step++) {
			struct buf b;
			struct charset c;
			buf_init(&b, 1000);
			charset_init(&c, str_c(rows[i].charset));
			for (size_t at = 0; at < in.len; at += step) {
				struct str part = str_sub(in, at, step);
				charset_push(&c, part.ptr, part.len, &b);
			}
			charset_finish(&c, &b);
			charset_done(&c);
			assert_str(buf_str(&b), rows[i].out);
			buf_done(&b);
		}
	}
}

/* Whatever bytes, what comes out is UTF-8. */
static void
test_output_is_utf8(void **state)
{
	(void)state;
	char bytes[4096];
	uint32_t seed = 1;
	for (size_t i = 0; i < sizeof bytes; i++) {
		seed = seed * 1103515245 + 12345;
		bytes[i] = (char)(seed >> 16);
	}
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct buf b;
		buf_init(&b, 100000);
		charset_decode(str_c(rows[i].charset),
		    str_of(bytes, sizeof bytes), &b);
		assert_ok(b.error);
		assert_true(utf8_valid(buf_str(&b)));
		buf_done(&b);
	}
}

static void
test_bounded_output(void **state)
{
	(void)state;
	struct buf b;
	buf_init(&b, 4);
	charset_decode(STR("koi8-r"), STR("\xf0\xd2\xc9\xd7\xc5\xd4"), &b);
	assert_int_equal(b.error, RES_LIMIT);
	buf_done(&b);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows),
		cmocka_unit_test(test_any_split),
		cmocka_unit_test(test_output_is_utf8),
		cmocka_unit_test(test_bounded_output),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
