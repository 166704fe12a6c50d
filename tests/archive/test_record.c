#include "archive/format/record.h"

#include "hn_test.h"

static void
layout(void **state)
{
	static const uint8_t want[] = { 1,               /* version */
		2, 0, 3, 0, 0, 0, 'a', 0, 'c',           /* binary-safe */
		18, 0, 8, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, /* u64 */
		21, 0, 4, 0, 0, 0, 2, 0, 0, 0,           /* u32 */
		2, 0, 2, 0, 0, 0, 0x34, 0x12,            /* u16 */
		4, 0, 0, 0, 0, 0 };                      /* empty */
	struct record r;
	record_init(&r, 1000);
	record_add(&r, META_QUEUE_ID, str_of("a\0c", 3));
	record_add_u64(&r, META_HEADER_BYTES, 0x0807060504030201);
	record_add_u32(&r, META_FLAGS, META_FLAG_SMTPUTF8);
	record_add_u16(&r, EVIDENCE_TYPE, 0x1234);
	record_add(&r, META_RCPT, STR_EMPTY);
	assert_ok(r.buf.error);
	assert_int_equal(r.buf.len, sizeof want);
	assert_memory_equal(r.buf.ptr, want, sizeof want);
	record_done(&r);
}

static void
reading(void **state)
{
	struct record in, r;
	struct record_reader rr;
	struct str v;
	unsigned tag;
	record_init(&in, 1000);
	record_add(&in, EVIDENCE_NAME, STR("example.org"));
	record_init(&r, 1000);
	record_add(&r, META_RCPT, STR("a@example.org"));
	record_add(&r, 999, STR("of a later version"));
	record_add(&r, META_RCPT, STR("b@example.org"));
	record_add_record(&r, 700, &in);
	assert_ok(record_open(buf_str(&r.buf), &rr));
	assert_true(record_next(&rr, &tag, &v));
	assert_int_equal(tag, META_RCPT);
	assert_str(v, "a@example.org");
	assert_true(record_next(&rr, &tag, &v));
	assert_true(record_next(&rr, &tag, &v));
	assert_str(v, "b@example.org");
	assert_true(record_next(&rr, &tag, &v));
	assert_str(record_find(v, EVIDENCE_NAME), "example.org");
	assert_false(record_next(&rr, &tag, &v));
	assert_ok(rr.error);
	assert_str(record_find(buf_str(&r.buf), META_RCPT), "a@example.org");
	assert_null(record_find(buf_str(&r.buf), META_HELO).ptr);
	record_done(&in);
	record_done(&r);
}

static void
damage(void **state)
{
	struct record r;
	record_init(&r, 1000);
	record_add(&r, 1, STR("one"));
	record_add(&r, 2, STR("two"));
	/* cut anywhere: never a value that is not there */
	for (size_t len = 0; len <= r.buf.len; len++) {
		struct record_reader rr;
		unsigned tag, n = 0;
		struct str v;
		assert_ok(record_open(str_of(r.buf.ptr, len), &rr));
		while (record_next(&rr, &tag, &v)) {
			assert_true(v.ptr + v.len <= r.buf.ptr + len);
			n++;
		}
		bool whole = len <= 1 || len == 10 || len == r.buf.len;
		assert_int_equal(rr.error, whole ? RES_OK : RES_CORRUPT);
		assert_int_equal(n, len == r.buf.len ? 2 : len >= 10);
	}
	struct record_reader rr;
	r.buf.ptr[0] = 2;
	assert_int_equal(
	    record_open(buf_str(&r.buf), &rr), RES_UNSUPPORTED);
	assert_null(record_find(buf_str(&r.buf), 1).ptr);
	record_done(&r);
}

static void
limits(void **state)
{
	struct record r, in;
	record_init(&r, 1 + 6 + 3);
	record_add(&r, 1, STR("abc")); /* exactly fits */
	assert_ok(r.buf.error);
	record_add(&r, 2, STR_EMPTY);
	assert_int_equal(r.buf.error, RES_LIMIT);
	assert_int_equal(r.buf.len, 10); /* no half record */
	record_done(&r);
	record_init(&r, 100);
	record_add(&r, 65536, STR("x"));
	assert_int_equal(r.buf.error, RES_LIMIT);
	record_done(&r);
	/* an error inside comes out */
	record_init(&in, 5);
	record_add(&in, 1, STR("too long"));
	record_init(&r, 100);
	record_add_record(&r, 1, &in);
	assert_int_equal(r.buf.error, RES_LIMIT);
	record_done(&in);
	record_done(&r);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(layout),
		cmocka_unit_test(reading),
		cmocka_unit_test(damage),
		cmocka_unit_test(limits),
	};
	return cmocka_run_group_tests_name("record", tests, NULL, NULL);
}
