/* The query parser: whatever it takes, FTS5 takes what it makes of it. */
#include <stdint.h>
#include <stdlib.h>

#include <sqlite3.h>

#include "archive/index/tokenizer.h"
#include "archive/search/query.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static sqlite3 *
table(void)
{
	static sqlite3 *db;
	if (db != NULL)
		return db;
	if (sqlite3_open(":memory:", &db) != SQLITE_OK ||
	    tokenizer_register(db) != RES_OK ||
	    sqlite3_exec(db,
		"CREATE VIRTUAL TABLE post USING fts5(subject, body, filename,"
		"sender_field, to_field, cc_field, sender, rcpt, other, facts,"
		"content='', tokenize='hanaper1')",
		NULL, NULL, NULL) != SQLITE_OK)
		abort();
	return db;
}

static void
try_match(struct str match)
{
	sqlite3_stmt *st = NULL;
	if (sqlite3_prepare_v2(table(),
		"SELECT 1 FROM post WHERE post MATCH ?1", -1, &st, NULL) !=
	    SQLITE_OK)
		abort();
	sqlite3_bind_text(st, 1, match.ptr, (int)match.len, SQLITE_STATIC);
	if (sqlite3_step(st) != SQLITE_DONE)
		abort();
	sqlite3_finalize(st);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arena *a = arena_new(0);
	struct query *q = NULL;
	struct err err = { "" };
	struct buf b;
	if (a == NULL)
		abort();
	enum res r = query_parse(
	    a, str_of(data, size), (int64_t)1780000000, &err, &q);
	if (r == RES_OK) {
		for (size_t i = 0; i < q->branch_count; i++)
			if (q->branches[i].match.len > 0)
				try_match(q->branches[i].match);
		buf_init(&b, (size_t)1 << 20);
		query_explain(q, &b);
		if (b.error != RES_OK)
			abort();
		buf_done(&b);
	} else if (r == RES_NOMEM || err.text[0] == '\0') {
		abort();
	}
	arena_free(&a);
	return 0;
}
