#include "archive/store/recover.h"

#include <string.h>

#define SCAN_MEMORY ((size_t)20 << 20)

struct scan {
	struct segment_reader *reader;
	uint64_t checked;
	const struct erasures *erased;
	const struct recover_seen *seen;
	struct recovery *out;
};

static enum res
tell(const struct scan *s, const struct segment_frame *f,
    const struct frame_body *b)
{
	return s->seen->message(s->seen->context, b->sha256, f->offset);
}

/* Notes are read whatever has been checked: there are few of them. */
static bool
is_note(const struct scan *s, const struct segment_frame *f)
{
	return (f->header.type == FRAME_NOTE || f->header.type == FRAME_KEY) &&
	    s->seen != NULL && s->seen->note != NULL;
}

static void
note_dictionary(struct scan *s, const struct segment_frame *f)
{
	struct recovery *o = s->out;
	struct frame_body b;
	if (!segment_is_dictionary(f) ||
	    o->dictionary_count == SEGMENT_MAX_DICTIONARIES ||
	    segment_reader_peek_body(s->reader, f, &b) != RES_OK)
		return;
	struct recover_dictionary *d = &o->dictionaries[o->dictionary_count++];
	*d = (struct recover_dictionary){ .number = f->header.number,
		.offset = f->offset };
	memcpy(d->sha256, b.sha256, sizeof d->sha256);
}

/* Is the frame whole? */
static enum res
look_inside(struct scan *s, const struct segment_frame *f)
{
	if (s->erased != NULL && erasures_have(s->erased, f->header.number))
		return RES_OK; /* or about to be */
	if (f->offset < s->checked && !is_note(s, f)) {
		struct frame_body b;
		if (s->seen != NULL && f->header.type == FRAME_MESSAGE &&
		    segment_reader_peek_body(s->reader, f, &b) == RES_OK)
			return tell(s, f, &b);
		return RES_OK;
	}
	struct segment_content c;
	struct arena *a = arena_new(SCAN_MEMORY);
	if (a == NULL)
		return RES_NOMEM;
	enum res r = segment_reader_load(s->reader, a, f, NULL, &c);
	/* Unwritten pages read as zeros, so zeros prove no erasure; without
	 * an intent they are damage anyway. */
	for (int b = 0; b < FRAME_BLOCKS && r == RES_OK; b++)
		if (c.state[b] == BLOCK_ERASED)
			r = RES_CORRUPT;
	if (r == RES_OK && (f->header.flags & FRAME_BODY_IN_FILE) &&
	    !segment_body_file_ok(segment_reader_dir(s->reader), &c.body))
		r = RES_CORRUPT;
	if (r == RES_OK && s->seen != NULL &&
	    f->header.type == FRAME_MESSAGE &&
	    c.state[BLOCK_BODY] == BLOCK_WHOLE)
		r = tell(s, f, &c.body);
	if (r == RES_OK && is_note(s, f))
		s->seen->note(s->seen->note_context, f, c.meta);
	arena_free(&a);
	return r;
}

static enum res
accept_frame(struct scan *s, const struct segment_frame *f)
{
	struct recovery *o = s->out;
	enum res r = merkle_add(&o->tree, f->header.leaf);
	if (r != RES_OK)
		return r;
	if (s->seen != NULL && !o->holes &&
	    o->tree.count == s->seen->signed_size) {
		r = merkle_root(&o->tree, o->signed_root);
		o->signed_reached = r == RES_OK;
		if (r != RES_OK)
			return r;
	}
	if (f->header.durable_upto > o->floor)
		o->floor = f->header.durable_upto;
	o->sealed = f->header.type == FRAME_SEAL;
	o->frames = f->header.number + 1;
	o->end = segment_frame_end(f);
	return RES_OK;
}

/* Had something durable begun at `at`? */
static bool
is_missing(const struct scan *s, uint64_t at)
{
	return at < s->out->floor ||
	    (s->seen != NULL && s->out->frames < s->seen->signed_size);
}

/* Something is wrong at `at`. The first valid frame behind it goes to
 * out_next (RES_NOTFOUND: none); *out_damage: bytes at `at` had been durable,
 * because a frame behind says so or because they lie below the floor. */
static enum res
judge(struct scan *s, uint64_t at, struct segment_frame *out_next,
    bool *out_damage)
{
	struct segment_frame f;
	bool found = false, damage = is_missing(s, at);
	enum res r = segment_reader_resync(
	    s->reader, at + 8, s->out->frames, &f);
	while (r == RES_OK) {
		if (!found)
			*out_next = f;
		found = true;
		damage = damage || f.header.durable_upto > at;
		if (damage)
			break;
		r = segment_reader_resync(
		    s->reader, f.offset + 8, s->out->frames, &f);
	}
	if (r != RES_OK && r != RES_NOTFOUND)
		return r;
	*out_damage = damage;
	return found ? RES_OK : RES_NOTFOUND;
}

static void
note_damage(struct recovery *o, uint64_t from, uint64_t to)
{
	if (o->damage_count < RECOVER_MAX_DAMAGE)
		o->damage[o->damage_count] = (struct recover_range){ from, to };
	o->damage_count++;
}

/* Frame `f` has a good header but a bad block, and was durable: its leaf
 * still counts. */
static enum res
accept_damaged(struct scan *s, const struct segment_frame *f)
{
	note_damage(s->out, f->offset, segment_frame_end(f));
	return accept_frame(s, f);
}

/* Walk around damage at `at`; *out_at is where to go on. */
static enum res
walk_around(struct scan *s, uint64_t at, const struct segment_frame *bad,
    const struct segment_frame *next, bool found, uint64_t *out_at)
{
	struct recovery *o = s->out;
	if (bad != NULL) {
		*out_at = segment_frame_end(bad);
		return accept_damaged(s, bad);
	}
	uint64_t to = found ? next->offset : o->file_bytes;
	note_damage(o, at, to);
	o->holes = true;
	if (found)
		o->frames = next->header.number;
	else
		o->end = at;
	*out_at = to;
	return RES_OK;
}

static enum res
scan_all(struct scan *s)
{
	struct recovery *o = s->out;
	uint64_t at = SHARD_HEADER_BYTES;
	while (at < o->file_bytes) {
		struct segment_frame f, next;
		bool good_header = false, damage;
		enum res r = segment_reader_at(s->reader, at, &f);
		if (r == RES_NOTFOUND && !is_missing(s, at))
			return RES_OK; /* zeros to the end */
		if (r == RES_OK && f.header.number == o->frames) {
			good_header = true;
			r = look_inside(s, &f);
			if (r == RES_OK) {
				note_dictionary(s, &f);
				r = accept_frame(s, &f);
			}
			if (r == RES_OK) {
				at = o->end;
				continue;
			}
		} else if (r == RES_OK) {
			r = RES_CORRUPT; /* out of order */
		}
		if (r != RES_CORRUPT && r != RES_NOTFOUND)
			return r;
		r = judge(s, at, &next, &damage);
		if (r != RES_OK && r != RES_NOTFOUND)
			return r;
		if (!damage) {
			o->torn = true;
			return RES_OK;
		}
		r = walk_around(s, at, good_header ? &f : NULL, &next,
		    r == RES_OK, &at);
		if (r != RES_OK)
			return r;
	}
	if (is_missing(s, at)) { /* the file itself is too short */
		note_damage(o, at, o->floor > at ? o->floor : at);
		o->holes = true;
	}
	return RES_OK;
}

enum res
recover_scan(struct segment_reader *r, uint64_t floor, uint64_t checked,
    const struct erasures *erased, const struct recover_seen *seen,
    struct recovery *out)
{
	struct scan s = { r, checked, erased, seen, out };
	*out = (struct recovery){ .end = SHARD_HEADER_BYTES, .floor = floor };
	merkle_init(&out->tree);
	enum res res = segment_reader_size(r, &out->file_bytes);
	return res == RES_OK ? scan_all(&s) : res;
}
