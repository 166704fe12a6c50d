#include "hn_test.h"

#include <unistd.h>

#include "base/buf.h"

static void
test_grows(void **state)
{
	(void)state;
	struct buf b;
	buf_init(&b, 1000);
	assert_int_equal(buf_str(&b).len, 0);
	assert_string_equal(buf_cstr(&b), "");
	for (int i = 0; i < 1000; i++)
		buf_add_char(&b, (char)('a' + i % 26));
	assert_int_equal(b.error, RES_OK);
	assert_int_equal(b.len, 1000);
	for (size_t i = 0; i < 1000; i++)
		assert_int_equal(b.ptr[i], 'a' + (int)(i % 26));
	assert_int_equal(strlen(buf_cstr(&b)), 1000);
	buf_done(&b);
	assert_null(b.ptr);
	buf_add_c(&b, "again");
	assert_str(buf_str(&b), "again");
	buf_done(&b);
}

/* To the end, up to the maximum and not beyond; a pipe as well as a file. */
static void
test_read(void **state)
{
	(void)state;
	static const size_t sizes[] = { 0, 1, 999, 1000, 1001, 60000 };
	char bytes[60000];
	memset(bytes, 'x', sizeof bytes);
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		struct buf b;
		int ends[2];
		assert_int_equal(pipe(ends), 0);
		assert_int_equal(write(ends[1], bytes, sizes[i]), sizes[i]);
		close(ends[1]);
		buf_init(&b, 1000);
		enum res r = buf_read(&b, ends[0]);
		assert_int_equal(r, sizes[i] <= 1000 ? RES_OK : RES_LIMIT);
		assert_int_equal(b.error, r);
		assert_int_equal(b.len, sizes[i] <= 1000 ? sizes[i] : 1000);
		buf_done(&b);
		close(ends[0]);
	}
	struct buf b;
	buf_init(&b, 10);
	assert_int_equal(buf_read(&b, -1), RES_IO);
	buf_done(&b);
}

static void
test_write(void **state)
{
	struct buf b;
	char back[8];
	(void)state;
	buf_init(&b, 100);
	FILE *f = tmpfile();
	assert_non_null(f);
	assert_true(buf_write(&b, f)); /* nothing, from no memory */
	buf_add_c(&b, "a\nb");
	assert_true(buf_write(&b, f));
	rewind(f);
	assert_int_equal(fread(back, 1, sizeof back, f), 3);
	assert_memory_equal(back, "a\nb", 3);
	fclose(f);
	FILE *full = fopen("/dev/full", "w");
	if (full != NULL) {
		setvbuf(full, NULL, _IONBF, 0);
		assert_false(buf_write(&b, full));
		fclose(full);
	}
	buf_done(&b);
}

static void
test_limit(void **state)
{
	(void)state;
	for (size_t n = 99; n <= 101; n++) {
		struct buf b;
		char bytes[101];
		memset(bytes, 'x', sizeof bytes);
		buf_init(&b, 100);
		buf_add(&b, bytes, n);
		assert_int_equal(b.error, n <= 100 ? RES_OK : RES_LIMIT);
		assert_int_equal(b.len, n <= 100 ? n : 0);
		buf_done(&b);
		/* and byte by byte */
		for (size_t i = 0; i < n; i++)
			buf_add_char(&b, 'x');
		assert_int_equal(b.error, n <= 100 ? RES_OK : RES_LIMIT);
		assert_int_equal(b.len, n <= 100 ? n : 100);
		buf_done(&b);
	}
	struct buf b;
	buf_init(&b, 0);
	buf_add(&b, "", 0);
	assert_int_equal(b.error, RES_OK);
	buf_add_char(&b, 'x');
	assert_int_equal(b.error, RES_LIMIT);
	buf_done(&b);
	buf_init(&b, 100);
	assert_null(buf_reserve(&b, SIZE_MAX));
	assert_int_equal(b.error, RES_LIMIT);
	buf_done(&b);
}

static void
test_error_is_sticky(void **state)
{
	(void)state;
	struct buf b;
	buf_init(&b, 4);
	buf_add_c(&b, "abc");
	buf_add_c(&b, "de");
	buf_add_c(&b, "f");
	buf_addf(&b, "%d", 1);
	assert_int_equal(b.error, RES_LIMIT);
	assert_str(buf_str(&b), "abc");
	assert_null(buf_cstr(&b));
	assert_null(buf_reserve(&b, 0));
	buf_reset(&b);
	buf_add_c(&b, "wxyz");
	assert_int_equal(b.error, RES_OK);
	assert_string_equal(buf_cstr(&b), "wxyz");
	buf_done(&b);
}

static void
test_formats(void **state)
{
	(void)state;
	struct buf b;
	buf_init(&b, 1000);
	buf_addf(&b, "%s=%05d;", "n", 42);
	buf_add_str(&b, STR("str"));
	buf_add_str(&b, STR_EMPTY);
	assert_str(buf_str(&b), "n=00042;str");
	buf_reset(&b);
	buf_add_le16(&b, 0x0102);
	buf_add_le32(&b, 0x01020304);
	buf_add_le64(&b, UINT64_C(0x0102030405060708));
	static const uint8_t want[] = { 2, 1, 4, 3, 2, 1, 8, 7, 6, 5, 4, 3, 2,
		1 };
	assert_int_equal(b.len, sizeof want);
	assert_memory_equal(b.ptr, want, sizeof want);
	buf_done(&b);
	/* a text that fits exactly, its NUL is not counted */
	buf_init(&b, 64);
	buf_addf(&b, "%064d", 7);
	assert_int_equal(b.error, RES_OK);
	assert_int_equal(b.len, 64);
	buf_done(&b);
}

static void
test_reserve(void **state)
{
	(void)state;
	struct buf b;
	buf_init(&b, 10);
	char *p = buf_reserve(&b, 10);
	assert_non_null(p);
	assert_int_equal(b.len, 0);
	memcpy(p, "12345", 5);
	b.len += 5;
	assert_null(buf_reserve(&b, 6));
	buf_done(&b);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_grows),
		cmocka_unit_test(test_read),
		cmocka_unit_test(test_write),
		cmocka_unit_test(test_limit),
		cmocka_unit_test(test_error_is_sticky),
		cmocka_unit_test(test_formats),
		cmocka_unit_test(test_reserve),
	};
	return cmocka_run_group_tests_name("base/buf", tests, NULL, NULL);
}
