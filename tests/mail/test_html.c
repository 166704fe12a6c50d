#include "hn_test.h"

#include "base/buf.h"
#include "base/clock.h"
#include "mail/entity.h"
#include "mail/html.h"

static const struct {
	const char *in, *out;
} rows[] = {
	{ "plain", "plain" },
	{ "a<b>b</b>c", "abc" },
	{ "a<br>b", "a\nb" },
	{ "<td>a</td><td>b</td>", "\na\n\nb\n" },
	{ "a<style>b{}</style>c", "a\n\nc" },
	{ "a<script>if (1 < 2) \"</b>\" </scripx></script>c", "a\n\nc" },
	{ "a<SCRIPT type='x>y'>z</Script >c", "a\n\nc" },
	{ "<title>T <b>t</b></title>x", "\nT <b>t</b>\nx" },
	{ "<textarea></textarea", "\n</textarea" },
	{ "a<!-- b > c -- d -->e", "ae" },
	{ "a<!-->b", "ab" },
	{ "a<!--->b", "ab" },
	{ "a<!----!>b", "ab" },
	{ "a<!-- x --!>b", "ab" },
	{ "a<!-- never closed", "a" },
	{ "a<!DOCTYPE html>b", "ab" },
	{ "a<![CDATA[b]] c]]>d", "ab]] cd" },
	{ "a<?php echo '1>2'?>b", "a2'?>b" },
	{ "<a href='x>y' title=\"<b>\">t</a>", "t" },
	{ "<a b=c>d</a>", "d" },
	{ "1 < 2 & 3 > 2", "1 < 2 & 3 > 2" },
	{ "a<<b>c</b>", "a<c" },
	{ "</>a</ b>c", "ac" },
	{ "&lt;&amp;&gt;&eacute;&copy &copy;", "<&>é© ©" },
	{ "&#228;&#xE4;&#XE4;", "äää" },
	{ "&#0;&#xD800;&#1114112;", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd" },
	{ "a&nbsp;b", "a b" },
	{ "don&#146;t &#138;koda&#x81;&#127;&#160;", "don’t Škoda \x7f " },
	{ "a<blockquote>b<br>c\n<p>d</blockquote>e",
	    "a\n> b\n> c\n\n> d\ne" },
	{ "<blockquote>a<blockquote>b</blockquote>c", "\n> a\n> > b\n> c" },
	{ "<blockquote>&eacute;&#10;&lt;<b>x</b>", "\n> é\n> <x" },
	{ "</blockquote>a<blockquote/>b", "\na\n> b" },
	{ "<blockquote><title>a\nb</title>", "\n\n> a\n> b\n" },
	{ "AT&T &unknown; &ampx;", "AT&T &unknown; &x;" },
	{ "x&am", "x" },
	{ "&ampere", "" },
	{ "&amp;lt;", "&lt;" },
	{ "<plaintext>a<b>c", "\na<b>c" },
	{ "a<b", "a" },
	{ "a<", "a<" },
};

static void
extract(const char *in, size_t step, struct buf *out)
{
	struct html h;
	struct str s = str_c(in);
	html_init(&h, out);
	for (size_t at = 0; at < s.len; at += step) {
		struct str part = str_sub(s, at, step);
		html_push(&h, part.ptr, part.len);
	}
	html_finish(&h);
}

static void
test_rows(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct buf whole, bytes;
		buf_init(&whole, 1000);
		buf_init(&bytes, 1000);
		extract(rows[i].in, 1000, &whole);
		extract(rows[i].in, 1, &bytes);
		assert_str(buf_str(&whole), rows[i].out);
		assert_str(buf_str(&bytes), rows[i].out);
		buf_done(&whole);
		buf_done(&bytes);
	}
}

/* Nesting and attributes without end cost what their bytes cost. */
static void
test_hostile(void **state)
{
	(void)state;
	static const char *const units[] = { "<div>", "<a b='", "&", "<!--",
		"</", "<script>", "&#x", "<title><", "<![CDATA[", "]]",
		"<blockquote>a" };
	int64_t begun = clock_mono_us();
	for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
		struct buf b;
		struct html h;
		buf_init(&b, 1 << 20);
		html_init(&h, &b);
		for (size_t n = 0; n < 200000; n++)
			html_push(&h, units[i], strlen(units[i]));
		html_finish(&h);
		buf_done(&b);
	}
	/* 10 million bytes; quadratic would be hours */
	assert_true(clock_mono_us() - begun < 20000000);
}

static void
test_entities_sorted(void **state)
{
	(void)state;
	for (size_t i = 1; i < entity_count(); i++)
		assert_true(
		    strcmp(entity_name(i - 1), entity_name(i)) < 0);
	assert_int_equal(entity_find(STR("hearts")), 0x2665);
	assert_int_equal(entity_find(STR("Hearts")), 0);
	assert_int_equal(entity_find(STR_EMPTY), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows),
		cmocka_unit_test(test_hostile),
		cmocka_unit_test(test_entities_sorted),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
