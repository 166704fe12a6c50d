#include "archive/keeping/held.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "archive/format/merkle.h"
#include "archive/format/note.h"
#include "archive/proof/checkpoints.h"
#include "archive/store/io.h"
#include "archive/store/shard.h"
#include "base/codec.h"

#define MAX_META     (SEGMENT_MAX_RECORD + 65536)
#define FRAME_MEMORY ((size_t)64 << 20)

struct str
held_meta(enum frame_type type, struct str meta)
{
	return type == FRAME_HELD ? record_find(meta, HELD_META) : meta;
}

uint64_t
held_origin(struct str meta)
{
	struct str shard = record_find(meta, HELD_SHARD);
	struct str header = record_find(meta, HELD_HEADER);
	if (shard.len != 4 || header.len != FRAME_HEADER_BYTES)
		return 0;
	/* the frame number stands at 8 (archive-format(5)) */
	uint64_t number = get_le64((const uint8_t *)header.ptr + 8);
	return (uint64_t)get_le32((const uint8_t *)shard.ptr) << 32 |
	    (number & UINT32_MAX);
}

/* --- the tree of a finished shard --- */

/* Leaves of all frames; with a hole among them there is no proof, and none
 * either of a shard larger than a table may be. */
static enum res
table_read(struct merkle_table *t, struct segment_reader *reader,
    uint64_t frames)
{
	struct segment_frame f;
	uint64_t at = SHARD_HEADER_BYTES;
	enum res r = frames <= MERKLE_TABLE_MAX ? RES_OK : RES_LIMIT;
	while (r == RES_OK && t->count < frames) {
		r = segment_reader_at(reader, at, &f);
		if (r == RES_OK && f.header.number != t->count)
			r = RES_CORRUPT;
		if (r == RES_OK)
			r = merkle_table_add(t, f.header.leaf);
		if (r == RES_OK)
			at = segment_frame_end(&f);
	}
	if (r == RES_OK)
		return merkle_table_build(t);
	t->count = 0;
	return r == RES_NOMEM || r == RES_IO ? r : RES_OK;
}

/* A tree head that paths can lead to: what the last note signs, or the whole
 * shard. */
struct head {
	uint64_t size; /* 0: none */
	uint8_t root[LEAF_HASH_BYTES];
};

static enum res
head_of(const struct merkle_table *t, uint64_t size, struct head *out)
{
	struct merkle tree;
	enum res r = RES_OK;
	*out = (struct head){ .size = 0 };
	if (size == 0 || size > t->count)
		return RES_OK;
	merkle_init(&tree);
	for (uint64_t i = 0; r == RES_OK && i < size; i++)
		r = merkle_add(&tree, t->leaves[i]);
	if (r == RES_OK)
		r = merkle_root(&tree, out->root);
	if (r == RES_OK)
		out->size = size;
	return r;
}

static enum res
add_proof(struct record *r, const struct merkle_table *t,
    const struct head *h, uint64_t number)
{
	struct merkle_path *path = malloc(sizeof *path);
	enum res res = path != NULL ? RES_OK : RES_NOMEM;
	if (res == RES_OK)
		res = merkle_plan_inclusion(number, h->size, path);
	if (res == RES_OK)
		res = merkle_table_fill(t, path);
	if (res == RES_OK) {
		record_add_u64(r, HELD_SIZE, h->size);
		record_add(r, HELD_ROOT, str_of(h->root, sizeof h->root));
		for (size_t i = 0; i < path->count; i++)
			record_add(r, HELD_PATH,
			    str_of(path->nodes[i].hash, LEAF_HASH_BYTES));
	}
	free(path);
	return res;
}

/* --- copying --- */

struct copy {
	struct store *store;
	const struct shard_entry *entry;
	const struct holds *holds;
	const struct held_frames *held;
	struct segment_reader *reader;
	int fd;             /* of the segment */
	struct merkle_table table;
	struct arena *arena; /* of the note */
	struct str note;     /* the last one signed; may be empty */
	struct head noted, whole;
	/* ids that family "hold" has of this shard, by frame */
	uint8_t *there;
};

static enum res
add_origin(struct record *r, const struct copy *c,
    const struct segment_frame *f)
{
	uint8_t header[FRAME_HEADER_BYTES];
	uint8_t salts[FRAME_BLOCKS][FRAME_SALT_BYTES] = { 0 };
	const struct shard_header *s = segment_reader_shard(c->reader);
	const struct archive_io *io = &archive_io_system;
	enum res res = io_read(io, c->fd, header, sizeof header, f->offset);
	for (int b = 0; res == RES_OK && b < FRAME_BLOCKS; b++)
		if (f->header.stored[b] >= FRAME_SALT_BYTES)
			res = io_read(io, c->fd, salts[b], FRAME_SALT_BYTES,
			    f->offset + frame_block_offset(&f->header,
				(enum frame_block)b));
	record_add(r, HELD_UUID, str_of(s->store_uuid, sizeof s->store_uuid));
	record_add_u32(r, HELD_SHARD, s->number);
	record_add_u32(r, HELD_EPOCH, s->epoch);
	record_add(r, HELD_FAMILY, str_c(s->family));
	record_add(r, HELD_PERIOD, str_c(s->period));
	record_add(r, HELD_HEADER, str_of(header, sizeof header));
	record_add(r, HELD_SALTS, str_of(salts, sizeof salts));
	return res;
}

static enum res
make_meta(struct record *r, const struct copy *c,
    const struct segment_frame *f, struct str meta)
{
	unsigned by = c->held->by[f->header.number];
	bool noted = f->header.number < c->noted.size;
	const struct head *head = noted ? &c->noted : &c->whole;
	record_add(r, HELD_META, meta);
	enum res res = add_origin(r, c, f);
	if (res == RES_OK && head->size > 0)
		res = add_proof(r, &c->table, head, f->header.number);
	if (by != HELD_DOUBT)
		record_add(r, HELD_HOLD, c->holds->items[by - 1].name);
	if (noted)
		record_add(r, HELD_NOTE, c->note);
	return res != RES_OK ? res : r->buf.error;
}

static enum res
copy_frame(struct copy *c, const struct segment_frame *f, struct err *err)
{
	struct segment_content content = { .meta = STR_EMPTY };
	struct record meta;
	uint64_t id;
	struct arena *a = arena_new(FRAME_MEMORY);
	struct spool *body = a != NULL ? spool_new(a, c->store) : NULL;
	enum res r = body != NULL ? RES_OK : RES_NOMEM;
	record_init(&meta, MAX_META);
	if (r == RES_OK)
		r = segment_reader_load(c->reader, a, f, err, &content);
	if (r == RES_OK)
		r = segment_reader_body(
		    c->reader, f, err, spool_sink(body));
	if (r == RES_NOTFOUND) /* a block is all zeros, and nobody erased it */
		r = RES_CORRUPT;
	if (r == RES_OK)
		r = sink_finish(spool_sink(body));
	if (r == RES_OK)
		r = make_meta(&meta, c, f, content.meta);
	const struct store_message m = { .family = STORE_HOLD_FAMILY,
		.time_us = f->header.time_us,
		.meta = buf_str(&meta.buf),
		.evidence = content.evidence,
		.edits = content.edits,
		.body = body,
		.type = FRAME_HELD };
	if (r == RES_OK)
		r = store_submit(c->store, &m, &id);
	record_done(&meta);
	arena_free(&a);
	if (r != RES_OK)
		err_set(err, "%s: frame %llu is held and cannot be copied: %s",
		    c->entry->dir, (unsigned long long)f->header.number,
		    res_text(r));
	return r;
}

/* Which frames a try before this one has copied. */
static enum res
look_at_held(struct copy *c, const char *dir)
{
	struct segment_reader *reader;
	struct segment_frame f;
	struct err ignored = { "" };
	struct segment_walk w = SEGMENT_WALK;
	const struct shard_header *own = segment_reader_shard(c->reader);
	enum res r = segment_reader_open(dir, NULL, &ignored, &reader);
	if (r != RES_OK)
		return r == RES_NOMEM ? r : RES_OK;
	while ((r = segment_reader_next(reader, &w, &f)) == RES_OK) {
		if (f.header.type != FRAME_HELD)
			continue;
		struct segment_content content;
		struct arena *a = arena_new(FRAME_MEMORY);
		if (a == NULL) {
			r = RES_NOMEM;
			break;
		}
		uint64_t id = 0;
		if (segment_reader_load(
			reader, a, &f, &ignored, &content) == RES_OK)
			id = held_origin(content.meta);
		if (id >> 32 == own->number &&
		    (id & UINT32_MAX) < c->held->frames)
			c->there[id & UINT32_MAX] = 1;
		arena_free(&a);
	}
	segment_reader_close(&reader);
	return r == RES_NOMEM ? r : RES_OK;
}

static enum res
look_at_all_held(struct copy *c, struct err *err)
{
	struct shard_entry *list = NULL;
	size_t count = 0;
	struct arena *a = arena_new(0);
	enum res r = a != NULL ? RES_OK : RES_NOMEM;
	c->there = calloc((size_t)c->held->frames + 1, 1);
	if (c->there == NULL)
		r = RES_NOMEM;
	if (r == RES_OK)
		r = store_dir_shards(store_path(c->store), STORE_HOLD_FAMILY,
		    a, err, &list, &count);
	for (size_t i = 0; r == RES_OK && i < count; i++)
		if (list[i].status == RES_OK &&
		    strcmp(list[i].dir, c->entry->dir) != 0)
			r = look_at_held(c, list[i].dir);
	arena_free(&a);
	return r;
}

static enum res
copy_all(struct copy *c, struct err *err)
{
	struct segment_frame f;
	uint64_t at = SHARD_HEADER_BYTES, next = 0;
	enum res r;
	for (;;) {
		r = segment_reader_at(c->reader, at, &f);
		if (r == RES_CORRUPT || r == RES_UNSUPPORTED) {
			err_set(err, "%s: damaged at %llu, and what stood "
				     "there may be held", c->entry->dir,
			    (unsigned long long)at);
			return r;
		}
		if (r != RES_OK)
			break;
		next = f.header.number;
		at = segment_frame_end(&f);
		bool mail = f.header.type == FRAME_MESSAGE ||
		    f.header.type == FRAME_DELIVERY;
		if (!mail || next >= c->held->frames || c->there[next] ||
		    c->held->by[next] == HELD_NOT)
			continue;
		r = copy_frame(c, &f, err);
		if (r != RES_OK)
			return r;
	}
	return r == RES_NOTFOUND ? RES_OK : r;
}

/* Nobody gets the shard's segment while it is open here. */
static enum res
open_segment(struct copy *c, struct err *err)
{
	char path[PATH_MAX];
	enum res r = io_path(path, "%s/segment", c->entry->dir);
	if (r != RES_OK)
		return r;
	c->fd = open(path, O_RDONLY | O_CLOEXEC);
	if (c->fd < 0)
		return io_error(errno);
	return segment_reader_open(c->entry->dir, NULL, err, &c->reader);
}

/* The last note of the shard, when it is over this tree. */
static enum res
read_note(struct copy *c)
{
	struct str rest, one;
	struct note note;
	struct note_head head, last = { .size = 0 };
	c->arena = arena_new(CHECKPOINTS_MAX * 2);
	if (c->arena == NULL)
		return RES_NOMEM;
	enum res r = checkpoints_read(store_env(c->store)->io, c->entry->dir,
	    c->arena, &rest);
	if (r != RES_OK) /* there is a proof without it */
		return r == RES_NOMEM ? r : RES_OK;
	while (checkpoints_next(&rest, &one)) {
		if (note_open(one, &note) != RES_OK ||
		    note_head_parse(note.text, &head) != RES_OK)
			continue;
		c->note = one;
		last = head;
	}
	r = head_of(&c->table, last.size, &c->noted);
	if (r == RES_OK &&
	    memcmp(c->noted.root, last.root, sizeof last.root) != 0)
		c->noted.size = 0;
	return r;
}

enum res
held_copy(struct store *s, const struct shard_entry *e,
    const struct holds *holds, const struct held_frames *held,
    struct err *err)
{
	struct copy c = { .store = s, .entry = e, .holds = holds,
		.held = held, .fd = -1 };
	enum res r = open_segment(&c, err);
	if (r == RES_OK)
		r = look_at_all_held(&c, err);
	merkle_table_init(&c.table);
	if (r == RES_OK)
		r = table_read(&c.table, c.reader, held->frames);
	if (r == RES_OK)
		r = head_of(&c.table, c.table.count, &c.whole);
	if (r == RES_OK)
		r = read_note(&c);
	if (r == RES_OK)
		r = copy_all(&c, err);
	segment_reader_close(&c.reader);
	if (c.fd >= 0)
		close(c.fd);
	merkle_table_done(&c.table);
	arena_free(&c.arena);
	free(c.there);
	return r;
}
