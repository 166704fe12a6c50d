#include "archive/keeping/holds.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "archive/keeping/erasures.h"
#include "archive/search/query.h"
#include "archive/store/segment_reader.h"
#include "base/fields.h"

#define QUERY_MEMORY ((size_t)16 << 20)

/* --- the file --- */

bool
hold_name_valid(struct str name)
{
	for (size_t i = 0; i < name.len; i++) {
		char c = name.ptr[i];
		if (!ascii_is_alpha(c) && !ascii_is_digit(c) && c != '-' &&
		    c != '_' && c != '.')
			return false;
	}
	return name.len > 0 && name.len <= HOLDS_MAX_NAME &&
	    name.ptr[0] != '-';
}

static enum res
read_hold(struct str *rest, struct arena *a, struct hold *out)
{
	struct fields f;
	enum res r = fields_read(rest, a, &f);
	if (r != RES_OK)
		return r;
	*out = (struct hold){ .name = fields_get(&f, "name"),
		.query = fields_get(&f, "query"),
		.login = fields_get(&f, "login"),
		.uid = (uint32_t)fields_get_number(&f, "uid"),
		.created_us = (int64_t)fields_get_number(&f, "created") };
	return hold_name_valid(out->name) ? RES_OK : RES_CORRUPT;
}

enum res
holds_parse(struct str text, const char *path, struct arena *a,
    struct err *err, struct holds *out)
{
	struct fields f;
	struct str rest = text, last = text;
	struct holds h = { .count = 0 };
	enum res r = fields_read(&rest, a, &f);
	if (r == RES_OK && fields_get_number(&f, "holds") != 1)
		r = RES_UNSUPPORTED;
	uint64_t count = r == RES_OK ? fields_get_number(&f, "count") : 0;
	if (r == RES_OK && count > HOLDS_MAX)
		r = RES_LIMIT;
	if (r == RES_OK) {
		h.items = arena_array(a, (size_t)count + 1, sizeof *h.items);
		r = h.items != NULL ? RES_OK : RES_NOMEM;
	}
	while (r == RES_OK && h.count < count) {
		last = rest;
		r = read_hold(&rest, a, &h.items[h.count++]);
	}
	/* one more than it says: none is dropped silently */
	r = fields_file_end(path, text, last, rest, r, err);
	if (r == RES_OK)
		*out = h;
	return r;
}

enum res
holds_read(const char *store_path, struct arena *a, struct err *err,
    struct holds *out)
{
	char path[PATH_MAX];
	struct str text;
	*out = (struct holds){ .count = 0 };
	enum res r = io_path(path, "%s/" HOLDS_FILE, store_path);
	if (r == RES_OK)
		r = io_read_file(path, HOLDS_MAX_BYTES, a, &text);
	if (r == RES_NOTFOUND)
		return RES_OK;
	if (r == RES_OK)
		r = holds_parse(text, path, a, err, out);
	if (r != RES_OK)
		err_set(err, "%s: %s", path, res_text(r));
	return r;
}

enum res
holds_write(const struct archive_io *io, const char *store_path,
    const struct holds *h)
{
	struct buf b;
	buf_init(&b, HOLDS_MAX_BYTES);
	fields_number(&b, "holds", 1);
	fields_number(&b, "count", h->count);
	fields_end(&b);
	for (size_t i = 0; i < h->count; i++) {
		const struct hold *one = &h->items[i];
		fields_text(&b, "name", one->name);
		fields_number(&b, "created", (uint64_t)one->created_us);
		fields_number(&b, "uid", one->uid);
		fields_text(&b, "login", one->login);
		fields_text(&b, "query", one->query);
		fields_end(&b);
	}
	enum res r = b.error;
	if (r == RES_OK)
		r = io_put_file(io, store_path, HOLDS_FILE, b.ptr, b.len);
	buf_done(&b);
	return r;
}

/* --- evaluating --- */

/* What stands in the segment: frames of mail that were not erased are in
 * doubt until the index says something of them. */
static enum res
list_frames(const struct shard_entry *e, struct err *err,
    struct held_frames *out)
{
	struct segment_reader *reader = NULL;
	struct segment_frame f;
	struct erasures erased;
	struct segment_walk w = SEGMENT_WALK;
	uint64_t cap = 0;
	struct arena *a = arena_new(ERASURES_ARENA);
	enum res r = a != NULL ? RES_OK : RES_NOMEM;
	if (r == RES_OK)
		r = erasures_read(e->dir, a, err, &erased);
	if (r == RES_OK)
		r = segment_reader_open(e->dir, NULL, err, &reader);
	while (r == RES_OK) {
		r = segment_reader_next(reader, &w, &f);
		if (r != RES_OK)
			break;
		if (w.next > cap) {
			uint64_t more = w.next * 2 < 1024 ? 1024 : w.next * 2;
			uint16_t *by = realloc(
			    out->by, (size_t)more * sizeof *by);
			if (by == NULL) {
				r = RES_NOMEM;
				break;
			}
			memset(by + cap, 0, (size_t)(more - cap) * sizeof *by);
			out->by = by;
			cap = more;
		}
		out->frames = w.next;
		bool mail = f.header.type == FRAME_MESSAGE ||
		    f.header.type == FRAME_DELIVERY ||
		    f.header.type == FRAME_HELD;
		if (mail && !erasures_have(&erased, f.header.number))
			out->by[f.header.number] = HELD_DOUBT;
	}
	segment_reader_close(&reader);
	arena_free(&a);
	return r == RES_NOTFOUND ? RES_OK : r;
}

struct marking {
	struct held_frames *held;
	uint16_t from, to; /* HELD_NOT as `from`: whatever it was */
};

static void
mark(void *context, uint64_t number)
{
	struct marking *m = context;
	if (number < m->held->frames &&
	    (m->from == HELD_NOT || m->held->by[number] == m->from))
		m->held->by[number] = m->to;
}

static enum res
run_query(struct archive_reader *reader, const struct shard_entry *e,
    struct str text, int64_t now_us, struct marking *m, struct err *err)
{
	struct query *q;
	struct search_coverage coverage;
	struct arena *a = arena_new(QUERY_MEMORY);
	if (a == NULL)
		return RES_NOMEM;
	enum res r = query_parse(a, text, now_us / 1000000, err, &q);
	if (r == RES_OK)
		r = archive_match(reader, e->header.number, a, q, err, mark,
		    m, &coverage);
	arena_free(&a);
	return r;
}

enum res
holds_evaluate(const struct holds *h, struct archive_reader *reader,
    const struct shard_entry *e, struct err *err, struct held_frames *out)
{
	*out = (struct held_frames){ .frames = 0 };
	if (h->count == 0)
		return RES_OK;
	struct err why = { "" };
	enum res r = list_frames(e, err, out);
	if (r != RES_OK) {
		held_frames_done(out);
		return r;
	}
	struct marking m = { out, HELD_DOUBT, HELD_NOT };
	r = run_query(reader, e, STR_EMPTY, 0, &m, &why);
	m = (struct marking){ out, HELD_NOT, HELD_DOUBT };
	if (r == RES_OK)
		r = run_query(reader, e, STR("index:partial OR index:damaged"),
		    0, &m, &why);
	for (size_t i = h->count; r == RES_OK && i-- > 0;) {
		m = (struct marking){ out, HELD_NOT, (uint16_t)(i + 1) };
		r = run_query(reader, e, h->items[i].query,
		    h->items[i].created_us, &m, &why);
	}
	if (r != RES_OK) { /* all of it is in doubt */
		held_frames_done(out);
		r = list_frames(e, err, out);
	}
	if (r != RES_OK) {
		held_frames_done(out);
		return r;
	}
	for (uint64_t i = 0; i < out->frames; i++)
		out->count += out->by[i] != HELD_NOT;
	return RES_OK;
}

void
held_frames_done(struct held_frames *h)
{
	free(h->by);
	*h = (struct held_frames){ .frames = 0 };
}
