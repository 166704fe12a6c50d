#include "hn_test.h"

#include <stdio.h>

#include "base/buf.h"
#include "base/clock.h"
#include "mail/encoded.h"
#include "mail/mime.h"
#include "mail/param.h"
#include "mail/text.h"
#include "mail/transfer.h"

/* --- the walk as one line of text --- */

struct trace {
	struct buf buf;
	unsigned begun, ended;
};

static void
on_begin(void *context, const struct mime_part *p)
{
	struct trace *t = context;
	static const char kinds[] = { 't', 'h', 'M', 'R', 'b' };
	t->begun++;
	buf_addf(&t->buf, "%c%u/%d(", kinds[p->kind], p->number, p->parent);
	if (p->filename.len > 0)
		buf_addf(&t->buf, "%.*s:", STR_ARG(p->filename));
}

static void
on_data(void *context, const struct mime_part *p, const char *bytes, size_t len)
{
	(void)p;
	buf_add(&((struct trace *)context)->buf, bytes, len);
}

static void
on_end(void *context, const struct mime_part *p)
{
	(void)p;
	((struct trace *)context)->ended++;
	buf_add_char(&((struct trace *)context)->buf, ')');
}

static const struct mime_ops trace_ops = { NULL, on_begin, on_data, on_end };

static bool
walk(struct str message, size_t step, struct trace *t)
{
	buf_init(&t->buf, 16 << 20);
	t->begun = t->ended = 0;
	struct mime *m = mime_new(&trace_ops, t);
	assert_non_null(m);
	for (size_t at = 0; at < message.len; at += step) {
		struct str part = str_sub(message, at, step);
		mime_push(m, part.ptr, part.len);
	}
	assert_ok(mime_finish(m));
	assert_int_equal(t->begun, t->ended);
	bool partial = mime_partial(m);
	mime_free(&m);
	return partial;
}

static const struct {
	const char *message, *trace;
} rows[] = {
	{ "", "t0/-1()" },
	{ "Subject: x\r\n\r\nbody\r\n", "t0/-1(body\r\n)" },
	{ "Subject: x\n\nbody\n", "t0/-1(body\n)" },
	{ "no header\r\nat all\r\n", "t0/-1(no header\r\nat all\r\n)" },
	{ "From joe Mon\nSubject: x\n\ny", "t0/-1(y)" },
	{ "Content-Type: text/html\r\n"
	  "Content-Transfer-Encoding: base64\r\n\r\nPGI+\r\neDwvYj4=\r\n",
	    "h0/-1(<b>x</b>)" },
	/* labelled base64, but plain text; and base64 with blanks around */
	{ "Content-Transfer-Encoding: base64\n\n\n  Hello there,\nyou\n",
	    "t0/-1(\n  Hello there,\nyou\n)" },
	{ "Content-Transfer-Encoding: base64\n\nHello you", "t0/-1(Hello you)" },
	{ "Content-Transfer-Encoding: base64\n\n \n PGI+ \n eDwvYj4=\n f x",
	    "t0/-1(<b>x</b>\177)" },
	{ "Content-Transfer-Encoding: Quoted-Printable\n\n"
	  "a=3Db =\nc=zz=4  \nd \t\n=",
	    "t0/-1(a=b c=zz=4\nd\n)" },
	{ "Content-Type: multipart/mixed; boundary=b\n\npreamble\n"
	  "--b\n\none\n--b  \nContent-Type: image/gif; name=\"x y.gif\"\n"
	  "Content-Disposition: attachment; filename*=utf-8''z%C3%A4.gif\n"
	  "Content-Transfer-Encoding: base64\n\nAAAA\n--b--\nepilogue\n--b\n",
	    "M0/-1(t1/0(one)b2/0(zä.gif:\\0\\0\\0))" },
	/* line ends before a boundary are its own, others are not */
	{ "Content-Type: multipart/mixed; boundary=b\r\n\r\n"
	  "--b\r\n\r\none\r\n\r\n--b\r\n\r\n--c\r\n-\r\r\n--b--\r\n",
	    "M0/-1(t1/0(one\r\n)t2/0(--c\r\n-\r))" },
	/* never closed; header cut off; nothing behind the last boundary */
	{ "Content-Type: multipart/mixed; boundary=b\n\n--b\nA: b\n--b\n\nx\n",
	    "M0/-1(t1/0()t2/0(x\n))" },
	{ "Content-Type: multipart/mixed; boundary=b\n\n--b\n\nx\n--b\n",
	    "M0/-1(t1/0(x))" },
	/* an outer boundary ends what is inside */
	{ "Content-Type: multipart/mixed; boundary=o\n\n--o\n"
	  "Content-Type: multipart/alternative; boundary=i\n\n--i\n\nx\n--o\n"
	  "Content-Type: text/html\n\ny\n--o--\n",
	    "M0/-1(M1/0(t2/1(x))h3/0(y))" },
	{ "Content-Type: message/rfc822\n\nContent-Type: text/html\n\n<p>",
	    "R0/-1(h1/0(<p>))" },
	{ "Content-Type: multipart/digest; boundary=b\n\n--b\n\nTo: a\n\nx\n"
	  "--b--\n",
	    "M0/-1(R1/0(t2/1(x)))" },
	/* an encoded message is walked all the same */
	{ "Content-Type: multipart/mixed; boundary=b\n\n--b\n"
	  "Content-Type: message/rfc822\nContent-Transfer-Encoding: base64\n\n"
	  "VG86IGEKCngK\n--b\n\ny\n--b--\n",
	    "M0/-1(R1/0(t2/1(x\n))t3/0(y))" },
	/* a closing boundary that lacks its line end counts at the end only */
	{ "Content-Type: multipart/mixed; boundary=b\r\n\r\n"
	  "--b\r\n\r\none--b--\r\n",
	    "M0/-1(t1/0(one))" },
	{ "Content-Type: multipart/mixed; boundary=b\n\n--b\n\n-one----b--",
	    "M0/-1(t1/0(-one--))" },
	{ "Content-Type: multipart/mixed; boundary=b\n\n--b\n\none--b--\n"
	  "x--b--y\n-z--b--\n\nx--b-",
	    "M0/-1(t1/0(one--b--\nx--b--y\n-z--b--\n\nx--b-))" },
	{ "Content-Type: multipart/mixed; boundary=b\n\n--b\n\none--b--\r\r\n"
	  "x--b--\n-x--b--\n--b--\n",
	    "M0/-1(t1/0(one--b--\r\r\nx--b--\n-x--b--))" },
	{ "Content-Type: multipart/mixed; boundary=o\n\n--o\n"
	  "Content-Type: multipart/mixed; boundary=i\n\n--i\n\nx--i\n--o\n"
	  "Content-Transfer-Encoding: base64\n\neA==--o--\n",
	    "M0/-1(M1/0(t2/1(x--i))t3/0(x))" },
	/* no boundary: nothing to walk */
	{ "Content-Type: multipart/mixed\n\n--b\n", "t0/-1(--b\n)" },
};

/* NUL as \0. */
static void
assert_trace(struct buf *b, const char *want)
{
	struct buf shown;
	buf_init(&shown, 4096);
	for (size_t i = 0; i < b->len; i++)
		if (b->ptr[i] == '\0')
			buf_add_c(&shown, "\\0");
		else
			buf_add_char(&shown, b->ptr[i]);
	assert_str(buf_str(&shown), want);
	buf_done(&shown);
}

static void
test_rows(void **state)
{
	(void)state;
	static const size_t steps[] = { 1, 2, 3, 7, 1000 };
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		for (size_t k = 0; k < sizeof steps / sizeof *steps; k++) {
			struct trace t;
			assert_false(
			    walk(str_c(rows[i].message), steps[k], &t));
			assert_trace(&t.buf, rows[i].trace);
			buf_done(&t.buf);
		}
}

static void
repeat(struct buf *b, const char *unit, size_t count)
{
	for (size_t i = 0; i < count; i++)
		buf_add_c(b, unit);
}

/* The limits: one below, at, one above. */
static void
test_part_limit(void **state)
{
	(void)state;
	for (size_t parts = MIME_MAX_PARTS - 2; parts <= MIME_MAX_PARTS; parts++) {
		struct buf b;
		struct trace t;
		buf_init(&b, 1 << 20);
		buf_add_c(&b, "Content-Type: multipart/mixed; boundary=b\n\n");
		repeat(&b, "--b\n\nx\n", parts);
		/* the multipart itself is one */
		assert_int_equal(walk(buf_str(&b), 4096, &t),
		    parts + 1 > MIME_MAX_PARTS);
		buf_done(&t.buf);
		buf_done(&b);
	}
}

static void
test_depth_limit(void **state)
{
	(void)state;
	for (size_t depth = MIME_MAX_DEPTH - 1; depth <= MIME_MAX_DEPTH + 1;
	    depth++) {
		struct buf b;
		struct trace t;
		buf_init(&b, 1 << 20);
		repeat(&b, "Content-Type: message/rfc822\n\n", depth);
		buf_add_c(&b, "\nx");
		assert_int_equal(
		    walk(buf_str(&b), 4096, &t), depth > MIME_MAX_DEPTH);
		buf_done(&t.buf);
		buf_done(&b);
	}
}

static void
test_header_limit(void **state)
{
	(void)state;
	for (int more = -1; more <= 1; more++) {
		struct buf b;
		struct trace t;
		buf_init(&b, 2 << 20);
		buf_add_c(&b, "A: ");
		/* with "\n\n" behind it */
		while (b.len < MIME_MAX_HEADER_BYTES - 2 + (size_t)more)
			buf_add_char(&b, 'x');
		buf_add_c(&b, "\n\nbody");
		assert_int_equal(walk(buf_str(&b), 4096, &t), more > 0);
		buf_done(&t.buf);
		buf_done(&b);
	}
}

static void
test_hostile(void **state)
{
	(void)state;
	static const struct {
		const char *head, *unit;
		size_t count;
	} loads[] = {
		{ "Content-Type: multipart/mixed; boundary=b\n\n", "--b\n\n",
		    100000 },
		{ "", "Content-Type: message/rfc822\n\n", 20000 },
		{ "", "Content-Type: multipart/mixed; boundary=b\n\n--b\n",
		    20000 },
		{ "", "X: y\n", 200000 },
		{ "X: y\n", " z\n", 200000 },
		{ "Content-Type: a/b", "; x*0*=utf-8''%41", 40000 },
		{ "Content-Type: multipart/mixed; boundary=b\n\n", "--", 500000 },
		{ "Content-Type: multipart/mixed; boundary=b\n\n", "--\n",
		    300000 },
		{ "Content-Transfer-Encoding: quoted-printable\n\n", "= ",
		    500000 },
		{ "Subject: ", "=?utf-8?q?", 50000 },
	};
	int64_t begun = clock_mono_us();
	for (size_t i = 0; i < sizeof loads / sizeof *loads; i++) {
		struct buf b;
		buf_init(&b, 4 << 20);
		buf_add_c(&b, loads[i].head);
		repeat(&b, loads[i].unit, loads[i].count);
		struct text_extract *x = text_extract_new();
		assert_non_null(x);
		sink_push(text_extract_sink(x), b.ptr, b.len);
		assert_ok(sink_finish(text_extract_sink(x)));
		text_extract_free(&x);
		buf_done(&b);
	}
	assert_true(clock_mono_us() - begun < 20000000);
}

/* --- encoded words --- */

static void
test_encoded_words(void **state)
{
	(void)state;
	static const char *const words[][2] = {
		{ "plain", "plain" },
		{ "=?utf-8?Q?Gr=C3=BC=C3=9Fe?=", "Grüße" },
		{ "=?ISO-8859-1?q?a_b=5F?= c", "a b_ c" },
		{ "=?utf-8?B?R3LDvMOfZQ==?=", "Grüße" },
		{ "=?utf-8*de?B?R3LDvMOfZQ?=", "Grüße" },
		/* blanks between words go, others stay */
		{ "=?utf-8?q?a?=\r\n =?utf-8?q?b?= c", "ab c" },
		{ "x =?utf-8?q?a?=", "x a" },
		/* a character split between two words */
		{ "=?utf-8?b?R3LD?= =?utf-8?b?vMOfZQ==?=", "Grüße" },
		{ "\"=?utf-8?q?quoted?=\" <a@b>", "\"quoted\" <a@b>" },
		{ "=?iso-2022-jp?B?GyRCRnxLXBsoQg==?=", "日本" },
		{ "=?utf-8?q?no end", "=?utf-8?q?no end" },
		{ "=?utf-8?x?no?=", "=?utf-8?x?no?=" },
		{ "=?=?utf-8?q?a?=", "=?a" },
		{ "caf\xe9 caf\xc3\xa9", "café café" },
		{ "a\r\n b", "a b" },
		{ "=?utf-8?q?=4?=", "=4" },
		{ "=?utf-8?q?" "?=", "" },
	};
	for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
		struct buf b;
		buf_init(&b, 1000);
		encoded_decode(str_c(words[i][0]), &b);
		assert_str(buf_str(&b), words[i][1]);
		buf_done(&b);
	}
}

static void
test_params(void **state)
{
	(void)state;
	static const char *const params[][3] = {
		{ "text/plain; charset=utf-8", "charset", "utf-8" },
		{ "text/plain;CHARSET = \"utf-8\" ; x=y", "charset", "utf-8" },
		{ "text/plain; charset=us-ascii (Plain)", "charset", "us-ascii" },
		{ "a/b; n=\"a;b\\\"c\"", "n", "a;b\"c" },
		{ "a/b; n=\"C:\\tmp\\x\"", "n", "C:\\tmp\\x" },
		{ "a/b; name=my file.pdf; x=y", "name", "my file.pdf" },
		{ "a/b\r\n\tboundary=\"x\"", "boundary", "x" },
		{ "a/b; n*=utf-8'en'%e2%82%ac%20rates", "n", "€ rates" },
		{ "a/b; n*1=c; n*0*=iso-8859-1''%e9; n*2*=%e8", "n", "écè" },
		{ "a/b; n=old; n*=utf-8''new", "n", "new" },
		{ "a/b; n*0=a; n*2=c", "n", "a" },
		{ "a/b; n=\"=?utf-8?q?=C3=A4?=\"", "n", "ä" },
		{ "a/b; n*=novalue", "n", "novalue" },
		{ "a/b; n=\"open", "n", "open" },
		{ "a/b; n=", "n", "" },
		{ "a/b; name=x", "nam", NULL },
		{ "a/b", "n", NULL },
		{ "", "n", NULL },
	};
	for (size_t i = 0; i < sizeof params / sizeof *params; i++) {
		struct buf b;
		buf_init(&b, 1000);
		bool found = param_find(
		    str_c(params[i][0]), str_c(params[i][1]), &b);
		assert_int_equal(found, params[i][2] != NULL);
		if (found)
			assert_str(buf_str(&b), params[i][2]);
		buf_done(&b);
	}
}

/* --- text for the index --- */

static void
test_text(void **state)
{
	(void)state;
	static const char message[] =
	    "Subject: =?utf-8?q?Gr=C3=BC=C3=9Fe?=\r\n"
	    "From: \"A\" <a@example.org>\r\nTo: b@example.net\r\n"
	    "Cc: c@example.net\r\nMessage-ID: <1@example.org>\r\n"
	    "List-Id: <l.example.org>\r\nMIME-Version: 1.0\r\n"
	    "Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n"
	    "Content-Type: text/html; charset=iso-8859-1\r\n\r\n"
	    "<style>no</style><p>caf\xe9 \xee\x80\x80\r\n--b\r\n"
	    "Content-Type: application/pdf; name=r.pdf\r\n\r\n%PDF\r\n--b\r\n"
	    "Content-Type: message/rfc822\r\n\r\nSubject: inner\r\n\r\n"
	    "deep \xee\x80\x80 \xee\x80\x81 text\r\n--b--\r\n";
	struct text_extract *x = text_extract_new();
	for (int round = 0; round < 2; round++) {
		text_extract_reset(x);
		for (const char *p = message; *p != '\0'; p++)
			sink_push(text_extract_sink(x), p, 1);
		assert_ok(sink_finish(text_extract_sink(x)));
		const struct text_doc *d = text_extract_doc(x);
		assert_str(buf_str(&d->subject), "Grüße");
		assert_str(buf_str(&d->from), "\"A\" <a@example.org>");
		assert_str(buf_str(&d->to), "b@example.net");
		assert_str(buf_str(&d->cc), "c@example.net");
		assert_str(buf_str(&d->message_id), "<1@example.org>");
		assert_str(buf_str(&d->filename), "r.pdf");
		assert_int_equal(d->attachments, 2);
		assert_true(d->list);
		assert_false(d->partial);
		struct str body = buf_str(&d->body);
		assert_true(str_find(body, STR("café")) != SIZE_MAX);
		assert_true(str_find(body, STR("inner")) != SIZE_MAX);
		assert_true(str_find(body, STR("deep         text")) !=
		    SIZE_MAX);
		assert_true(str_find(body, STR("no")) == SIZE_MAX);
		assert_true(str_find(body, STR("PDF")) == SIZE_MAX);
	}
	text_extract_free(&x);
}

static void
test_text_limit(void **state)
{
	(void)state;
	for (int more = -1; more <= 1; more++) {
		struct text_extract *x = text_extract_new();
		struct sink *s = text_extract_sink(x);
		sink_push(s, "A: b\n\n", 6);
		for (size_t i = 0; i < TEXT_MAX_BODY + (size_t)more; i++)
			sink_push(s, "x", 1);
		assert_ok(sink_finish(s));
		const struct text_doc *d = text_extract_doc(x);
		assert_int_equal(d->partial, more > 0);
		assert_int_equal(d->body.len,
		    more > 0 ? TEXT_MAX_BODY : TEXT_MAX_BODY + (size_t)more);
		text_extract_free(&x);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows),
		cmocka_unit_test(test_part_limit),
		cmocka_unit_test(test_depth_limit),
		cmocka_unit_test(test_header_limit),
		cmocka_unit_test(test_hostile),
		cmocka_unit_test(test_encoded_words),
		cmocka_unit_test(test_params),
		cmocka_unit_test(test_text),
		cmocka_unit_test(test_text_limit),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
