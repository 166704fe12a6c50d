#include "hn_test.h"

#include <sqlite3.h>
#include <stdio.h>

#include "archive/index/tokenizer.h"
#include "archive/search/query.h"

#define NOW ((int64_t)1780272000) /* 2026-06-01T00:00:00Z */

/* The first branch's expression, marks shown as F! and W!. */
static void
shown(const struct query *q, struct buf *out)
{
	for (size_t k = 0; k < q->branch_count; k++) {
		struct str m = q->branches[k].match;
		if (k > 0)
			buf_add_c(out, " | ");
		for (size_t i = 0; i < m.len; i++) {
			if (str_starts(str_skip(m, i), STR("\xee\x80\x80")))
				buf_add_c(out, "F!"), i += 2;
			else if (str_starts(str_skip(m, i),
				     STR("\xee\x80\x81")))
				buf_add_c(out, "W!"), i += 2;
			else
				buf_add_char(out, m.ptr[i]);
		}
		for (size_t i = 0; i < q->branches[k].cond_count; i++)
			buf_addf(out, "%s+%s",
			    q->branches[k].conds[i].negated ? " -" : " ",
			    q->branches[k].conds[i].node->kind == NODE_TIME
				? "time"
				: q->branches[k].conds[i].node->kind ==
				    NODE_SIZE
				? "size"
				: "net");
	}
}

static void
test_expressions(void **state)
{
	(void)state;
	static const char *const rows[][2] = {
		{ "", "" },
		{ "   ", "" },
		{ "invoice", "\"W!invoice\"" },
		{ "two words", "(\"W!two\" AND \"W!words\")" },
		{ "two AND words", "(\"W!two\" AND \"W!words\")" },
		{ "\"a phrase\"", "\"a phrase\"" },
		{ "pre*", "\"W!pre\" *" },
		{ "\"a phr\"*", "\"a phr\" *" },
		{ "a OR b c", "(\"W!a\" OR (\"W!b\" AND \"W!c\"))" },
		{ "a -b", "((\"W!a\") NOT (\"W!b\"))" },
		{ "a NOT b NOT c",
		    "((\"W!a\") NOT (\"W!b\" OR \"W!c\"))" },
		{ "-b", "(\"F!all\" NOT \"W!b\")" },
		{ "a -(b OR c)", "((\"W!a\") NOT ((\"W!b\" OR \"W!c\")))" },
		{ "subject:x", "{ subject } : \"W!x\"" },
		{ "SUBJECT:\"x y\"", "{ subject } : \"x y\"" },
		{ "subject:(x OR y)",
		    "({ subject } : \"W!x\" OR { subject } : \"W!y\")" },
		{ "from:@example.org",
		    "{ sender_field sender } : \"W!example.org\"" },
		{ "dkim:fail", "\"F!dkim=fail\"" },
		{ "DKIM:FAIL", "\"F!dkim=fail\"" },
		{ "dkim.d:Example*", "\"F!dkim.d=example\" *" },
		{ "msgid:<A@b>", "\"F!msgid=a@b\"" },
		{ "reason:nokey", "\"F!reason=nokey\"" },
		{ "reason:\"Body hash, did\"",
		    "\"F!reason=body F!reason=hash F!reason=did\"" },
		{ "reason:\"body ha\"*",
		    "\"F!reason=body F!reason=ha\" *" },
		{ "reason:a\xee\x80\x80" "b", "\"F!reason=aF!b\"" },
		{ "ip:192.0.2.0/24", "\"F!ip=192.0.2.0/24\"" },
		{ "ip:192.0.2.7", "\"F!ip=192.0.2.7\"" },
		{ "ip:192.0.2.128/25", "\"F!ip=192.0.2.0/24\" +net" },
		{ "ip:0.0.0.0/4", " +net" },
		{ "ip:2001:db8::/32", "\"F!ip=2001:db8::/32\"" },
		{ "ip:2001:db8:1::/40", "\"F!ip=2001:db8::/32\" +net" },
		{ "京", "\"W!京\" *" },
		{ "x larger:1M", "\"W!x\" +size" },
		{ "after:3d before:1d", " +time +time" },
		{ "-larger:1M", " -+size" },
		{ "x OR larger:1M", "\"W!x\" |  +size" },
		{ "-(x larger:1M)", "(\"F!all\" NOT \"W!x\") |  -+size" },
		{ "(a OR larger:1M) (b OR date:2026)",
		    "(\"W!a\" AND \"W!b\") | \"W!a\" +time | \"W!b\" +size | "
		    " +size +time" },
		{ "http://example.org/x", "\"W!http://example.org/x\"" },
		{ "Re: hello", "(\"W!Re:\" AND \"W!hello\")" },
		{ "a ... b", "(\"W!a\" AND \"W!b\")" },
		{ "...", "" },
		/* nothing in a word is syntax of FTS5 */
		{ "NEAR(a b) col:x\"", NULL },
		{ "a^b {c} + \"d\"\"e\"",
		    "(\"W!a^b\" AND \"W!{c}\" AND \"d\" AND \"e\")" },
		{ "x') OR 1=1 --", NULL },
		{ "or", "\"W!or\"" },
		{ "ORder", "\"W!ORder\"" },
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct arena *a = arena_new(0);
		struct query *q = NULL;
		struct err err = { "" };
		struct buf b;
		buf_init(&b, 10000);
		enum res r = query_parse(a, str_c(rows[i][0]), NOW, &err, &q);
		if (rows[i][1] == NULL) {
			assert_int_equal(r, RES_SYNTAX);
		} else {
			if (r != RES_OK)
				fail_msg("%s: %s", rows[i][0], err.text);
			shown(q, &b);
			assert_str(buf_str(&b), rows[i][1]);
		}
		buf_done(&b);
		arena_free(&a);
	}
}

static void
test_errors(void **state)
{
	(void)state;
	static const struct {
		const char *query, *error;
	} rows[] = {
		{ "a (b", "at 3: this parenthesis is never closed" },
		{ "a b)", "at 4: nothing was opened that this closes" },
		{ "a \"b", "at 3: this quotation mark is never closed" },
		{ "form:x", "at 1: no such field (quote it to search for the "
			    "word): form" },
		{ "a from:", "at 8: nothing stands behind from:" },
		{ "dkim:perhaps", "at 6: dkim: is one of pass fail softfail "
				  "neutral none temperror permerror policy "
				  "bestguesspass" },
		{ "ip:1.2.3", "at 4: no address or network: 1.2.3" },
		{ "after:soon", "at 7: no date (2026-11-30, 3d, "
				"2026-10..2026-11): soon" },
		{ "larger:big", "at 8: no size (500k, 10M): big" },
		{ "OR b", "at 1: OR wants a term on each side" },
		{ "a OR", "at 5: OR wants a term on each side" },
		{ "a OR OR b", "at 6: OR wants a term on each side" },
		{ "a NOT", "at 3: nothing stands behind NOT" },
		{ "subject:(from:x)", "at 10: a field inside a field's group: "
				      "from" },
		{ "a filename:*", "at 12: no letter or digit stands behind "
				  "filename:" },
		{ "from:@", "at 6: no letter or digit stands behind from:" },
		{ "date:2003..2002", "at 6: this ends before it begins: "
				     "2003..2002" },
		{ "\xff", "the query is not UTF-8 text" },
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct arena *a = arena_new(0);
		struct query *q = NULL;
		struct err err = { "" };
		assert_int_not_equal(
		    query_parse(a, str_c(rows[i].query), NOW, &err, &q),
		    RES_OK);
		assert_string_equal(err.text, rows[i].error);
		arena_free(&a);
	}
}

static void
parse_repeated(const char *head, const char *unit, size_t count,
    const char *tail, enum res want)
{
	struct arena *a = arena_new(0);
	struct query *q = NULL;
	struct err err = { "" };
	struct buf b;
	buf_init(&b, 100000);
	buf_add_c(&b, head);
	for (size_t i = 0; i < count; i++)
		buf_add_c(&b, unit);
	buf_add_c(&b, tail);
	enum res r = query_parse(a, buf_str(&b), NOW, &err, &q);
	if (r != want)
		fail_msg("%s × %zu: %s %s", unit, count, res_text(r), err.text);
	buf_done(&b);
	arena_free(&a);
}

static void
test_limits(void **state)
{
	(void)state;
	parse_repeated("", "a ", QUERY_MAX_TERMS - 1, "", RES_OK);
	parse_repeated("", "a ", QUERY_MAX_TERMS, "", RES_OK);
	parse_repeated("", "a ", QUERY_MAX_TERMS + 1, "", RES_LIMIT);
	parse_repeated("a", "", 0, "", RES_OK);
	parse_repeated("", "((((", QUERY_MAX_DEPTH / 4, "a", RES_SYNTAX);
	parse_repeated("", "((((", QUERY_MAX_DEPTH / 4, "(a", RES_LIMIT);
	parse_repeated("", "-", QUERY_MAX_DEPTH, "a", RES_OK);
	parse_repeated("", "-", QUERY_MAX_DEPTH + 1, "a", RES_LIMIT);
	parse_repeated("larger:1", " OR larger:1", QUERY_MAX_BRANCHES - 1, "",
	    RES_OK);
	parse_repeated("larger:1", " OR larger:1", QUERY_MAX_BRANCHES, "",
	    RES_LIMIT);
	parse_repeated("\"", "x", QUERY_MAX_TEXT - 2, "\"", RES_OK);
	parse_repeated("\"", "x", QUERY_MAX_TEXT - 1, "\"", RES_LIMIT);
	parse_repeated("", "- ", QUERY_MAX_TEXT / 2, "", RES_OK);
}

/* SQLite takes every expression we make. */
static void
test_accepted_by_fts5(void **state)
{
	(void)state;
	static const char *const queries[] = { "a", "-a", "a OR -b", "a -b -c",
		"-(a OR -b)", "(a OR b) (c OR -d)", "subject:(a -b)", "\"\"\"\"",
		"from:x* -to:y OR rcpt:\"z z\"", "a'b \\ % _", "ip:10.0.0.0/8",
		"京 -東京", "-(-(-(a)))", "NEAR a", "x:// AND y" };
	sqlite3 *db;
	assert_int_equal(sqlite3_open(":memory:", &db), SQLITE_OK);
	assert_ok(tokenizer_register(db));
	assert_int_equal(
	    sqlite3_exec(db,
		"CREATE VIRTUAL TABLE post USING fts5(subject, body, filename,"
		"sender_field, to_field, cc_field, sender, rcpt, other, facts,"
		"content='', tokenize='hanaper1')",
		NULL, NULL, NULL),
	    SQLITE_OK);
	for (size_t i = 0; i < sizeof queries / sizeof *queries; i++) {
		struct arena *a = arena_new(0);
		struct query *q;
		struct err err = { "" };
		sqlite3_stmt *st;
		if (query_parse(a, str_c(queries[i]), NOW, &err, &q) != RES_OK)
			fail_msg("%s: %s", queries[i], err.text);
		for (size_t k = 0; k < q->branch_count; k++) {
			struct str m = q->branches[k].match;
			if (m.len == 0)
				continue;
			(void)sqlite3_prepare_v2(db,
			    "SELECT 1 FROM post WHERE post MATCH ?1", -1, &st,
			    NULL);
			sqlite3_bind_text(
			    st, 1, m.ptr, (int)m.len, SQLITE_STATIC);
			if (sqlite3_step(st) != SQLITE_DONE)
				fail_msg("%s: %.*s: %s", queries[i],
				    STR_ARG(m), sqlite3_errmsg(db));
			sqlite3_finalize(st);
		}
		arena_free(&a);
	}
	sqlite3_close(db);
}

static void
test_dates(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		int64_t from, to; /* seconds; -1: open */
	} rows[] = {
		{ "2026", 1767225600, 1798761600 },
		{ "2026-05", 1777593600, 1780272000 },
		{ "2024-02-29", 1709164800, 1709251200 },
		{ "2026-05-31T12:30", 1780230600, 1780230660 },
		{ "2026-05-31T12:30:05Z", 1780230605, 1780230606 },
		{ "3d", 1780272000 - 3 * 86400, -1 },
		{ "2w", 1780272000 - 14 * 86400, -1 },
		{ "12h", 1780272000 - 12 * 3600, -1 },
		{ "today", 1780272000, 1780272000 + 86400 },
		{ "yesterday", 1780272000 - 86400, 1780272000 },
		{ "2026-05-01..2026-05-02", 1777593600,
		    1777593600 + 2 * 86400 },
		{ "..2026-05", -1, 1780272000 },
		{ "2026-05..", 1777593600, -1 },
		{ "3d..1d", 1780272000 - 3 * 86400, 1780272000 - 86400 },
	};
	int64_t from, to;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		assert_ok(query_date(str_c(rows[i].text), NOW, &from, &to));
		assert_int_equal(from,
		    rows[i].from < 0 ? INT64_MIN : rows[i].from * 1000000);
		assert_int_equal(
		    to, rows[i].to < 0 ? INT64_MAX : rows[i].to * 1000000);
	}
	static const char *const bad[] = { "", "..", "2026-13", "2026-02-29",
		"26-01-01", "2026-1-1", "3x", "d", "2026-05-31T25:00", "1969",
		"-3d", "2026-05-31 12:00", "a..b" };
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		assert_int_equal(
		    query_date(str_c(bad[i]), NOW, &from, &to), RES_SYNTAX);
}

static void
test_sizes(void **state)
{
	(void)state;
	int64_t n;
	assert_ok(query_size(STR("1500"), &n));
	assert_int_equal(n, 1500);
	assert_ok(query_size(STR("10k"), &n));
	assert_int_equal(n, 10240);
	assert_ok(query_size(STR("5MB"), &n));
	assert_int_equal(n, 5 << 20);
	assert_int_equal(query_size(STR("k"), &n), RES_SYNTAX);
	assert_int_equal(query_size(STR(""), &n), RES_SYNTAX);
	assert_int_equal(query_size(STR("-1"), &n), RES_SYNTAX);
	assert_int_equal(query_size(STR("999999999999T"), &n), RES_SYNTAX);
}

static void
test_explain(void **state)
{
	(void)state;
	struct arena *a = arena_new(0);
	struct query *q;
	struct buf b;
	buf_init(&b, 10000);
	assert_ok(query_parse(a,
	    STR("invoice from:bob -dkim:pass after:2026-05-01 larger:1k ... "
		"subject:\"a b\"* ip:10.1.2.0/23"),
	    NOW, NULL, &q));
	query_explain(q, &b);
	assert_str(buf_str(&b),
	    "all of:\n"
	    "  the word \"invoice\" in any text\n"
	    "  from: the word \"bob\" in From or the envelope sender\n"
	    "  not:\n"
	    "    the fact dkim=pass\n"
	    "  archived from 2026-05-01T00:00:00.000000Z\n"
	    "  larger than 1024 bytes\n"
	    "  subject: the phrase \"a b\" or one that begins so in the "
	    "subject\n"
	    "  all of:\n"
	    "    the fact ip=10.1.0.0/16\n"
	    "    a client in 10.1.2.0/23\n"
	    "ignored, no letter or digit in it: \"...\"\n");
	buf_done(&b);
	arena_free(&a);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_expressions),
		cmocka_unit_test(test_errors),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_accepted_by_fts5),
		cmocka_unit_test(test_dates),
		cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_explain),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
