#include "archive/search/reader.h"

#include <stdlib.h>
#include <string.h>

#include "archive/store/io.h"
#include "base/clock.h"

enum res
archive_reader_open(
    const char *path, struct err *err, struct archive_reader **out)
{
	struct store_identity identity;
	enum res r = store_dir_identity(path, err, &identity);
	if (r != RES_OK)
		return r;
	struct archive_reader *reader = calloc(1, sizeof *reader);
	if (reader == NULL)
		return RES_NOMEM;
	reader->path = strdup(path);
	reader->builder = entry_builder_new();
	reader->text = text_extract_new();
	r = RES_NOMEM;
	if (reader->path != NULL && reader->builder != NULL &&
	    reader->text != NULL)
		r = reader_refresh(reader, err);
	if (r == RES_OK)
		*out = reader;
	else
		archive_reader_close(&reader);
	return r;
}

static void
close_tail(struct shard_view *v)
{
	index_view_drop(&v->tail_index);
	index_close(&v->tail, false);
}

static void
close_view(struct shard_view *v)
{
	reader_end(v);
	index_view_close(&v->index);
	v->generation = v->pointed_at = 0;
	close_tail(v);
	segment_reader_close(&v->segment);
	v->used = 0;
}

const char *
archive_reader_path(const struct archive_reader *r)
{
	return r->path;
}

void
archive_reader_close(struct archive_reader **r)
{
	if (*r == NULL)
		return;
	for (size_t i = 0; i < (*r)->shard_count; i++)
		close_view(&(*r)->shards[i]);
	arena_free(&(*r)->arena);
	entry_builder_free(&(*r)->builder);
	text_extract_free(&(*r)->text);
	free((*r)->path);
	free(*r);
	*r = NULL;
}

/* --- the list of shards --- */

static int
newest_first(const void *a, const void *b)
{
	const struct shard_view *x = a, *y = b;
	int by_period = strcmp(y->entry.period, x->entry.period);
	if (by_period != 0)
		return by_period;
	uint32_t nx = x->entry.header.number, ny = y->entry.header.number;
	return nx < ny ? 1 : nx > ny ? -1 : 0;
}

/* What is open stays open with the shard it belongs to. */
static void
move_open(struct archive_reader *r, struct shard_view *to)
{
	for (size_t i = 0; i < r->shard_count; i++) {
		struct shard_view *from = &r->shards[i];
		if (from->used == 0 || from->entry.status != RES_OK ||
		    strcmp(from->entry.dir, to->entry.dir) != 0 ||
		    from->entry.header.number != to->entry.header.number)
			continue;
		struct shard_entry entry = to->entry;
		*to = *from;
		to->entry = entry;
		*from = (struct shard_view){ .entry = from->entry };
	}
}

enum res
reader_refresh(struct archive_reader *r, struct err *err)
{
	struct arena *arena = arena_new(0);
	struct shard_entry *entries = NULL;
	size_t count = 0;
	if (arena == NULL)
		return RES_NOMEM;
	enum res res =
	    store_dir_shards(r->path, NULL, arena, err, &entries, &count);
	struct shard_view *views = arena_array(arena, count + 1, sizeof *views);
	if (res == RES_OK && views == NULL)
		res = RES_NOMEM;
	if (res != RES_OK) {
		arena_free(&arena);
		return res;
	}
	for (size_t i = 0; i < count; i++) {
		views[i].entry = entries[i];
		if (entries[i].status == RES_OK)
			move_open(r, &views[i]);
	}
	qsort(views, count, sizeof *views, newest_first);
	for (size_t i = 0; i < r->shard_count; i++)
		close_view(&r->shards[i]);
	arena_free(&r->arena);
	r->arena = arena;
	r->shards = views;
	r->shard_count = count;
	return RES_OK;
}

struct shard_view *
reader_find(struct archive_reader *r, uint32_t number)
{
	for (size_t i = 0; i < r->shard_count; i++)
		if (r->shards[i].entry.status == RES_OK &&
		    r->shards[i].entry.header.number == number)
			return &r->shards[i];
	return NULL;
}

/* Mark as used; close the one unused for longest when there are too many. */
static void
touch(struct archive_reader *r, struct shard_view *v)
{
	size_t open = 0;
	struct shard_view *oldest = NULL;
	for (size_t i = 0; i < r->shard_count; i++) {
		struct shard_view *o = &r->shards[i];
		if (o == v || o->used == 0)
			continue;
		open++;
		if (oldest == NULL || o->used < oldest->used)
			oldest = o;
	}
	if (open >= READER_MAX_OPEN)
		close_view(oldest);
	v->used = ++r->tick;
}

/* --- one shard --- */

void
reader_point_at(struct shard_view *v, const struct segment_frame *f)
{
	struct segment_frame near;
	sqlite3_stmt *st = NULL;
	if (f->header.dictionary == v->pointed_at || v->index.db == NULL)
		return;
	v->pointed_at = f->header.dictionary;
	/* frames name it by its number + 1 */
	if (index_view_take(&v->index, "SELECT position FROM message"
		" WHERE id < ?1 ORDER BY id DESC LIMIT 1", &st) == SQLITE_OK) {
		sqlite3_bind_int64(st, 1, f->header.dictionary);
		if (sqlite3_step(st) == SQLITE_ROW)
			(void)!segment_reader_at(v->segment,
			    (uint64_t)sqlite3_column_int64(st, 0), &near);
	}
	index_view_give(&v->index, st);
}

enum res
reader_segment(struct archive_reader *r, struct shard_view *v, struct err *err)
{
	touch(r, v);
	if (v->segment != NULL)
		return RES_OK;
	return segment_reader_open(v->entry.dir, NULL, err, &v->segment);
}

static enum res
open_db(struct shard_view *v, struct err *err)
{
	char path[PATH_MAX];
	unsigned newest;
	enum res r = index_newest(v->entry.dir, path, sizeof path, &newest);
	if (v->index.db != NULL && r == RES_OK && newest == v->generation)
		return RES_OK;
	index_view_close(&v->index);
	v->generation = 0;
	if (r != RES_OK)
		return r;
	r = index_open_read(v->entry.dir, &v->entry.header, err, &v->index);
	if (r == RES_OK)
		v->generation = newest;
	return r;
}

/* Is what stands at `at` damaged, or still being written? A frame behind it
 * says that it was durable once, or nobody does. */
static bool
was_durable(struct shard_view *v, uint64_t at)
{
	struct segment_frame f;
	uint64_t from = at + 8;
	while (segment_reader_resync(
		   v->segment, from, v->position.frames, &f) == RES_OK) {
		if (f.header.durable_upto > at)
			return true;
		from = f.offset + 8;
	}
	return false;
}

/* RES_NOTFOUND: erased. RES_CORRUPT, RES_LIMIT: this cannot be read. */
static enum res
build_entry(struct archive_reader *r, struct shard_view *v, struct arena *a,
    const struct segment_frame *f, struct entry *out)
{
	out->damaged = false;
	enum res res = entry_build(r->builder, a, v->segment, f, NULL, out);
	return res == RES_OK && out->damaged ? RES_CORRUPT : res;
}

/* This frame into the tail. RES_AGAIN: not all of it is there. */
static enum res
add_frame(struct archive_reader *r, struct shard_view *v, struct arena *a,
    const struct segment_frame *f, struct err *err)
{
	struct entry e;
	enum res res = build_entry(r, v, a, f, &e);
	/* pages not yet written read as zeros, as erased blocks do */
	if (res == RES_CORRUPT || res == RES_NOTFOUND) {
		if (!was_durable(v, f->offset))
			return RES_AGAIN;
		res = build_entry(r, v, a, f, &e); /* it may be by now */
	}
	bool damaged = res == RES_CORRUPT || res == RES_LIMIT;
	if (res == RES_OK || (damaged && e.damaged))
		res = index_add(v->tail, &e, err);
	else if (damaged || res == RES_NOTFOUND)
		res = RES_OK;
	if (res == RES_OK && damaged)
		res = index_note_damage(
		    v->tail, f->offset, segment_frame_end(f), err);
	return res;
}

/* One frame into the tail. RES_NOTFOUND: the end, so far. RES_AGAIN: here
 * stands something that is not whole, and that nobody says was durable. */
static enum res
tail_frame(struct archive_reader *r, struct shard_view *v, struct err *err)
{
	struct segment_frame f;
	enum res res = segment_reader_at(v->segment, v->tail_upto, &f);
	if (res == RES_CORRUPT) {
		if (!was_durable(v, v->tail_upto))
			return RES_AGAIN;
		/* it may have become whole since it was looked at */
		res = segment_reader_at(v->segment, v->tail_upto, &f);
	}
	if (res == RES_CORRUPT || res == RES_UNSUPPORTED) {
		res = segment_reader_resync(
		    v->segment, v->tail_upto, v->position.frames, &f);
		if (res == RES_OK)
			res = index_note_damage(
			    v->tail, v->tail_upto, f.offset, err);
		if (res == RES_NOMEM)
			return res;
	}
	if (res != RES_OK)
		return RES_NOTFOUND; /* torn, or being written */
	struct arena *a = arena_new(0);
	if (a == NULL)
		return RES_NOMEM;
	res = add_frame(r, v, a, &f, err);
	arena_free(&a);
	if (res != RES_AGAIN)
		v->tail_upto = segment_frame_end(&f);
	return res;
}

static bool
is_mail(const struct segment_frame *f)
{
	return f->header.type == FRAME_MESSAGE ||
	    f->header.type == FRAME_DELIVERY || f->header.type == FRAME_HELD;
}

/* Frames that are whole behind `at`, not looked into. */
static uint64_t
count_frames(struct shard_view *v, uint64_t at)
{
	uint64_t count = 0;
	struct segment_frame f;
	while (segment_reader_at(v->segment, at, &f) == RES_OK) {
		count += is_mail(&f);
		at = segment_frame_end(&f);
	}
	return count;
}

/* Whole frames behind something that is not, of which nobody says that it was
 * durable: torn, or damage of a group that nothing followed. They are not
 * searched, and that must not pass in silence. */
static uint64_t
count_cut_off(struct shard_view *v)
{
	uint64_t count = 0, at = v->tail_upto + 8;
	struct segment_frame f;
	for (; segment_reader_resync(v->segment, at, v->position.frames, &f) ==
	     RES_OK;
	     at = segment_frame_end(&f))
		count += is_mail(&f);
	return count;
}

static void
note_cut_off(struct shard_view *v)
{
	v->unapplied = count_cut_off(v);
	if (v->unapplied > 0)
		err_set(&v->note,
		    "%s/segment: what stands behind %llu is being written, or "
		    "damaged: hanaper archive verify --all tells",
		    v->entry.dir, (unsigned long long)v->tail_upto);
}

/* Room for the tail of `v`. */
static void
drop_tail(struct archive_reader *r, const struct shard_view *v)
{
	size_t count = 0;
	struct shard_view *oldest = NULL;
	for (size_t i = 0; i < r->shard_count; i++) {
		struct shard_view *o = &r->shards[i];
		if (o == v || o->tail == NULL)
			continue;
		count++;
		if (oldest == NULL || o->used < oldest->used)
			oldest = o;
	}
	if (count >= READER_MAX_TAILS)
		close_tail(oldest);
}

/* What the segment holds behind the index: kept from the search before when
 * the index is where it was. */
static enum res
read_tail(struct archive_reader *r, struct shard_view *v, int64_t by_us,
    struct err *err)
{
	struct segment_frame f;
	enum res res = RES_OK;
	uint64_t from = v->position.offset;
	if (v->tail != NULL && v->tail_from != from)
		close_tail(v);
	if (v->tail == NULL) {
		v->tail_from = v->tail_upto = from;
		res = segment_reader_at(v->segment, from, &f);
		if (res != RES_OK && res != RES_CORRUPT)
			return RES_OK; /* nothing behind it */
		drop_tail(r, v);
		res = index_open_temporary(&v->entry.header, err, &v->tail);
		if (res == RES_OK)
			v->tail_index.db = index_handle(v->tail);
	}
	if (res == RES_OK)
		res = index_begin(v->tail, err);
	if (res != RES_OK)
		return res;
	uint64_t count = index_position(v->tail)->messages;
	uint64_t most = READER_MAX_TAIL, end = UINT64_MAX;
	if (by_us == INT64_MAX) {
		most = UINT64_MAX;
		/* what comes meanwhile might come faster than it is read */
		res = segment_reader_size(v->segment, &end);
	}
	unsigned tries = 0;
	while (res == RES_OK && count < most && v->tail_upto < end &&
	    clock_mono_us() < by_us) {
		res = tail_frame(r, v, err);
		/* a group is written in order: if there is more behind, what
		 * was half there a moment ago is whole now */
		if (res == RES_AGAIN && tries++ < READER_TRIES &&
		    count_cut_off(v) > 0)
			res = RES_OK;
		else
			count++;
	}
	bool more = res == RES_OK, cut_off = res == RES_AGAIN;
	if (res == RES_OK || res == RES_NOTFOUND || res == RES_AGAIN)
		res = index_commit(v->tail, v->tail_upto, 0, err);
	if (res != RES_OK) {
		close_tail(v);
		return res;
	}
	if (more)
		v->unapplied = count_frames(v, v->tail_upto);
	else if (cut_off)
		note_cut_off(v);
	return RES_OK;
}

static const struct index_position nothing = { .offset = SHARD_HEADER_BYTES,
	.min_time_us = INT64_MAX,
	.max_time_us = INT64_MIN };

/* The index and where it has come to; db NULL on any error. */
static enum res
begin_index(struct shard_view *v, struct err *err)
{
	enum res res = open_db(v, err);
	if (res != RES_OK)
		return res;
	res = RES_IO;
	if (index_view_run(&v->index, "BEGIN") == SQLITE_OK) {
		v->in_transaction = true;
		res = index_read_position(&v->index, &v->position);
	}
	if (res == RES_OK)
		return res;
	err_set(err, "%s: the index cannot be read: %s", v->entry.dir,
	    sqlite3_errmsg(v->index.db));
	reader_end(v);
	index_view_close(&v->index);
	v->generation = 0;
	v->position = nothing;
	return res;
}

static void
note_damage(struct shard_view *v, struct index_view *index)
{
	uint64_t from, to, count = index_read_damage(index, &from, &to);
	if (count > 0)
		err_set(&v->note, "%s/segment is damaged at %llu to %llu",
		    v->entry.dir, (unsigned long long)from,
		    (unsigned long long)to);
	v->damaged += count;
}

void
reader_cover(const struct shard_view *v, struct search_coverage *c)
{
	c->shards++;
	c->messages += v->position.messages;
	if (v->tail != NULL)
		c->messages += index_position(v->tail)->messages;
	c->unapplied += v->unapplied;
	c->damaged += v->damaged;
	if (v->note.text[0] != '\0')
		err_set(&c->note, "%s", v->note.text);
}

enum res
reader_begin(struct archive_reader *r, struct shard_view *v, int64_t by_us,
    struct err *err)
{
	v->position = nothing;
	v->unapplied = v->damaged = 0;
	err_clear(&v->note);
	struct err why = { "" };
	enum res res = reader_segment(r, v, err);
	if (res != RES_OK)
		return res;
	res = begin_index(v, &why);
	if (res == RES_NOMEM)
		return res;
	if (res != RES_OK && res != RES_NOTFOUND)
		err_set(&v->note, "read without its index: %s", why.text);
	if (v->index.db != NULL)
		note_damage(v, &v->index);
	res = read_tail(r, v, by_us, err);
	if (res == RES_OK && v->tail != NULL)
		note_damage(v, &v->tail_index);
	if (res != RES_OK)
		reader_end(v);
	return res;
}

void
reader_end(struct shard_view *v)
{
	if (v->in_transaction)
		(void)index_view_run(&v->index, "COMMIT");
	v->in_transaction = false;
}
