#include "hn_test.h"

#include <sqlite3.h>

#include "archive/index/tokenizer.h"
#include "base/buf.h"

/* What FTS5 makes of a text: its own vocabulary of an index of one row,
 * "term@position" in order of position. */
static void
index_terms(const char *text, struct buf *out)
{
	sqlite3 *db;
	sqlite3_stmt *st;
	assert_int_equal(sqlite3_open(":memory:", &db), SQLITE_OK);
	assert_ok(tokenizer_register(db));
	assert_int_equal(
	    sqlite3_exec(db,
		"CREATE VIRTUAL TABLE t USING fts5(x, tokenize='hanaper1');"
		"CREATE VIRTUAL TABLE v USING fts5vocab(t, instance)",
		NULL, NULL, NULL),
	    SQLITE_OK);
	assert_int_equal(sqlite3_prepare_v2(db, "INSERT INTO t VALUES(?1)", -1,
			     &st, NULL),
	    SQLITE_OK);
	sqlite3_bind_text(st, 1, text, -1, SQLITE_STATIC);
	assert_int_equal(sqlite3_step(st), SQLITE_DONE);
	sqlite3_finalize(st);
	assert_int_equal(
	    sqlite3_prepare_v2(db,
		"SELECT term, offset FROM v ORDER BY offset, length(term), term",
		-1, &st, NULL),
	    SQLITE_OK);
	while (sqlite3_step(st) == SQLITE_ROW)
		buf_addf(out, "%s%s@%d", out->len > 0 ? " " : "",
		    (const char *)sqlite3_column_text(st, 0),
		    sqlite3_column_int(st, 1));
	sqlite3_finalize(st);
	sqlite3_close(db);
}

#define B60 "QUJDREVGabcdefgh0123456789QUJDREVGabcdefgh0123456789ABCDEFab"
#define X64 "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijkl"

static void
test_terms(void **state)
{
	(void)state;
	static const char *const rows[][2] = {
		{ "Hello, World!", "hello@0 world@1" },
		{ "don't 3.14", "don@0 t@1 3@2 14@3" },
		{ "Größe ÉCOLE naïve", "große@0 ecole@1 naive@2" },
		{ "e\xcc\x81"
		  "cole", "ecole@0" },
		/* addresses: whole beside the last local part, names beside theirs */
		{ "Alice.B@mail.Example.org",
		    "alice@0 b@1 alice.b@mail.example.org@1 mail@2 "
		    "example.org@2 mail.example.org@2 example@3 org@4" },
		{ "see www.example.org.",
		    "see@0 www@1 example.org@1 www.example.org@1 example@2 "
		    "org@3" },
		{ "x@localhost", "x@0 localhost@1" },
		{ "_dmarc.example.org",
		    "dmarc@0 example.org@0 dmarc.example.org@0 example@1 "
		    "org@2" },
		{ "--a-b--", "a@0 b@1" },
		/* CJK pairs and the last character */
		{ "日本語", "日本@0 本語@1 語@2" },
		{ "京", "京@0" },
		{ "東京tower", "東京@0 京@1 tower@2" },
		{ "한국어", "한국@0 국어@1 어@2" },
		/* widths */
		{ "ＡＢＣ１２３", "abc123@0" },
		{ "ｶﾞｷﾞ", "ガギ@0 ギ@1" },
		{ "ﾊﾟ", "パ@0" },
		/* base64 goes, one letter less stays; long tokens are cut */
		{ "a " B60 " b", "a@0 b@1" },
		{ X64 "mnop x", X64 "@0 x@1" },
		/* facts */
		{ TOKENIZER_FACT_MARK "dkim=Fail x",
		    TOKENIZER_FACT_MARK "dkim=Fail@0 x@1" },
		{ "", "" },
		{ "... ---", "" },
		{ "\xff\xfe", "" },
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct buf b;
		buf_init(&b, 10000);
		index_terms(rows[i][0], &b);
		assert_str(buf_str(&b), rows[i][1]);
		buf_done(&b);
	}
}

/* Which texts a query finds. */
static void
test_matches(void **state)
{
	(void)state;
	static const struct {
		const char *text, *query;
		bool found;
	} rows[] = {
		{ "mail of alice@example.org today", "\"alice@example.org\"",
		    true },
		{ "mail of alice@example.org today",
		    "\"" TOKENIZER_WORD_MARK "alice@example.org\"", true },
		{ "mail of alice@example.org today",
		    "\"of alice@example.org today\"", true },
		{ "mail of alice@example.org today",
		    "\"" TOKENIZER_WORD_MARK "example.org\"", true },
		{ "a@mail.example.org",
		    "\"" TOKENIZER_WORD_MARK "example.org\"", true },
		{ "a@example.org.evil.net",
		    "\"" TOKENIZER_WORD_MARK "example.org\"", false },
		{ "a@b.org c@example.net",
		    "\"" TOKENIZER_WORD_MARK "a@example.net\"", false },
		{ "日本語です", "\"日本\"", true },
		{ "日本語です", "\"本語\"", true },
		{ "日本語です", "\"日本語\"", true },
		{ "日本語です", "\"日語\"", false },
		{ "日本語です", "\"語\" *", true },
		{ "東京タワー and", "\"ワー and\"", true },
		{ "ＷＩＤＥ", "\"wide\"", true },
		{ "dkim=fail", "\"" TOKENIZER_FACT_MARK "dkim=fail\"", false },
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		sqlite3 *db;
		sqlite3_stmt *st;
		assert_int_equal(sqlite3_open(":memory:", &db), SQLITE_OK);
		assert_ok(tokenizer_register(db));
		assert_int_equal(
		    sqlite3_exec(db, "CREATE VIRTUAL TABLE t USING fts5(x, "
				     "content='', tokenize='hanaper1')",
			NULL, NULL, NULL),
		    SQLITE_OK);
		(void)sqlite3_prepare_v2(db,
		    "INSERT INTO t(rowid, x) VALUES(1, ?1)", -1, &st, NULL);
		sqlite3_bind_text(st, 1, rows[i].text, -1, SQLITE_STATIC);
		assert_int_equal(sqlite3_step(st), SQLITE_DONE);
		sqlite3_finalize(st);
		(void)sqlite3_prepare_v2(db,
		    "SELECT rowid FROM t WHERE t MATCH ?1", -1, &st, NULL);
		sqlite3_bind_text(st, 1, rows[i].query, -1, SQLITE_STATIC);
		if ((sqlite3_step(st) == SQLITE_ROW) != rows[i].found)
			fail_msg("%s in %s", rows[i].query, rows[i].text);
		sqlite3_finalize(st);
		sqlite3_close(db);
	}
}

static void
test_query_helpers(void **state)
{
	(void)state;
	assert_true(tokenizer_has_token(STR("a")));
	assert_true(tokenizer_has_token(STR("é")));
	assert_false(tokenizer_has_token(STR("...")));
	assert_false(tokenizer_has_token(STR("—“”")));
	assert_false(tokenizer_has_token(STR_EMPTY));
	assert_true(tokenizer_is_single_cjk(STR("京")));
	assert_false(tokenizer_is_single_cjk(STR("東京")));
	assert_false(tokenizer_is_single_cjk(STR("a")));
	struct buf b;
	buf_init(&b, 1000);
	tokenizer_fact(&b, STR("helo"), STR("Mail Host\x01"));
	assert_str(buf_str(&b), TOKENIZER_FACT_MARK "helo=mail_host_");
	buf_reset(&b);
	char lots[300];
	memset(lots, 'x', sizeof lots);
	tokenizer_fact(&b, STR("k"), str_of(lots, sizeof lots));
	assert_int_equal(b.len, TOKENIZER_MAX_MARKED);
	buf_done(&b);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_terms),
		cmocka_unit_test(test_matches),
		cmocka_unit_test(test_query_helpers),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
