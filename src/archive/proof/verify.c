#include "archive/proof/verify.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "archive/format/record.h"
#include "archive/keeping/erasures.h"
#include "archive/keeping/intents.h"
#include "archive/proof/checkpoints.h"
#include "archive/store/segment_reader.h"
#include "archive/store/shard.h"
#include "archive/store/store.h"
#include "archive/store/store_dir.h"
#include "base/codec.h"

#define FRAME_MEMORY   ((size_t)20 << 20)
#define MAX_TEXT       512
#define PROGRESS_EVERY 4096 /* frames */
/* A writer makes a group whole within some milliseconds. */
#define LIVE_TRIES 25
#define LIVE_WAIT_NS 20000000

/* A note that speaks of the shard under way. */
struct kept_note {
	struct str bytes;
	struct note_head head;
	uint64_t position; /* in checkpoints, from 1; 0: in `where` */
	const char *where; /* the successor's header */
	bool framed;       /* a NOTE frame has it too */
};

struct checked_key {
	struct note_key key;
	struct checked_key *next;
};

struct verify {
	const struct verify_options *options;
	struct verify_counts counts;
	struct store_identity id;
	struct shard_entry *entries;
	size_t entry_count;
	struct arena *arena; /* of the shard under way */
	/* the shard under way */
	const struct shard_entry *entry;
	struct segment_reader *reader;
	bool live;
	struct merkle tree;
	bool holes;
	uint64_t number, at;   /* the next frame's */
	struct kept_note *notes;
	size_t note_count, note_cap;
	uint64_t next_size;    /* of the notes ahead, the smallest */
	struct checked_key *keys;
	struct arena *erasures_arena;
	struct erasures erasures;
	struct intents intents;
};

/* --- faults --- */

static void
tell(struct verify *v, const struct verify_fault *f)
{
	v->counts.faults++;
	v->options->fault(v->options->context, f);
}

/* Of the shard, without a place in its segment. */
static void HN_PRINTF(2, 3)
shard_fault(struct verify *v, const char *fmt, ...)
{
	char text[MAX_TEXT];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	const struct verify_fault f = { .dir = v->entry->dir,
		.shard = v->entry->header.number, .text = text };
	tell(v, &f);
}

/* At a frame, or where the next one should begin. */
static void HN_PRINTF(3, 4)
frame_fault(struct verify *v, const struct segment_frame *f,
    const char *fmt, ...)
{
	char text[MAX_TEXT];
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

/* --- notes and keys --- */

static void
add_key(struct verify *v, const struct note_key *k)
{
	struct checked_key *c = arena_alloc(v->arena, sizeof *c);
	if (c == NULL)
		return; /* its notes are then called unknown: never silent */
	*c = (struct checked_key){ *k, v->keys };
	v->keys = c;
}

static enum res
add_note(struct verify *v, const struct kept_note *n)
{
	if (v->note_count == v->note_cap) {
		size_t cap = v->note_cap == 0 ? 64 : v->note_cap * 2;
		struct kept_note *more =
		    arena_array(v->arena, cap, sizeof *more);
		if (more == NULL)
			return RES_NOMEM;
		if (v->note_count > 0)
			memcpy(more, v->notes, v->note_count * sizeof *more);
		v->notes = more;
		v->note_cap = cap;
	}
	v->notes[v->note_count++] = *n;
	return RES_OK;
}

static bool
is_checkpoint(struct verify *v, struct str bytes, struct note_head *out)
{
	struct note note;
	struct note_origin origin = note_origin_of(&v->entry->header);
	return note_open(bytes, &note) == RES_OK &&
	    note_head_parse(note.text, out) == RES_OK &&
	    note_origin_same(&out->origin, &origin);
}

static enum res
read_checkpoints(struct verify *v)
{
	struct str text, bytes;
	uint64_t position = 0;
	enum res r = checkpoints_read(
	    &archive_io_system, v->entry->dir, v->arena, &text);
	if (r == RES_NOMEM)
		return r;
	if (r != RES_OK) {
		shard_fault(v, CHECKPOINTS_FILE ": cannot be read: %s",
		    res_text(r));
		return RES_OK;
	}
	while (r == RES_OK && checkpoints_next(&text, &bytes)) {
		struct kept_note n = { .bytes = bytes,
			.position = ++position };
		if (!is_checkpoint(v, bytes, &n.head))
			shard_fault(v, CHECKPOINTS_FILE ": note %" PRIu64
			    " is damaged", position);
		else
			r = add_note(v, &n);
	}
	return r;
}

/* What the headers of later shards say was signed of this one. */
static enum res
read_successors(struct verify *v)
{
	enum res r = RES_OK;
	for (size_t i = 0; i < v->entry_count && r == RES_OK; i++) {
		const struct shard_entry *e = &v->entries[i];
		struct kept_note n = { .where = e->dir };
		if (e->status != RES_OK ||
		    e->header.previous != v->entry->header.number ||
		    e->header.previous_note[0] == '\0')
			continue;
		n.bytes = str_c(e->header.previous_note);
		if (!is_checkpoint(v, n.bytes, &n.head))
			shard_fault(v, "the note in the header of %s is "
			    "damaged", e->dir);
		else
			r = add_note(v, &n);
	}
	return r;
}

static void HN_PRINTF(3, 4)
note_fault(struct verify *v, const struct kept_note *n, const char *fmt, ...)
{
	char text[MAX_TEXT];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	if (n->position != 0)
		shard_fault(v, CHECKPOINTS_FILE ": note %" PRIu64 " of %" PRIu64
		    " frames: %s", n->position, n->head.size, text);
	else
		shard_fault(v, "the note of %" PRIu64 " frames in the header "
		    "of %s: %s", n->head.size, n->where, text);
}

/* The tree has as many leaves as some notes speak of. */
static enum res
compare_roots(struct verify *v)
{
	uint8_t root[LEAF_HASH_BYTES];
	bool made = false;
	if (v->number < v->next_size || v->holes)
		return RES_OK;
	v->next_size = UINT64_MAX;
	for (size_t i = 0; i < v->note_count; i++) {
		const struct kept_note *n = &v->notes[i];
		if (n->head.size > v->number && n->head.size < v->next_size)
			v->next_size = n->head.size;
		if (n->head.size != v->number)
			continue;
		enum res r = made ? RES_OK : merkle_root(&v->tree, root);
		if (r != RES_OK)
			return r;
		made = true;
		if (memcmp(root, n->head.root, sizeof root) != 0)
			note_fault(v, n, "the frames are not those that were "
			    "signed");
	}
	return RES_OK;
}

/* Every signature by a key that the shard names. */
static void
check_signatures(struct verify *v, const struct kept_note *k)
{
	struct note n;
	if (note_open(k->bytes, &n) != RES_OK)
		return; /* it was opened before */
	for (size_t i = 0; i < n.count; i++) {
		const struct checked_key *c = v->keys;
		struct note one = { .text = n.text, .count = 1,
			.signatures = { n.signatures[i] } };
		enum res r = RES_NOTFOUND;
		for (; c != NULL && r == RES_NOTFOUND; c = c->next)
			r = note_check(&one, &c->key);
		if (r == RES_NOTFOUND)
			note_fault(v, k, "signature %zu is by a key that the "
			    "shard does not name", i + 1);
		else if (r != RES_OK)
			note_fault(v, k, "signature %zu is wrong", i + 1);
	}
	v->counts.notes += k->position != 0;
}

static uint64_t
judge_notes(struct verify *v)
{
	uint64_t upto = 0;
	for (size_t i = 0; i < v->note_count; i++) {
		const struct kept_note *n = &v->notes[i];
		check_signatures(v, n);
		if (n->head.size > v->number)
			note_fault(v, n, "the segment has only %" PRIu64
			    " frames", v->number);
		else if (n->head.size > upto)
			upto = n->head.size;
		if (n->head.size == 0)
			note_fault(v, n, "it signs nothing");
	}
	return upto;
}

/* A NOTE frame repeats a note of the file. */
static void
check_note_frame(
    struct verify *v, const struct segment_frame *f, struct str meta)
{
	struct str bytes = record_find(meta, NOTE_TEXT);
	struct note_head head;
	if (!is_checkpoint(v, bytes, &head)) {
		frame_fault(v, f, "its note is no checkpoint of this shard");
		return;
	}
	if (head.size > f->header.number)
		frame_fault(v, f, "its note speaks of later frames");
	for (size_t i = 0; i < v->note_count; i++)
		if (v->notes[i].position != 0 &&
		    str_eq(v->notes[i].bytes, bytes)) {
			v->notes[i].framed = true;
			return;
		}
	frame_fault(v, f, "its note is missing in " CHECKPOINTS_FILE);
}

/* A KEY frame is signed by the new key and by one before it. */
static void
check_key_frame(
    struct verify *v, const struct segment_frame *f, struct str meta)
{
	struct note n;
	struct note_handover h;
	struct note_origin origin = note_origin_of(&v->entry->header);
	if (note_open(record_find(meta, NOTE_TEXT), &n) != RES_OK ||
	    note_handover_parse(n.text, &h) != RES_OK ||
	    !note_origin_same(&h.origin, &origin)) {
		frame_fault(v, f, "it hands no key over");
		return;
	}
	bool vouched = v->keys == NULL; /* the first key of all */
	for (const struct checked_key *c = v->keys; c != NULL && !vouched;
	     c = c->next)
		vouched = note_check(&n, &c->key) == RES_OK;
	if (!vouched)
		frame_fault(v, f, "no key before it vouches for the new key");
	if (note_check(&n, &h.key) != RES_OK)
		frame_fault(v, f, "the new key itself did not sign");
	add_key(v, &h.key);
}

/* --- what was erased --- */

static int
by_frame(const void *va, const void *vb)
{
	const struct erased_frame *a = va, *b = vb;
	return (a->number > b->number) - (a->number < b->number);
}

static enum res
read_erasures(struct verify *v)
{
	struct err err = { "" };
	v->erasures_arena = arena_new(ERASURES_ARENA);
	if (v->erasures_arena == NULL)
		return RES_NOMEM;
	enum res r = erasures_read(
	    v->entry->dir, v->erasures_arena, &err, &v->erasures);
	if (r == RES_OK && v->erasures.count > 1)
		qsort(v->erasures.frames, v->erasures.count,
		    sizeof *v->erasures.frames, by_frame);
	if (r == RES_OK || r == RES_NOMEM)
		return r;
	shard_fault(v, ERASURES_FILE ": cannot be read: %s", res_text(r));
	v->erasures = (struct erasures){ .count = 0 };
	return RES_OK;
}

static const struct erased_frame *
find_erased(const struct verify *v, uint64_t number)
{
	const struct erased_frame key = { .number = number };
	if (v->erasures.count == 0)
		return NULL;
	return bsearch(&key, v->erasures.frames, v->erasures.count,
	    sizeof key, by_frame);
}

/* Is this frame being erased just now? Then it may look like anything. */
static bool
is_under_way(const struct verify *v, uint64_t number)
{
	const struct erased_frame *e = find_erased(v, number);
	return e != NULL && e->intent == 0;
}

/* Erased blocks, and nothing else, are what an intent stands for. */
static void
check_erased(struct verify *v, const struct segment_frame *f, bool erased)
{
	const struct erased_frame *e = find_erased(v, f->header.number);
	if (e == NULL && erased)
		frame_fault(v, f, "it was blanked, and no erasure names it");
	if (e == NULL || e->intent == 0)
		return;
	if (!erased)
		frame_fault(v, f, ERASURES_FILE " names it, but it is there");
	enum res r = intents_find(&v->intents, e->intent, &f->header);
	if (r == RES_NOTFOUND)
		frame_fault(v, f, "it was erased, but the intent %" PRIu64
		    ".%" PRIu64 " does not name it", e->intent >> 32,
		    e->intent & UINT32_MAX);
	else if (r != RES_OK)
		frame_fault(v, f, "the intent to erase it cannot be read: %s",
		    res_text(r));
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
		frame_fault(v, f, "the seal counts other frames");
	if (v->holes || want.len == 0)
		return;
	if (want.len != sizeof root || merkle_root(&v->tree, root) != RES_OK ||
	    memcmp(want.ptr, root, sizeof root) != 0)
		frame_fault(v, f, "the seal has another tree head");
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
		frame_fault(v, f, "BODY: %s",
		    err.text[0] != '\0' ? err.text : res_text(r));
}

static void
say_blocks(struct verify *v, const struct segment_frame *f,
    const struct segment_content *c, const struct err *err)
{
	bool named = false;
	for (int b = 0; b < FRAME_BLOCKS; b++)
		if (c->state[b] == BLOCK_DAMAGED) {
			frame_fault(v, f, "%s is damaged",
			    frame_block_name((enum frame_block)b));
			named = true;
		}
	if (!named)
		frame_fault(v, f, "%s", err->text[0] != '\0' ? err->text :
		    "it cannot be read");
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
	if (is_under_way(v, f->header.number)) {
		arena_free(&a);
		return RES_OK;
	}
	check_erased(v, f, erased);
	if (r != RES_OK) {
		say_blocks(v, f, &c, &err);
	} else {
		check_body(v, f, &c);
		if (f->header.type == FRAME_NOTE && !erased)
			check_note_frame(v, f, c.meta);
		if (f->header.type == FRAME_KEY && !erased)
			check_key_frame(v, f, c.meta);
		if (f->header.type == FRAME_SEAL && !erased)
			check_seal(v, f, c.meta);
	}
	arena_free(&a);
	return RES_OK;
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
		frame_fault(v, NULL, "%s; the next one is frame %" PRIu64
		    " at %" PRIu64, why == RES_UNSUPPORTED ?
		    "a frame of a later version" : "no whole frame header",
		    out->header.number, out->offset);
	else if (r == RES_NOTFOUND)
		frame_fault(v, NULL, "%s, and none behind it",
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
			frame_fault(v, &f, "frame %" PRIu64 " should stand "
			    "there", v->number);
			v->holes = true;
			v->number = f.header.number;
		}
		if (sealed)
			frame_fault(v, &f, "it stands behind the seal");
		r = check_frame(v, &f);
		if (r == RES_OK)
			r = merkle_add(&v->tree, f.header.leaf);
		sealed = f.header.type == FRAME_SEAL;
		v->number = f.header.number + 1;
		v->at = segment_frame_end(&f);
		if (r == RES_OK)
			r = compare_roots(v);
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

/* What the successor says of this shard. */
static void
check_successors(struct verify *v)
{
	uint8_t root[LEAF_HASH_BYTES], none[LEAF_HASH_BYTES] = { 0 };
	for (size_t i = 0; i < v->entry_count; i++) {
		const struct shard_entry *e = &v->entries[i];
		const struct shard_header *h = &e->header;
		if (e->status != RES_OK ||
		    h->previous != v->entry->header.number)
			continue;
		if (h->previous_frames != v->number)
			shard_fault(v, "the header of %s says it has %" PRIu64
			    " frames, not %" PRIu64, e->dir,
			    h->previous_frames, v->number);
		if (h->previous_bytes != v->at)
			shard_fault(v, "the header of %s says it has %" PRIu64
			    " bytes, not %" PRIu64, e->dir, h->previous_bytes,
			    v->at);
		if (!v->holes &&
		    memcmp(h->previous_root, none, sizeof none) != 0 &&
		    (merkle_root(&v->tree, root) != RES_OK ||
			memcmp(h->previous_root, root, sizeof root) != 0))
			shard_fault(v, "the header of %s has another tree head "
			    "of it", e->dir);
	}
}

/* Only a header: its making failed in the middle, and another took its place.
 * One that held frames is named by its successor. */
static bool
is_stillborn(const struct shard_entry *e)
{
	char path[PATH_MAX];
	struct stat st;
	return io_path(path, "%s/segment", e->dir) == RES_OK &&
	    stat(path, &st) == 0 && st.st_size <= SHARD_HEADER_BYTES;
}

/* The newest shard of the family that was made before this one; in `import`
 * of the same month. */
static const struct shard_entry *
before(const struct verify *v, const struct shard_entry *e)
{
	const struct shard_entry *found = NULL;
	for (size_t i = 0; i < v->entry_count; i++) {
		const struct shard_entry *o = &v->entries[i];
		if (o->status != RES_OK || strcmp(o->family, e->family) != 0 ||
		    o->header.number >= e->header.number ||
		    (strcmp(e->family, STORE_IMPORT_FAMILY) == 0 &&
			strcmp(o->period, e->period) != 0) ||
		    (o->header.number != e->header.previous &&
			is_stillborn(o)))
			continue;
		if (found == NULL || o->header.number > found->header.number)
			found = o;
	}
	return found;
}

static const struct shard_entry *
by_number(const struct verify *v, uint32_t number)
{
	for (size_t i = 0; i < v->entry_count; i++)
		if (v->entries[i].status == RES_OK &&
		    v->entries[i].header.number == number)
			return &v->entries[i];
	return NULL;
}

static void
check_header(struct verify *v)
{
	const struct shard_entry *e = v->entry;
	const struct shard_header *h = &e->header;
	if (memcmp(h->store_uuid, v->id.uuid, sizeof v->id.uuid) != 0)
		shard_fault(v, "it is of another store");
	if (strcmp(h->family, e->family) != 0 ||
	    strcmp(h->period, e->period) != 0)
		shard_fault(v, "its header says it is of %s %s", h->family,
		    h->period);
	if (h->epoch > v->id.epoch || h->number >= v->id.next_shard)
		shard_fault(v, "it is newer than the store's identity");
	const struct shard_entry *same = by_number(v, h->number);
	if (same != e)
		shard_fault(v, "%s has the same number", same->dir);
	const struct shard_entry *older = before(v, e);
	if (older == NULL)
		return; /* what was there has expired */
	if (h->previous == 0)
		shard_fault(v, "it names no shard before it, but there is "
		    "shard %" PRIu32, older->header.number);
	else if (by_number(v, h->previous) == NULL)
		shard_fault(v, "shard %" PRIu32 ", which it follows, is "
		    "missing", h->previous);
	else if (older->header.number != h->previous)
		shard_fault(v, "it follows shard %" PRIu32 ", but shard %"
		    PRIu32 " is between them", h->previous,
		    older->header.number);
}

/* Who signs here must be known from the shard before. */
static void
check_first_key(struct verify *v)
{
	struct note_key key, old;
	struct note n;
	const struct shard_header *h = &v->entry->header;
	if (h->key[0] == '\0')
		return;
	if (note_key_parse(str_c(h->key), &key) != RES_OK) {
		shard_fault(v, "its header has no verification key that can be "
		    "read");
		return;
	}
	add_key(v, &key);
	const struct shard_entry *p =
	    h->previous != 0 ? by_number(v, h->previous) : NULL;
	if (p == NULL || note_key_parse(str_c(p->header.key), &old) != RES_OK ||
	    note_key_same(&key, &old))
		return;
	/* else the new key signed the last note of the shard before, beside
	 * one that was known there */
	if (note_open(str_c(h->previous_note), &n) != RES_OK ||
	    note_check(&n, &key) != RES_OK)
		shard_fault(v, "its key is not the one of shard %" PRIu32
		    ", and did not sign the last note there", h->previous);
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
		shard_fault(v, "its header cannot be used: %s",
		    res_text(v->entry->status));
		return RES_OK;
	}
	check_header(v);
	check_first_key(v);
	enum res r = read_checkpoints(v);
	if (r == RES_OK)
		r = read_successors(v);
	if (r == RES_OK)
		r = read_erasures(v);
	if (r != RES_OK) {
		arena_free(&v->erasures_arena);
		return r;
	}
	r = segment_reader_open(v->entry->dir, NULL, &err, &v->reader);
	if (r == RES_OK)
		r = walk(v);
	if (r == RES_OK) {
		uint64_t upto = judge_notes(v);
		v->counts.unsigned_frames +=
		    v->number > upto ? v->number - upto : 0;
		check_successors(v);
	} else if (r != RES_NOMEM) {
		frame_fault(v, NULL, "%s",
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
