#include "archive/search/rows.h"

#include "archive/search/reader.h"

static const char sql[] =
    "SELECT id, time, " INDEX_DIRECTION ", qid FROM message"
    " WHERE time BETWEEN ?1 AND ?2";

struct rows {
	int64_t from_us, to_us;
	archive_row_fn fn;
	void *context;
	struct search_coverage *coverage;
	struct err *err;
};

static struct str
column(sqlite3_stmt *st, int i)
{
	const void *bytes = sqlite3_column_blob(st, i);
	return str_of(bytes, (size_t)sqlite3_column_bytes(st, i));
}

/* RES_IO: the index cannot be read; anything else is the caller's. */
static enum res
rows_of(struct rows *x, sqlite3 *db, uint32_t shard)
{
	sqlite3_stmt *st = NULL;
	enum res r = RES_OK;
	int rc = sqlite3_prepare_v2(db, sql, -1, &st, NULL);
	if (rc == SQLITE_OK) {
		sqlite3_bind_int64(st, 1, x->from_us);
		sqlite3_bind_int64(st, 2, x->to_us);
	}
	while (rc == SQLITE_OK && r == RES_OK &&
	    (rc = sqlite3_step(st)) == SQLITE_ROW) {
		const struct archive_row row = {
			.id = (uint64_t)shard << 32 |
			    (uint64_t)sqlite3_column_int64(st, 0),
			.time_us = sqlite3_column_int64(st, 1),
			.direction = column(st, 2),
			.queue_id = column(st, 3) };
		r = x->fn(x->context, &row);
		rc = SQLITE_OK;
	}
	if (r == RES_OK && rc != SQLITE_DONE) {
		err_set(x->err, "%s", sqlite3_errmsg(db));
		r = RES_IO;
	}
	sqlite3_finalize(st);
	return r;
}

static enum res
rows_of_shard(struct rows *x, struct archive_reader *r, struct shard_view *v)
{
	enum res res = v->entry.status;
	if (res != RES_OK) {
		err_set(x->err, "%s: %s", v->entry.dir, res_text(res));
		return RES_IO;
	}
	if (reader_begin(r, v, INT64_MAX, x->err) != RES_OK)
		return RES_IO;
	if (v->index.db != NULL)
		res = rows_of(x, v->index.db, v->entry.header.number);
	if (res == RES_OK && v->tail != NULL)
		res = rows_of(
		    x, index_handle(v->tail), v->entry.header.number);
	reader_cover(v, x->coverage);
	reader_end(v);
	return res;
}

enum res
archive_rows(struct archive_reader *r, int64_t from_us, int64_t to_us,
    archive_row_fn fn, void *context, struct err *err,
    struct search_coverage *out_coverage)
{
	struct search_coverage coverage = { 0 };
	enum res res = reader_refresh(r, err);
	for (size_t i = 0; i < r->shard_count && res == RES_OK; i++) {
		struct err why = { "" };
		struct rows x = { from_us, to_us, fn, context, &coverage,
			&why };
		res = rows_of_shard(&x, r, &r->shards[i]);
		if (res == RES_IO) {
			coverage.offline++;
			err_set(&coverage.why, "%s", why.text);
			res = RES_OK;
		}
	}
	*out_coverage = coverage;
	return res;
}
