/* One message by its id. */
#include "archive/search/reader.h"

#include <inttypes.h>

#include "archive/keeping/held.h"

static uint64_t
indexed_offset(struct index_view *v, uint64_t number)
{
	sqlite3_stmt *st;
	uint64_t offset = 0;
	if (v->db == NULL ||
	    index_view_take(v, "SELECT position FROM message WHERE id = ?1",
		&st) != SQLITE_OK)
		return 0;
	sqlite3_bind_int64(st, 1, (sqlite3_int64)number);
	if (sqlite3_step(st) == SQLITE_ROW)
		offset = (uint64_t)sqlite3_column_int64(st, 0);
	index_view_give(v, st);
	return offset;
}

static void
keep_number(void *context, uint64_t number)
{
	*(uint64_t *)context = number;
}

/* The id under which family "hold" has what had this one; 0: it has not. */
static uint64_t
find_held(struct archive_reader *r, uint64_t id)
{
	struct err ignored = { "" };
	struct query *q;
	struct search_coverage coverage;
	uint64_t found = 0;
	struct arena *a = arena_new(0);
	if (a == NULL)
		return 0;
	struct str text = arena_printf(a, "origin:%" PRIu64 ".%" PRIu64,
	    id >> 32, id & UINT32_MAX);
	if (text.ptr != NULL && query_parse(a, text, 0, &ignored, &q) == RES_OK)
		for (size_t i = 0; found == 0 && i < r->shard_count; i++) {
			const struct shard_entry *e = &r->shards[i].entry;
			uint64_t number = UINT64_MAX;
			if (e->status != RES_OK ||
			    strcmp(e->family, STORE_HOLD_FAMILY) != 0)
				continue;
			enum res res = archive_match(r, e->header.number, a, q,
			    &ignored, keep_number, &number, &coverage);
			if (res == RES_OK && number != UINT64_MAX)
				found = (uint64_t)r->shards[i]
						.entry.header.number << 32 |
				    number;
		}
	arena_free(&a);
	return found;
}

static enum res
frame_of(struct archive_reader *r, uint64_t id, struct err *err,
    struct shard_view **out_view, struct segment_frame *out)
{
	uint32_t shard = (uint32_t)(id >> 32);
	uint64_t number = id & UINT32_MAX;
	struct shard_view *v = reader_find(r, shard);
	if (v == NULL && reader_refresh(r, err) == RES_OK)
		v = reader_find(r, shard);
	if (v == NULL) {
		err_set(err, "no shard %" PRIu32 " in %s", shard, r->path);
		return RES_NOTFOUND;
	}
	enum res res = reader_segment(r, v, err);
	if (res != RES_OK)
		return res;
	/* an index only says where; without one the segment is walked */
	if (v->index.db == NULL) {
		struct err unused = { "" };
		(void)!index_open_read(
		    v->entry.dir, &v->entry.header, &unused, &v->index);
		v->generation = 0;
	}
	uint64_t offset = indexed_offset(&v->index, number);
	res = RES_NOTFOUND;
	if (offset != 0)
		res = segment_reader_at(v->segment, offset, out);
	if (res != RES_OK || out->header.number != number)
		res = segment_reader_find(v->segment, number, out);
	if (res == RES_NOTFOUND)
		err_set(err, "shard %" PRIu32 " has no frame %" PRIu64, shard,
		    number);
	if (res == RES_OK) {
		reader_point_at(v, out);
		*out_view = v;
	}
	return res;
}

enum res
reader_frame(struct archive_reader *r, uint64_t id, struct err *err,
    struct shard_view **out_view, struct segment_frame *out)
{
	struct err why = { "" };
	enum res res = frame_of(r, id, &why, out_view, out);
	uint64_t held = 0;
	if (res == RES_NOTFOUND)
		held = find_held(r, id);
	if (held != 0)
		return frame_of(r, held, err, out_view, out);
	if (res != RES_OK)
		err_set(err, "%s", why.text);
	return res;
}

enum res
archive_get(struct archive_reader *r, struct arena *a, uint64_t id,
    struct err *err, struct archived *out)
{
	struct shard_view *v;
	struct segment_frame f;
	struct segment_content c;
	enum res res = reader_frame(r, id, err, &v, &f);
	if (res == RES_OK)
		res = segment_reader_load(v->segment, a, &f, err, &c);
	if (res != RES_OK)
		return res;
	if (f.header.type != FRAME_MESSAGE && f.header.type != FRAME_DELIVERY &&
	    f.header.type != FRAME_HELD) {
		err_set(err, "this frame is no message");
		return RES_NOTFOUND;
	}
	if (c.state[BLOCK_META] == BLOCK_ERASED ||
	    c.state[BLOCK_BODY] == BLOCK_ERASED) {
		err_set(err, "this message was erased");
		return RES_NOTFOUND;
	}
	*out = (struct archived){ .id = id,
		.time_us = f.header.time_us,
		.bytes = f.header.body_plain,
		.meta = held_meta(f.header.type, c.meta),
		.evidence = c.evidence,
		.edits = c.edits };
	return RES_OK;
}

enum res
archive_get_body(struct archive_reader *r, uint64_t id, struct err *err,
    struct sink *out)
{
	struct shard_view *v;
	struct segment_frame f;
	enum res res = reader_frame(r, id, err, &v, &f);
	if (res == RES_OK)
		res = segment_reader_body(v->segment, &f, err, out);
	if (res == RES_NOTFOUND)
		err_set(err, "this message was erased");
	enum res finished = sink_finish(out);
	return res != RES_OK ? res : finished;
}

enum res
archive_id_parse(struct str text, uint64_t *out)
{
	uint64_t shard, frame;
	size_t dot = str_chr(text, '.');
	if (dot == SIZE_MAX ||
	    str_to_u64(str_sub(text, 0, dot), UINT32_MAX, &shard) != RES_OK ||
	    str_to_u64(str_skip(text, dot + 1), UINT32_MAX, &frame) != RES_OK ||
	    shard == 0)
		return RES_SYNTAX;
	*out = shard << 32 | frame;
	return RES_OK;
}

void
archive_id_format(struct buf *out, uint64_t id)
{
	buf_addf(out, "%" PRIu64 ".%" PRIu64, id >> 32, id & UINT32_MAX);
}
