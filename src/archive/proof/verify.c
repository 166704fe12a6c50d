#include "archive/proof/verify.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "archive/format/record.h"
#include "archive/proof/verify_inside.h"
#include "base/codec.h"

#define FRAME_MEMORY   ((size_t)20 << 20)
#define PROGRESS_EVERY 4096 /* frames */
/* A writer makes a group whole within some milliseconds. */
#define LIVE_TRIES 25
#define LIVE_WAIT_NS 20000000

/* --- faults --- */

static void
tell(struct verify *v, const struct verify_fault *f)
{
	v->counts.faults++;
	v->options->fault(v->options->context, f);
}

void
verify_shard_fault(struct verify *v, const char *fmt, ...)
{
	char text[VERIFY_MAX_TEXT];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	const struct verify_fault f = { .dir = v->entry->dir,
		.shard = v->entry->header.number, .text = text };
	tell(v, &f);
}

void
verify_frame_fault(struct verify *v, const struct segment_frame *f,
    const char *fmt, ...)
{
	char text[VERIFY_MAX_TEXT];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	const struct verify_fault fault = { .dir = v->entry->dir,
		.shard = v->entry->header.number,
		.has_frame = true,
		.frame = f != NULL ? f->header.number : v->number,
		.has_offset = true,
		.offset = f != NULL ? f->offset : v->at,
		.text = text };
	tell(v, &fault);
}

/* --- frames --- */

static void
check_seal(struct verify *v, const struct segment_frame *f, struct str meta)
{
	uint8_t root[LEAF_HASH_BYTES];
	struct str frames = record_find(meta, SEAL_FRAMES);
	struct str want = record_find(meta, SEAL_ROOT);
	if (frames.len != 8 ||
	    get_le64((const uint8_t *)frames.ptr) != f->header.number)
		verify_frame_fault(v, f, "the seal counts other frames");
	if (v->holes || want.len == 0)
		return;
	if (want.len != sizeof root || merkle_root(&v->tree, root) != RES_OK ||
	    memcmp(want.ptr, root, sizeof root) != 0)
		verify_frame_fault(v, f, "the seal has another tree head");
}

static void
check_body(struct verify *v, const struct segment_frame *f,
    const struct segment_content *c)
{
	struct err err = { "" };
	if (c->state[BLOCK_BODY] != BLOCK_WHOLE)
		return;
	enum res r =
	    segment_reader_body(v->reader, f, &err, sink_null());
	if (r == RES_OK && (f->header.flags & FRAME_BODY_IN_FILE) &&
	    !segment_body_file_ok(v->entry->dir, &c->body)) {
		err_set(&err, "its file in bodies has another length");
		r = RES_CORRUPT;
	}
	if (r == RES_NOTFOUND && (f->header.flags & FRAME_BODY_IN_FRAME)) {
		v->counts.erased++; /* of the message it repeats */
		return;
	}
	if (r != RES_OK)
		verify_frame_fault(v, f, "BODY: %s",
		    err.text[0] != '\0' ? err.text : res_text(r));
}

static void
say_blocks(struct verify *v, const struct segment_frame *f,
    const struct segment_content *c, const struct err *err)
{
	bool named = false;
	for (int b = 0; b < FRAME_BLOCKS; b++)
		if (c->state[b] == BLOCK_DAMAGED) {
			verify_frame_fault(v, f, "%s is damaged",
			    frame_block_name((enum frame_block)b));
			named = true;
		}
	if (!named)
		verify_frame_fault(v, f, "%s",
		    err->text[0] != '\0' ? err->text : "it cannot be read");
}

static enum res
load(struct verify *v, struct arena *a, const struct segment_frame *f,
    struct err *err, struct segment_content *c)
{
	enum res r = segment_reader_load(v->reader, a, f, err, c);
	for (int i = 0; i < LIVE_TRIES && r == RES_CORRUPT && v->live; i++) {
		const struct timespec wait = { 0, LIVE_WAIT_NS };
		nanosleep(&wait, NULL);
		err_clear(err);
		r = segment_reader_load(v->reader, a, f, err, c);
	}
	return r;
}

static enum res
check_frame(struct verify *v, const struct segment_frame *f)
{
	struct segment_content c = { .state = { BLOCK_ABSENT } };
	struct err err = { "" };
	struct arena *a = arena_new(FRAME_MEMORY * (LIVE_TRIES + 1));
	if (a == NULL)
		return RES_NOMEM;
	enum res r = load(v, a, f, &err, &c);
	if (r == RES_NOMEM || r == RES_IO) {
		arena_free(&a);
		return r;
	}
	bool erased = false;
	for (int b = 0; b < FRAME_BLOCKS; b++)
		erased = erased || c.state[b] == BLOCK_ERASED;
	v->counts.erased += erased;
	v->counts.frames++;
	v->counts.messages += f->header.type == FRAME_MESSAGE ||
	    f->header.type == FRAME_DELIVERY;
	if (verify_is_under_way(v, f->header.number)) {
		arena_free(&a);
		return RES_OK;
	}
	verify_check_erased(v, f, erased);
	if (r != RES_OK) {
		say_blocks(v, f, &c, &err);
	} else {
		check_body(v, f, &c);
		if (f->header.type == FRAME_NOTE && !erased)
			verify_check_note_frame(v, f, c.meta);
		if (f->header.type == FRAME_KEY && !erased)
			verify_check_key_frame(v, f, c.meta);
		if (f->header.type == FRAME_SEAL && !erased)
			check_seal(v, f, c.meta);
		if (f->header.type == FRAME_HELD && !erased)
			r = verify_check_held(v, f, &c);
	}
	arena_free(&a);
	return r == RES_CORRUPT ? RES_OK : r;
}

/* The frame at v->at; when a writer is at work, again until it is whole. */
static enum res
next_frame(struct verify *v, struct segment_frame *out)
{
	enum res r = segment_reader_at(v->reader, v->at, out);
	for (int i = 0; i < LIVE_TRIES && r == RES_CORRUPT && v->live; i++) {
		const struct timespec wait = { 0, LIVE_WAIT_NS };
		nanosleep(&wait, NULL);
		r = segment_reader_at(v->reader, v->at, out);
	}
	return r;
}

/* Where a frame should be is something else: name it, find the next. */
static enum res
skip_damage(struct verify *v, enum res why, struct segment_frame *out)
{
	enum res r = segment_reader_resync(
	    v->reader, v->at + 8, v->number, out);
	if (r == RES_OK)
		verify_frame_fault(v, NULL, "%s; the next one is frame %" PRIu64
		    " at %" PRIu64, why == RES_UNSUPPORTED ?
		    "a frame of a later version" : "no whole frame header",
		    out->header.number, out->offset);
	else if (r == RES_NOTFOUND)
		verify_frame_fault(v, NULL, "%s, and none behind it",
		    why == RES_UNSUPPORTED ? "a frame of a later version" :
		    "no whole frame header");
	v->holes = true;
	return r;
}

static enum res
walk(struct verify *v)
{
	uint64_t size = 0;
	bool sealed = false;
	enum res r = segment_reader_size(v->reader, &size);
	while (r == RES_OK) {
		struct segment_frame f;
		r = next_frame(v, &f);
		if (r == RES_CORRUPT || r == RES_UNSUPPORTED)
			r = skip_damage(v, r, &f);
		if (r == RES_NOTFOUND)
			return RES_OK;
		if (r != RES_OK)
			break;
		if (f.header.number != v->number) {
			verify_frame_fault(v, &f,
			    "frame %" PRIu64 " should stand there",
			    v->number);
			v->holes = true;
			v->number = f.header.number;
		}
		if (sealed)
			verify_frame_fault(v, &f, "it stands behind the seal");
		r = check_frame(v, &f);
		if (r == RES_OK)
			r = merkle_add(&v->tree, f.header.leaf);
		sealed = f.header.type == FRAME_SEAL;
		v->number = f.header.number + 1;
		v->at = segment_frame_end(&f);
		if (r == RES_OK)
			r = verify_compare_roots(v);
		if (v->options->progress != NULL &&
		    v->number % PROGRESS_EVERY == 0)
			v->options->progress(v->options->context,
			    v->entry->dir, v->at, size);
	}
	return r;
}

/* --- shards --- */

static bool
is_live(const char *dir)
{
	char path[PATH_MAX];
	if (io_path(path, "%s/LOCK", dir) != RES_OK)
		return false;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	bool live = flock(fd, LOCK_SH | LOCK_NB) != 0;
	close(fd);
	return live;
}

static enum res
verify_shard(struct verify *v)
{
	struct err err = { "" };
	merkle_init(&v->tree);
	v->holes = false;
	v->number = 0;
	v->at = SHARD_HEADER_BYTES;
	v->notes = NULL;
	v->note_count = v->note_cap = 0;
	v->next_size = 0;
	v->keys = NULL;
	v->live = is_live(v->entry->dir);
	v->counts.shards++;
	if (v->entry->status != RES_OK) {
		verify_shard_fault(v, "its header cannot be used: %s",
		    res_text(v->entry->status));
		return RES_OK;
	}
	verify_check_header(v);
	verify_check_first_key(v);
	enum res r = verify_read_checkpoints(v);
	if (r == RES_OK)
		r = verify_read_successors(v);
	if (r == RES_OK)
		r = verify_read_erasures(v);
	if (r != RES_OK) {
		arena_free(&v->erasures_arena);
		return r;
	}
	r = segment_reader_open(v->entry->dir, NULL, &err, &v->reader);
	if (r == RES_OK)
		r = walk(v);
	if (r == RES_OK) {
		uint64_t upto = verify_judge_notes(v);
		v->counts.unsigned_frames +=
		    v->number > upto ? v->number - upto : 0;
		verify_check_successors(v);
	} else if (r != RES_NOMEM) {
		verify_frame_fault(v, NULL, "%s",
		    err.text[0] != '\0' ? err.text : res_text(r));
		r = RES_OK;
	}
	segment_reader_close(&v->reader);
	arena_free(&v->erasures_arena);
	return r;
}

enum res
verify_store(const char *path, const struct verify_options *o,
    struct err *err, struct verify_counts *out)
{
	struct verify v = { .options = o };
	struct arena *a = arena_new((size_t)2 << 30);
	enum res r = a != NULL ? RES_OK : RES_NOMEM;
	if (r == RES_OK)
		r = store_dir_identity(path, err, &v.id);
	if (r == RES_OK)
		r = store_dir_shards(
		    path, NULL, a, err, &v.entries, &v.entry_count);
	intents_init(&v.intents, v.entries, v.entry_count);
	for (size_t i = 0; r == RES_OK && i < v.entry_count; i++) {
		v.entry = &v.entries[i];
		v.arena = arena_new(0);
		r = v.arena != NULL ? verify_shard(&v) : RES_NOMEM;
		arena_free(&v.arena);
		if (r == RES_OK && o->progress != NULL)
			o->progress(o->context, v.entry->dir, v.at, v.at);
	}
	intents_done(&v.intents);
	arena_free(&a);
	if (r == RES_OK)
		*out = v.counts;
	return r;
}
