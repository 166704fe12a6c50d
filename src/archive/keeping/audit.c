#include "archive/keeping/audit.h"

#include <time.h>

#include "archive/store/segment_reader.h"
#include "archive/store/store_dir.h"
#include "base/codec.h"

#define EVENT_MEMORY ((size_t)8 << 20)

/* --- writing --- */

static void
add_text(struct record *r, enum event_tag tag, struct str text)
{
	if (text.len > 0)
		record_add(r, tag, text);
}

static void
encode(struct record *r, const struct audit_event *e)
{
	record_add(r, EVENT_ACTION, e->action);
	record_add_u32(r, EVENT_UID, e->who.uid);
	add_text(r, EVENT_LOGIN, e->who.login);
	add_text(r, EVENT_QUERY, e->query);
	add_text(r, EVENT_REASON, e->reason);
	add_text(r, EVENT_NAME, e->name);
	for (size_t i = 0; i < e->id_count; i++)
		record_add_u64(r, EVENT_ID, e->ids[i]);
	if (e->more != NULL) /* without its version byte */
		buf_add_str(&r->buf, str_skip(buf_str(&e->more->buf), 1));
}

enum res
audit_write(struct store *s, const struct audit_event *e, bool is_intent,
    int64_t now_us, uint64_t *out_id)
{
	struct record r;
	if (e->id_count > AUDIT_MAX_IDS)
		return RES_LIMIT;
	record_init(&r, AUDIT_MAX_RECORD);
	encode(&r, e);
	enum res res = r.buf.error;
	if (res == RES_OK && e->more != NULL)
		res = e->more->buf.error;
	const struct store_message m = { .family = STORE_AUDIT_FAMILY,
		.time_us = now_us,
		.meta = buf_str(&r.buf),
		.type = is_intent ? FRAME_TOMBSTONE : FRAME_EVENT };
	if (res == RES_OK)
		res = store_submit(s, &m, out_id);
	record_done(&r);
	return res;
}

/* --- reading --- */

static enum res
decode_ids(struct arena *a, struct str meta, struct audit_event *e)
{
	struct record_reader r;
	unsigned tag;
	struct str value;
	uint64_t *ids = arena_array(a, meta.len / 14 + 1, sizeof *ids);
	if (ids == NULL)
		return RES_NOMEM;
	enum res res = record_open(meta, &r);
	while (res == RES_OK && record_next(&r, &tag, &value))
		if (tag == EVENT_ID && value.len == 8)
			ids[e->id_count++] =
			    get_le64((const uint8_t *)value.ptr);
	e->ids = ids;
	return res == RES_OK ? r.error : res;
}

static enum res
decode(struct arena *a, struct str meta, struct audit_event *e)
{
	struct str uid = record_find(meta, EVENT_UID);
	*e = (struct audit_event){ .action = record_find(meta, EVENT_ACTION),
		.query = record_find(meta, EVENT_QUERY),
		.reason = record_find(meta, EVENT_REASON),
		.name = record_find(meta, EVENT_NAME),
		.who = { .login = record_find(meta, EVENT_LOGIN) } };
	if (uid.len == 4)
		e->who.uid = get_le32((const uint8_t *)uid.ptr);
	return decode_ids(a, meta, e);
}

/* Places of a shard that are not whole are looked at again so often in all:
 * the next event may just be written. */
#define TRIES  20
#define TRY_NS 5000000L

struct walk {
	uint64_t from;       /* frame */
	bool only_intents, stop;
	bool (*each)(void *context, const struct audit_entry *e);
	void *context;
	uint64_t unreadable;
};

/* RES_CORRUPT: this event cannot be read. */
static enum res
visit(struct walk *w, struct segment_reader *reader,
    const struct segment_frame *f)
{
	struct segment_content c;
	struct audit_entry entry = { .time_us = f->header.time_us,
		.id = segment_frame_id(segment_reader_shard(reader), f),
		.is_intent = f->header.type == FRAME_TOMBSTONE };
	if (f->header.number < w->from ||
	    (f->header.type != FRAME_TOMBSTONE &&
		(f->header.type != FRAME_EVENT || w->only_intents)))
		return RES_OK;
	struct arena *a = arena_new(EVENT_MEMORY);
	if (a == NULL)
		return RES_NOMEM;
	enum res r = segment_reader_load(reader, a, f, NULL, &c);
	if (r == RES_OK)
		r = decode(a, c.meta, &entry.event);
	entry.meta = c.meta;
	if (r == RES_OK)
		w->stop = !w->each(w->context, &entry);
	arena_free(&a);
	return r == RES_OK || r == RES_NOMEM ? r : RES_CORRUPT;
}

/* An event behind something that is damaged. */
static enum res
visit_behind(struct walk *w, struct segment_reader *reader,
    const struct segment_frame *f)
{
	enum res r = visit(w, reader, f);
	w->unreadable += r == RES_CORRUPT;
	return r == RES_CORRUPT ? RES_OK : r;
}

/* The next event. RES_NOTFOUND: the end. */
static enum res
step(struct walk *w, struct segment_reader *reader, struct segment_walk *at,
    unsigned *tries)
{
	const struct timespec pause = { 0, TRY_NS };
	struct segment_frame f;
	for (;;) {
		struct segment_walk before = *at;
		enum res r = segment_reader_next(reader, at, &f);
		bool whole = at->damaged == before.damaged;
		if (r == RES_OK && whole) {
			r = visit(w, reader, &f);
			whole = r != RES_CORRUPT;
		}
		if (whole || r == RES_NOMEM)
			return r;
		if (*tries == TRIES) {
			w->unreadable++;
			return r == RES_OK ? visit_behind(w, reader, &f) :
			    r == RES_CORRUPT ? RES_OK : r;
		}
		++*tries;
		*at = before;
		nanosleep(&pause, NULL);
	}
}

static enum res
walk_shard(struct walk *w, const char *dir)
{
	struct segment_reader *reader;
	struct err ignored = { "" };
	struct segment_walk at = SEGMENT_WALK;
	unsigned tries = 0;
	enum res r = segment_reader_open(dir, NULL, &ignored, &reader);
	if (r != RES_OK) {
		w->unreadable++;
		return r == RES_NOMEM ? r : RES_OK;
	}
	while (!w->stop && r == RES_OK)
		r = step(w, reader, &at, &tries);
	segment_reader_close(&reader);
	return r == RES_NOTFOUND ? RES_OK : r;
}

enum res
audit_walk(const char *store_path, uint32_t shard, uint64_t frame,
    bool only_intents,
    bool (*each)(void *context, const struct audit_entry *e), void *context,
    uint64_t *out_unreadable, struct err *err)
{
	struct shard_entry *list = NULL;
	size_t count = 0;
	struct walk w = { .only_intents = only_intents, .each = each,
		.context = context };
	struct arena *a = arena_new(0);
	if (a == NULL)
		return RES_NOMEM;
	enum res r = store_dir_shards(
	    store_path, STORE_AUDIT_FAMILY, a, err, &list, &count);
	for (size_t i = 0; r == RES_OK && i < count && !w.stop; i++) {
		if (list[i].status != RES_OK) {
			w.unreadable++;
			continue;
		}
		if (list[i].header.number < shard)
			continue;
		w.from = list[i].header.number == shard ? frame : 0;
		r = walk_shard(&w, list[i].dir);
	}
	arena_free(&a);
	*out_unreadable = w.unreadable;
	return r;
}

static enum res
count_frames(const char *dir, struct err *err, uint64_t *out)
{
	struct segment_reader *reader;
	struct segment_frame f;
	uint64_t at = SHARD_HEADER_BYTES;
	enum res r = segment_reader_open(dir, NULL, err, &reader);
	if (r != RES_OK)
		return r;
	*out = 0;
	while (segment_reader_at(reader, at, &f) == RES_OK) {
		*out = f.header.number + 1;
		at = segment_frame_end(&f);
	}
	segment_reader_close(&reader);
	return RES_OK;
}

enum res
audit_end(const char *store_path, struct err *err, uint32_t *out_shard,
    uint64_t *out_frames)
{
	struct shard_entry *list = NULL;
	size_t count = 0, newest = 0;
	struct arena *a = arena_new(0);
	if (a == NULL)
		return RES_NOMEM;
	enum res r = store_dir_shards(
	    store_path, STORE_AUDIT_FAMILY, a, err, &list, &count);
	*out_shard = 0;
	*out_frames = 0;
	for (size_t i = 1; r == RES_OK && i < count; i++)
		if (list[i].status == RES_OK &&
		    list[i].header.number > list[newest].header.number)
			newest = i;
	if (r == RES_OK && count > 0 && list[newest].status == RES_OK) {
		*out_shard = list[newest].header.number;
		r = count_frames(list[newest].dir, err, out_frames);
	}
	arena_free(&a);
	return r;
}
