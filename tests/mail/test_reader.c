#include "hn_test.h"

#include "base/buf.h"
#include "mail/reader.h"

/* What came out, in one text: "name|value~" per field, "#", the body. */
struct seen {
	struct buf text;
	unsigned header_ends;
	enum res answer;
};

static enum res
end_of_header(void *context, struct header *h)
{
	struct seen *s = context;
	s->header_ends++;
	for (size_t i = 0; i < header_count(h); i++) {
		buf_add_str(&s->text, header_at(h, i)->raw_name);
		buf_add_char(&s->text, '|');
		buf_add_str(&s->text, header_at(h, i)->value);
		buf_add_char(&s->text, '~');
	}
	buf_add_char(&s->text, '#');
	return s->answer;
}

static void
body(void *context, const char *bytes, size_t len)
{
	buf_add(&((struct seen *)context)->text, bytes, len);
}

static const struct reader_ops ops = { end_of_header, body };

struct outcome {
	enum res res;
	bool malformed, was_lf;
};

/* Push `in` in pieces of `piece` bytes, each a copy of exact size. */
static struct outcome
run(struct str in, size_t piece, enum reader_line_ends ends, size_t max_bytes,
    struct seen *s)
{
	struct arena *a = arena_new(0);
	struct header *h = header_new(a, max_bytes);
	struct reader *r = reader_new(a, h, ends, &ops, s);
	assert_non_null(r);
	for (size_t at = 0; at < in.len; at += piece) {
		struct str p = str_sub(in, at, piece);
		char *copy = malloc(p.len);
		memcpy(copy, p.ptr, p.len);
		sink_push(reader_sink(r), copy, p.len);
		free(copy);
	}
	struct outcome o = { sink_finish(reader_sink(r)), reader_malformed(r),
		reader_was_lf(r) };
	arena_free(&a);
	return o;
}

/* Line ends asked for, malformed, was LF. */
#define CRLF   READER_AUTO, false, false
#define LF     READER_AUTO, false, true
#define BAD    READER_AUTO, true, false
#define BAD_LF READER_AUTO, true, true

static const struct row {
	const char *in, *out;
	enum reader_line_ends ends;
	bool malformed, was_lf;
} rows[] = {
	{ "A: 1\r\nB: 2\r\n\r\nbody\r\n", "A| 1~B| 2~#body\r\n", CRLF },
	{ "A: 1\nB: 2\n\nbody\nx\n", "A| 1~B| 2~#body\r\nx\r\n", LF },
	{ "A: 1\r\n\tfold\r\n \r\n\r\nb", "A| 1\r\n\tfold\r\n ~#b", CRLF },
	{ "A: 1\n fold\n\nb", "A| 1\r\n fold~#b", LF },
	{ "", "#", CRLF },
	{ "\r\n", "#", CRLF },
	{ "\r\nbody", "#body", CRLF },
	{ "\n\n\n", "#\r\n\r\n", LF },
	{ "A: 1", "A| 1~#", CRLF },
	{ "A: 1\r\n", "A| 1~#", CRLF },
	{ "A: 1\r\nB", "A| 1~#B", BAD },
	{ "A:\r\nB:x\r\n\r\n", "A|~B|x~#", CRLF },
	{ "A \t: 1\r\n\r\n", "A \t| 1~#", CRLF },
	/* the mbox line, but not an obsolete From field */
	{ "From a@b Mon Nov 30\r\nA: 1\r\n\r\nx", "A| 1~#x", CRLF },
	{ "From : a@b\r\n\r\nx", "From | a@b~#x", CRLF },
	{ "A: 1\r\nFrom a@b\r\n\r\nx", "A| 1~#From a@b\r\n\r\nx", BAD },
	{ "From a@b", "#", CRLF },
	/* no field */
	{ " A: 1\r\n\r\n", "# A: 1\r\n\r\n", BAD },
	{ "A: 1\r\nhello world\r\nB: 2\r\n", "A| 1~#hello world\r\nB: 2\r\n",
	    BAD },
	{ "A: 1\nhello\nB: 2\n", "A| 1~#hello\r\nB: 2\r\n", BAD_LF },
	{ "A: 1\r\n: x\r\n", "A| 1~#: x\r\n", BAD },
	{ "A: 1\r\n\xc3\xa4: x\r\n", "A| 1~#\xc3\xa4: x\r\n", BAD },
	/* bare CR and LF are data in CRLF form */
	{ "A: 1\r\nB: x\ry\nz\n w\r\n\r\na\nb\rc\r\n",
	    "A| 1~B| x\ry\nz\n w~#a\nb\rc\r\n", CRLF },
	{ "A: 1\nB: x\n", "A| 1\nB: x\n~#", READER_CRLF, false, false },
	/* and CRLF stays what it is in LF form */
	{ "A: 1\nB: 2\r\n\r\na\r\nb\n\rc\n", "A| 1~B| 2~#a\r\nb\r\n\rc\r\n",
	    LF },
	{ "A: 1\r\n\r\na\n", "A| 1~#a\r\n", READER_LF, false, true },
};

static void
test_rows(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		const struct row *w = &rows[i];
		for (size_t piece = 1; piece <= strlen(w->in) + 1; piece++) {
			struct seen s = { .answer = RES_OK };
			buf_init(&s.text, 10000);
			struct outcome o =
			    run(str_c(w->in), piece, w->ends, 0, &s);
			assert_int_equal(o.res, RES_OK);
			assert_str(buf_str(&s.text), w->out);
			assert_int_equal(o.malformed, w->malformed);
			assert_int_equal(o.was_lf, w->was_lf);
			assert_int_equal(s.header_ends, 1);
			buf_done(&s.text);
		}
	}
}

static void
test_nul(void **state)
{
	(void)state;
	struct seen s = { .answer = RES_OK };
	buf_init(&s.text, 100);
	static const char in[] = "A: x\0y\r\n\r\na\0b";
	run(str_of(in, sizeof in - 1), 3, READER_AUTO, 0, &s);
	static const char out[] = "A| x\0y~#a\0b";
	assert_true(str_eq(buf_str(&s.text), str_of(out, sizeof out - 1)));
	buf_done(&s.text);
}

/* "A: 1" is counted as 1 + 2 + 4 bytes, "B: 23" as 1 + 3 + 4. */
static void
test_limit(void **state)
{
	(void)state;
	struct str in = STR("A: 1\r\nB: 23\r\n\r\nbody that is longer");
	for (size_t max = 14; max <= 16; max++) {
		for (size_t piece = 1; piece <= in.len; piece++) {
			struct seen s = { .answer = RES_OK };
			buf_init(&s.text, 1000);
			struct outcome o = run(in, piece, READER_AUTO, max, &s);
			bool fits = max >= 15;
			assert_int_equal(o.res, fits ? RES_OK : RES_LIMIT);
			assert_str(buf_str(&s.text),
			    fits ? "A| 1~B| 23~#body that is longer" : "");
			assert_int_equal(s.header_ends, fits);
			buf_done(&s.text);
		}
	}
}

static void
test_callback_refuses(void **state)
{
	(void)state;
	struct seen s = { .answer = RES_DENIED };
	buf_init(&s.text, 1000);
	struct outcome o =
	    run(STR("A: 1\r\n\r\nbody\r\nmore"), 4, READER_AUTO, 0, &s);
	assert_int_equal(o.res, RES_DENIED);
	assert_str(buf_str(&s.text), "A| 1~#");
	buf_done(&s.text);
}

/* A body larger than the staging buffer, lines longer than it. */
static void
test_large_lf_body(void **state)
{
	(void)state;
	struct buf in, want;
	struct seen s = { .answer = RES_OK };
	buf_init(&in, 1 << 20);
	buf_init(&want, 1 << 20);
	buf_init(&s.text, 1 << 20);
	buf_add_c(&in, "A: 1\n\n");
	buf_add_c(&want, "A| 1~#");
	for (size_t line = 1; line < 20000; line += line / 3 + 1) {
		for (size_t i = 0; i < line; i++) {
			buf_add_char(&in, 'x');
			buf_add_char(&want, 'x');
		}
		buf_add_c(&in, "\n");
		buf_add_c(&want, "\r\n");
	}
	run(buf_str(&in), in.len, READER_AUTO, 0, &s);
	assert_true(str_eq(buf_str(&s.text), buf_str(&want)));
	buf_reset(&s.text);
	run(buf_str(&in), 1000, READER_AUTO, 0, &s);
	assert_true(str_eq(buf_str(&s.text), buf_str(&want)));
	buf_done(&in);
	buf_done(&want);
	buf_done(&s.text);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows),
		cmocka_unit_test(test_nul),
		cmocka_unit_test(test_limit),
		cmocka_unit_test(test_callback_refuses),
		cmocka_unit_test(test_large_lf_body),
	};
	return cmocka_run_group_tests_name("mail/reader", tests, NULL, NULL);
}
