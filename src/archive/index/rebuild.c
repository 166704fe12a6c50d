#include "archive/index/rebuild.h"

#include "archive/index/index.h"

#define BATCH       1000
#define FRAME_ARENA ((size_t)32 << 20)

struct rebuild {
	struct segment_reader *reader;
	struct entry_builder *builder;
	struct index_writer *index;
	struct segment_walk walk;
};

/* Frames that cannot be read have no entry: whoever asks for those that are
 * not indexed finds them by that. */
static enum res
add_frame(struct rebuild *b, const struct segment_frame *f, struct err *err)
{
	struct entry e;
	struct err ignored = { "" };
	struct arena *a = arena_new(FRAME_ARENA);
	if (a == NULL)
		return RES_NOMEM;
	enum res r = entry_build(b->builder, a, b->reader, f, &ignored, &e);
	bool damaged = r == RES_CORRUPT || r == RES_LIMIT ||
	    (r == RES_OK && e.damaged);
	if (r == RES_OK)
		r = index_add(b->index, &e, err);
	else if (r == RES_NOTFOUND || damaged)
		r = RES_OK;
	if (r == RES_OK && damaged)
		r = index_note_damage(
		    b->index, f->offset, segment_frame_end(f), err);
	arena_free(&a);
	return r;
}

static enum res
add_batch(struct rebuild *b, struct err *err)
{
	struct segment_frame f;
	enum res r = index_begin(b->index, err);
	bool end = false;
	for (int i = 0; r == RES_OK && i < BATCH && !end; i++) {
		r = segment_reader_next(b->reader, &b->walk, &f);
		end = r == RES_NOTFOUND;
		if (r == RES_OK && f.offset > b->walk.from)
			r = index_note_damage(
			    b->index, b->walk.from, f.offset, err);
		if (r == RES_OK)
			r = add_frame(b, &f, err);
	}
	if (r == RES_OK || end)
		r = index_commit(
		    b->index, b->walk.at, b->walk.next, err);
	else
		index_rollback(b->index);
	return r == RES_OK && end ? RES_NOTFOUND : r;
}

enum res
rebuild_index(const char *dir, const atomic_bool *stop, struct err *err)
{
	struct rebuild b = { .walk = SEGMENT_WALK,
		.builder = entry_builder_new() };
	enum res r = b.builder != NULL ? RES_OK : RES_NOMEM;
	if (r == RES_OK)
		r = segment_reader_open(dir, NULL, err, &b.reader);
	if (r == RES_OK)
		r = index_build_begin(
		    dir, segment_reader_shard(b.reader), err, &b.index);
	while (r == RES_OK)
		r = stop != NULL && *stop ? RES_AGAIN : add_batch(&b, err);
	if (r == RES_NOTFOUND)
		r = index_optimize(b.index, err);
	if (r == RES_OK)
		r = index_build_end(&b.index, dir, err);
	index_close(&b.index, false);
	segment_reader_close(&b.reader);
	entry_builder_free(&b.builder);
	return r;
}

/* Where the last whole frame ends. */
static enum res
segment_end(const char *dir, uint64_t *out)
{
	struct segment_frame f;
	struct err ignored = { "" };
	struct segment_reader *reader;
	struct segment_walk w = SEGMENT_WALK;
	enum res r = segment_reader_open(dir, NULL, &ignored, &reader);
	if (r != RES_OK)
		return r;
	do
		r = segment_reader_next(reader, &w, &f);
	while (r == RES_OK);
	segment_reader_close(&reader);
	*out = w.at;
	return r == RES_NOTFOUND ? RES_OK : r;
}

bool
rebuild_is_needed(const char *dir)
{
	struct index_position at;
	uint64_t end;
	if (index_peek(dir, &at) != RES_OK || segment_end(dir, &end) != RES_OK)
		return true;
	return at.offset < end;
}
