#include "hn_test.h"

#include <stdio.h>

#include "base/buf.h"
#include "mail/canon.h"
#include "mail/canon_scan.h"

/* Bodies with their canonical forms: RFC 6376 §3.4.5 and every odd byte. */
static const struct vector {
	const char *in;
	size_t len;
	const char *simple, *relaxed; /* NULL: as the input */
} vectors[] = {
#define V(in, simple, relaxed)                                                 \
	{                                                                      \
		in, sizeof in - 1, simple, relaxed                             \
	}
	V("", "\r\n", ""),
	V("\r\n\r\n\r\n", "\r\n", ""),
	V(" \r\n", " \r\n", ""),
	V(" \t\r\n\r\n", " \t\r\n", ""),
	V("   ", "   \r\n", ""),
	V("a", "a\r\n", "a\r\n"),
	V("a\r\n\r\n\r\n", "a\r\n", "a\r\n"),
	V("a \t b  \r\n", NULL, "a b\r\n"),
	V("\ta\r\n", NULL, " a\r\n"),
	V("a\r\n \r\n", NULL, "a\r\n"),
	V("a\r\n\t\r\n\r\n", "a\r\n\t\r\n", "a\r\n"),
	V(" C \r\nD \t E\r\n\r\n\r\n", " C \r\nD \t E\r\n", " C\r\nD E\r\n"),
	V("a\nb\r\n", NULL, NULL),
	V("a\rb\r\n", NULL, NULL),
	V("a\0b\r\n", NULL, NULL),
	V("\xc3\xa9\r\n", NULL, NULL),
	V("\r\n\r\na\r\n", NULL, NULL),
	V("a\r", "a\r\r\n", "a\r\r\n"),
	V("a\r\r\n", NULL, NULL),
	V("a \r b\r\n", NULL, NULL),
	V("a \t\r b\r\n", NULL, "a \r b\r\n"),
	V("a\t\rb\r\n", NULL, "a \rb\r\n"),
	V("\n", "\n\r\n", "\n\r\n"),
	V(" \n\r\n", NULL, NULL),
	V("a\xa0\x0b\x0c\r\n", NULL, NULL),
	V("\r\n \r\n\tx", "\r\n \r\n\tx\r\n", "\r\n\r\n x\r\n"),
#undef V
};

typedef struct sink *canon_fn(struct arena *, enum canon, struct sink *);

/* Canonicalize in pieces cut at the given offsets. */
static void
run(canon_fn *fn, enum canon c, const char *in, size_t len, const size_t *cuts,
    size_t cut_count, struct buf *out)
{
	struct arena *a = arena_new(0);
	struct sink *s = fn(a, c, sink_buf(a, out));
	size_t from = 0;
	for (size_t i = 0; i <= cut_count; i++) {
		size_t to = i < cut_count ? cuts[i] : len;
		/* A copy of exact size: a read past its end is found. */
		char *piece = malloc(to - from + (to == from));
		if (to != from)
			memcpy(piece, in + from, to - from);
		sink_push(s, piece, to - from);
		free(piece);
		from = to;
	}
	assert_ok(sink_finish(s));
	arena_free(&a);
}

static void
check_vector(const struct vector *v, enum canon c, canon_fn *fn)
{
	const char *want = c == CANON_SIMPLE ? v->simple : v->relaxed;
	struct str s = want != NULL ? str_c(want) : str_of(v->in, v->len);
	struct buf b;
	buf_init(&b, 1000);
	run(fn, c, v->in, v->len, NULL, 0, &b);
	assert_true(str_eq(buf_str(&b), s));
	for (size_t i = 0; i <= v->len; i++) {
		for (size_t k = i; k <= v->len; k++) {
			buf_reset(&b);
			run(fn, c, v->in, v->len, (size_t[]){ i, k }, 2, &b);
			assert_true(str_eq(buf_str(&b), s));
		}
	}
	buf_done(&b);
}

static void
test_vectors(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof vectors / sizeof vectors[0]; i++) {
		for (enum canon c = CANON_SIMPLE; c <= CANON_RELAXED; c++) {
			check_vector(&vectors[i], c, canon_body);
			check_vector(&vectors[i], c, canon_body_reference);
		}
	}
}

static uint32_t
next_random(uint32_t *seed)
{
	*seed = *seed * 1664525 + 1013904223;
	return *seed >> 8;
}

/* Text whose bytes come from `alphabet`, with runs of data between. */
static size_t
random_text(char *out, size_t max, struct str alphabet, unsigned run_length,
    uint32_t *seed)
{
	size_t n = next_random(seed) % max;
	for (size_t i = 0; i < n;) {
		unsigned data = next_random(seed) % run_length;
		for (; data > 0 && i < n; data--, i++)
			out[i] = (char)('a' + i % 26);
		if (i < n)
			out[i++] =
			    alphabet.ptr[next_random(seed) % alphabet.len];
	}
	return n;
}

static void
compare(const char *text, size_t len, uint32_t *seed)
{
	for (enum canon c = CANON_SIMPLE; c <= CANON_RELAXED; c++) {
		struct buf want, got;
		buf_init(&want, 100000);
		buf_init(&got, 100000);
		run(canon_body_reference, c, text, len, NULL, 0, &want);
		run(canon_body, c, text, len, NULL, 0, &got);
		assert_true(str_eq(buf_str(&want), buf_str(&got)));
		size_t cuts[3] = { 0 };
		for (size_t i = 0; i < 3; i++) {
			size_t from = i > 0 ? cuts[i - 1] : 0;
			cuts[i] = from + next_random(seed) % (len - from + 1);
		}
		buf_reset(&got);
		run(canon_body, c, text, len, cuts, 3, &got);
		assert_true(str_eq(buf_str(&want), buf_str(&got)));
		buf_done(&want);
		buf_done(&got);
	}
}

static void
test_random(void **state)
{
	(void)state;
	static const struct {
		const char *alphabet;
		unsigned run_length;
		size_t max;
	} rows[] = {
		{ " \t\r\n", 1, 40 },
		{ " \t\r\n", 2, 300 },
		{ "  \r\n", 8, 900 },
		{ " \t", 40, 900 },
		{ " \r\n\t", 90, 12000 },
		{ "\r\n", 700, 12000 },
	};
	uint32_t seed = 1;
	static char text[12000];
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		for (unsigned k = 0; k < 400; k++) {
			size_t n = random_text(text, rows[i].max,
			    str_c(rows[i].alphabet), rows[i].run_length, &seed);
			compare(text, n, &seed);
		}
	}
}

/* A real text, split at every byte. */
static void
test_every_split(void **state)
{
	(void)state;
	struct buf text, want, got;
	buf_init(&text, 10000);
	buf_init(&want, 10000);
	buf_init(&got, 10000);
	for (int i = 0; i < 9; i++)
		buf_add_c(&text,
		    "Hi.\r\n\r\nWe  lost the game.\t Are you "
		    "hungry \t\r\n   \r\n\tyet?\r\n\r\n\r\n");
	run(canon_body_reference, CANON_RELAXED, text.ptr, text.len, NULL, 0,
	    &want);
	for (size_t i = 0; i <= text.len; i++) {
		buf_reset(&got);
		run(canon_body, CANON_RELAXED, text.ptr, text.len, &i, 1, &got);
		assert_true(str_eq(buf_str(&want), buf_str(&got)));
	}
	buf_done(&text);
	buf_done(&want);
	buf_done(&got);
}

/* Each scanner this processor can run agrees with the plain one. */
static void
test_scan_variants(void **state)
{
	(void)state;
	uint32_t seed = 7;
	char text[CANON_SCAN_BLOCK * 5];
	const struct canon_scanner *plain = canon_scanner_variant(0), *s;
	for (int round = 0; round < 2000; round++) {
		for (size_t i = 0; i < sizeof text; i++)
			text[i] = " \t\r\nabc\xff"[next_random(&seed) % 8];
		struct canon_marks want[5], got[5];
		char want_text[CANON_SCAN_BLOCK], got_text[CANON_SCAN_BLOCK];
		uint64_t carry_in = (uint64_t)(round & 1), carry = carry_in;
		uint64_t dirty = plain->scan(text, 5, want, &carry);
		uint64_t drop =
		    (uint64_t)next_random(&seed) << 32 | next_random(&seed);
		size_t len = plain->pack(text, drop, want_text);
		for (size_t v = 1; (s = canon_scanner_variant(v)); v++) {
			uint64_t c = carry_in;
			assert_int_equal(s->scan(text, 5, got, &c), dirty);
			assert_memory_equal(want, got, sizeof want);
			assert_int_equal(c, carry);
			assert_int_equal(s->pack(text, drop, got_text), len);
			assert_memory_equal(want_text, got_text, len);
		}
	}
	assert_non_null(canon_scanner_best());
	assert_null(canon_scanner_variant(99));
}

static void
check_field(enum canon c, const char *name, const char *value, const char *want)
{
	struct arena *a = arena_new(0);
	struct header *h = header_new(a, 0);
	struct buf b;
	buf_init(&b, 2000);
	assert_ok(header_add(h, str_c(name), str_c(value)));
	canon_field(c, header_at(h, 0), sink_buf(a, &b));
	assert_str(buf_str(&b), want);
	buf_done(&b);
	arena_free(&a);
}

static void
test_fields(void **state)
{
	(void)state;
	static const struct {
		const char *name, *value, *relaxed;
	} rows[] = {
		{ "A", " X", "a:X\r\n" },
		{ "B ", " Y\t\r\n\tZ  ", "b:Y Z\r\n" },
		{ "C", "", "c:\r\n" },
		{ "C", " \t ", "c:\r\n" },
		{ "C", "\r\n x", "c:x\r\n" },
		{ "C", " x\r\n ", "c:x\r\n" },
		{ "C", " x\r\n \r\n y", "c:x y\r\n" },
		{ "C", " a\rb\nc\x0b \xa0", "c:a\rb\nc\x0b \xa0\r\n" },
		{ "C\xc3\x84", "x", "c\xc3\x84:x\r\n" },
		{ "A-Name-Of-More-Than-Sixty-Four-Bytes-To-Cross-The-Buffer-"
		  "Of-The-Function",
		    "v",
		    "a-name-of-more-than-sixty-four-bytes-to-cross-the-buffer-"
		    "of-the-function:v\r\n" },
	};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		char raw[300];
		snprintf(
		    raw, sizeof raw, "%s:%s\r\n", rows[i].name, rows[i].value);
		check_field(CANON_RELAXED, rows[i].name, rows[i].value,
		    rows[i].relaxed);
		check_field(CANON_SIMPLE, rows[i].name, rows[i].value, raw);
	}
}

/* Values are staged in pieces: a run of blanks or a fold at every place of a
 * long one. */
static void
test_long_fields(void **state)
{
	(void)state;
	static const struct {
		const char *blanks, *relaxed;
	} rows[] = { { " ", " " }, { " \t ", " " }, { "\r\n\t", " " },
		{ " \r\n \r\n ", " " }, { "\r", "\r" } };
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
		for (size_t at = 1; at < 1100; at++) {
			char word[1101], value[2400], relaxed[2400];
			memset(word, 'x', 1100);
			word[1100] = '\0';
			snprintf(value, sizeof value, " %.*s%s%s ", (int)at,
			    word, rows[i].blanks, word + at);
			snprintf(relaxed, sizeof relaxed, "c:%.*s%s%s\r\n",
			    (int)at, word, rows[i].relaxed, word + at);
			check_field(CANON_RELAXED, "C", value, relaxed);
			/* the value ends in those blanks */
			if (rows[i].blanks[0] == '\r' &&
			    rows[i].blanks[1] == '\0')
				continue;
			snprintf(value, sizeof value, "%.*s%s", (int)at, word,
			    rows[i].blanks);
			snprintf(relaxed, sizeof relaxed, "c:%.*s\r\n", (int)at,
			    word);
			check_field(CANON_RELAXED, "C", value, relaxed);
		}
}

/* RFC 6376 §3.4.2, one byte after the other. */
static void
relax_naively(struct str v, struct buf *out)
{
	bool blank = false, begun = false;
	for (size_t i = 0; i < v.len; i++) {
		char c = v.ptr[i];
		if (c == '\r' && i + 2 < v.len && v.ptr[i + 1] == '\n' &&
		    ascii_is_wsp(v.ptr[i + 2])) {
			i += 2;
			c = ' ';
		}
		if (ascii_is_wsp(c)) {
			blank = true;
			continue;
		}
		if (blank && begun)
			buf_add_char(out, ' ');
		buf_add_char(out, c);
		blank = false;
		begun = true;
	}
}

static void
test_random_fields(void **state)
{
	(void)state;
	uint32_t seed = 11;
	struct buf want, got;
	buf_init(&want, 4096);
	buf_init(&got, 4096);
	for (int round = 0; round < 20000; round++) {
		char value[700];
		size_t len = next_random(&seed) % sizeof value;
		uint32_t kinds = round % 3 == 0 ? 8 : 40;
		for (size_t i = 0; i < len; i++) {
			uint32_t n = next_random(&seed) % kinds;
			value[i] = n < 6 ? " \t\r\n \r"[n] : (char)(60 + n);
		}
		struct arena *a = arena_new(0);
		struct header *h = header_new(a, 0);
		assert_ok(header_add(h, STR("C"), str_of(value, len)));
		const struct field *f = header_at(h, 0);
		buf_reset(&want);
		buf_add_c(&want, "c:");
		relax_naively(f->value, &want);
		buf_add_c(&want, "\r\n");
		buf_reset(&got);
		canon_field(CANON_RELAXED, f, sink_buf(a, &got));
		assert_true(str_eq(buf_str(&got), buf_str(&want)));
		arena_free(&a);
	}
	buf_done(&want);
	buf_done(&got);
}

static void
test_signature_field(void **state)
{
	(void)state;
	struct arena *a = arena_new(0);
	struct header *h = header_new(a, 0);
	struct buf b;
	buf_init(&b, 1000);
	struct str value = STR(" v=1; b= abc\r\n def \r\n ; s=x");
	assert_ok(header_add(h, STR("DKIM-Signature"), value));
	size_t from = str_find(value, STR(" abc"));
	size_t to = str_find(value, STR("; s=x"));
	canon_signature_field(
	    CANON_RELAXED, header_at(h, 0), from, to, sink_buf(a, &b));
	assert_str(buf_str(&b), "dkim-signature:v=1; b=; s=x");
	buf_reset(&b);
	canon_signature_field(
	    CANON_SIMPLE, header_at(h, 0), from, to, sink_buf(a, &b));
	assert_str(buf_str(&b), "DKIM-Signature: v=1; b=; s=x");
	buf_reset(&b);
	/* b= last: everything behind it goes, blanks too. */
	canon_signature_field(
	    CANON_RELAXED, header_at(h, 0), from, value.len, sink_buf(a, &b));
	assert_str(buf_str(&b), "dkim-signature:v=1; b=");
	buf_done(&b);
	arena_free(&a);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_vectors),
		cmocka_unit_test(test_random),
		cmocka_unit_test(test_every_split),
		cmocka_unit_test(test_scan_variants),
		cmocka_unit_test(test_fields),
		cmocka_unit_test(test_long_fields),
		cmocka_unit_test(test_random_fields),
		cmocka_unit_test(test_signature_field),
	};
	return cmocka_run_group_tests_name("mail/canon", tests, NULL, NULL);
}
