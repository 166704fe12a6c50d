#include "hn_test.h"

#include "mail/date.h"
#include "mail/mbox.h"

/* What came out, in one text: "[from@begin" per message, "|", its bytes,
 * "@end]". */
static enum res
on_begin(void *context, struct str from, uint64_t offset)
{
	struct buf *b = context;
	buf_add_char(b, '[');
	buf_add_str(b, from.ptr != NULL ? from : STR("(none)"));
	buf_addf(b, "@%llu|", (unsigned long long)offset);
	return RES_OK;
}

static void
on_data(void *context, const char *bytes, size_t len)
{
	buf_add(context, bytes, len);
}

static enum res
on_end(void *context, uint64_t offset)
{
	buf_addf(context, "@%llu]", (unsigned long long)offset);
	return RES_OK;
}

static const struct mbox_ops ops = { on_begin, on_data, on_end };

static enum res
run(struct str in, size_t piece, enum mbox_form form, uint64_t offset,
    struct buf *out)
{
	struct arena *a = arena_new(0);
	struct mbox *m = mbox_new(a, form, offset, &ops, out);
	assert_non_null(m);
	for (size_t at = 0; at < in.len; at += piece) {
		struct str p = str_sub(in, at, piece);
		char *copy = malloc(p.len);
		memcpy(copy, p.ptr, p.len);
		sink_push(mbox_sink(m), copy, p.len);
		free(copy);
	}
	enum res r = sink_finish(mbox_sink(m));
	arena_free(&a);
	return r;
}

#define DATE "Thu May 28 12:00:00 2026"
#define F    "From a@b " DATE "\n"
#define G    "a@b " DATE

static const struct row {
	const char *in, *out;
	enum mbox_form form;
} rows[] = {
	{ "", "", MBOX_RD },
	/* the empty line between messages is the file's */
	{ F "A: 1\n\nx\n\n" F "B: 2\n\ny\n\n",
	    "[" G "@0|A: 1\n\nx\n@43][" G "@43|B: 2\n\ny\n@86]", MBOX_RD },
	{ "From a@b " DATE "\r\nA: 1\r\n\r\nx\r\n\r\nFrom a@b " DATE
	  "\r\nB\r\n",
	    "[" G "@0|A: 1\r\n\r\nx\r\n@48][" G "@48|B\r\n@86]", MBOX_RD },
	{ F "A: 1\n\nx\n\n\n\n", "[" G "@0|A: 1\n\nx\n\n\n@45]", MBOX_RD },
	/* quoting */
	{ F "A\n>From x\n>>From y\n>Fro\n> From\n",
	    "[" G "@0|A\nFrom x\n>From y\n>Fro\n> From\n@65]", MBOX_RD },
	{ F "A\n>From x\n>>From y\n",
	    "[" G "@0|A\nFrom x\n>>From y\n@53]", MBOX_O },
	{ F "A\n>From x\n", "[" G "@0|A\n>From x\n@44]", MBOX_PLAIN },
	/* a From_ line without a date, before a field */
	{ F "A\n\nFrom 12@x\nB: 2\n", "[" G "@0|A\n@37][12@x@37|B: 2\n@52]",
	    MBOX_RD },
	/* text that nobody quoted */
	{ F "A\n\nFrom here on\nwe go\n",
	    "[" G "@0|A\n\nFrom here on\nwe go\n@56]", MBOX_RD },
	{ F "A\nFrom here: on\nB: 2\n",
	    "[" G "@0|A\nFrom here: on\nB: 2\n@55]", MBOX_RD },
	{ F "A\n" F "no field\n", "[" G "@0|A\n" F "no field\n@79]",
	    MBOX_RD },
	/* no empty line, but a date and a field */
	{ F "A\n" F "B: 2\n", "[" G "@0|A\n@36][" G "@36|B: 2\n@75]",
	    MBOX_RD },
	/* two candidates, one behind the other */
	{ F "A\n\nFrom x\nFrom y " DATE "\nB: 2\n",
	    "[" G "@0|A\n\nFrom x\n@44][y " DATE "@44|B: 2\n@81]", MBOX_RD },
	/* the end */
	{ F "A\n\nFrom a@b " DATE, "[" G "@0|A\n@37][" G "@37|@70]",
	    MBOX_RD },
	{ F "A\n\nFrom x", "[" G "@0|A\n\nFrom x@43]", MBOX_RD },
	{ F "A\n\nFrom x\n", "[" G "@0|A\n\nFrom x\n@44]", MBOX_RD },
	{ F "A\n\r", "[" G "@0|A\n\r@37]", MBOX_RD },
	{ F, "[" G "@0|@34]", MBOX_RD },
	/* what stands before the first */
	{ "junk\n\n" F "A\n", "[(none)@0|junk\n@6][" G "@6|A\n@42]",
	    MBOX_RD },
	{ "\n" F "A\n", "[" G "@1|A\n@37]", MBOX_RD },
};

static void
messages_in_any_pieces(void **state)
{
	static const size_t pieces[] = { SIZE_MAX / 2, 1, 2, 7 };
	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		for (size_t p = 0; p < 4; p++) {
			struct buf out;
			buf_init(&out, 65536);
			assert_int_equal(run(str_c(rows[i].in), pieces[p],
			    rows[i].form, 0, &out), RES_OK);
			assert_string_equal(buf_cstr(&out), rows[i].out);
			buf_done(&out);
		}
}

static void
bytes_that_are_no_text(void **state)
{
	(void)state;
	const struct str in = STR(F "\0\xff\rbare\n\0\n\n" F "B: 2\n");
	struct buf out;
	buf_init(&out, 65536);
	assert_int_equal(run(in, 3, MBOX_RD, 0, &out), RES_OK);
	const struct str want =
	    STR("[" G "@0|\0\xff\rbare\n\0\n@45][" G "@45|B: 2\n@84]");
	assert_true(str_eq(buf_str(&out), want));
	buf_done(&out);
}

static void
begun_at_the_offset_of_a_message(void **state)
{
	(void)state;
	struct buf out;
	buf_init(&out, 65536);
	assert_int_equal(
	    run(STR("From x\n\nB\n"), 2, MBOX_RD, 1000, &out), RES_OK);
	assert_string_equal(buf_cstr(&out), "[x@1000|\nB\n@1010]");
	buf_done(&out);
}

/* Lines longer than any From_ line; more quotes than are held at once, one of
 * which goes all the same. */
static void
long_lines_are_text(void **state)
{
	(void)state;
	struct buf in, out;
	buf_init(&in, 65536);
	buf_init(&out, 65536);
	buf_add_c(&in, F "\nFrom ");
	for (int i = 0; i < 3000; i++)
		buf_add_char(&in, 'x');
	buf_add_c(&in, "\nA: b\n");
	struct str body = str_skip(buf_str(&in), sizeof F - 1);
	size_t before = body.len;
	for (int i = 0; i < 5 * MBOX_MAX_QUOTE; i++)
		buf_add_char(&in, '>');
	buf_add_c(&in, "From x\n");
	assert_int_equal(run(buf_str(&in), 1, MBOX_RD, 0, &out), RES_OK);
	body = str_skip(buf_str(&in), sizeof F - 1);
	struct str got = str_sub(buf_str(&out), sizeof G + 3, body.len - 1);
	assert_true(str_eq(
	    str_sub(got, 0, before), str_sub(body, 0, before)));
	assert_true(str_eq(str_skip(got, before), str_skip(body, before + 1)));
	buf_done(&in);
	buf_done(&out);
}

static enum res
refuse(void *context, struct str from, uint64_t offset)
{
	(void)from;
	(void)offset;
	*(int *)context += 1;
	return RES_AGAIN;
}

static void
an_error_of_begin_ends_it(void **state)
{
	static const struct mbox_ops bad = { refuse, on_data, on_end };
	(void)state;
	struct arena *a = arena_new(0);
	int calls = 0;
	struct mbox *m = mbox_new(a, MBOX_RD, 0, &bad, &calls);
	const struct str in = STR(F "A\n\n" F "B\n");
	sink_push(mbox_sink(m), in.ptr, in.len);
	assert_int_equal(sink_finish(mbox_sink(m)), RES_AGAIN);
	assert_int_equal(calls, 1);
	arena_free(&a);
}

static void
dates(void **state)
{
	static const struct {
		const char *text;
		enum res res;
		int64_t s;
	} all[] = {
		{ "Fri, 21 Nov 1997 09:55:06 -0600", RES_OK, 880127706 },
		{ "21 Nov 97 09:55:06 GMT", RES_OK, 880106106 },
		{ " Fri, 21 Nov 1997 09(comment):55:06 -0600", RES_SYNTAX, 0 },
		{ "Fri, 21 (x (y)) Nov 1997 15:55:06", RES_OK, 880127706 },
		{ "Fri Nov 21 15:55:06 1997", RES_OK, 880127706 },
		{ "Fri Nov 21 09:55:06 CST 1997", RES_OK, 880127706 },
		{ "Fri,\r\n 21 Nov 1997 15:55 +0000 (UTC)", RES_OK, 880127700 },
		{ "1 Jan 1970 05:30 +0530", RES_OK, 0 },
		{ "30 Feb 2026 12:00", RES_INVALID, 0 },
		{ "0 Feb 2026 12:00", RES_SYNTAX, 0 },
		{ "1 Feb 2026 24:00", RES_SYNTAX, 0 },
		{ "2026-11-30T17:00", RES_SYNTAX, 0 },
		{ "", RES_SYNTAX, 0 },
	};
	(void)state;
	for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
		int64_t s = 0;
		assert_int_equal(
		    date_parse(str_c(all[i].text), &s), all[i].res);
		assert_int_equal(s, all[i].s);
	}
	assert_true(str_eq(mbox_from_sender(STR(G)), STR("a@b")));
	assert_int_equal(mbox_from_sender(STR("MAILER-DAEMON x")).len, 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(messages_in_any_pieces),
		cmocka_unit_test(bytes_that_are_no_text),
		cmocka_unit_test(begun_at_the_offset_of_a_message),
		cmocka_unit_test(long_lines_are_text),
		cmocka_unit_test(an_error_of_begin_ends_it),
		cmocka_unit_test(dates),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
