#include "archive/keeping/erase.h"

#include <stdlib.h>
#include <unistd.h>

#include "archive/index/rebuild.h"
#include "archive/keeping/erase_finish.h"
#include "archive/keeping/holds.h"
#include "archive/keeping/keeping.h"
#include "archive/store/segment_reader.h"
#include "archive/store/shard.h"
#include "base/codec.h"
#include "keys/digest.h"

#define MAX_SHARDS 64 /* in one request */

/* One shard of a request. */
struct part {
	struct shard_entry entry;
	int lock;
	struct erasures erasures;
	size_t frame_count;
	struct segment_frame *frames; /* to be erased, with their deliveries */
	uint64_t *numbers;            /* theirs */
	size_t file_count;
	struct str *files;
};

/* --- what is to go --- */

static enum res
count_frames(struct segment_reader *reader, uint64_t *out)
{
	struct segment_frame f;
	struct segment_walk w = SEGMENT_WALK;
	enum res r;
	do
		r = segment_reader_next(reader, &w, &f);
	while (r == RES_OK);
	*out = w.next;
	if (w.later > 0) /* it may deliver what is to go */
		return RES_UNSUPPORTED;
	return r == RES_NOTFOUND ? RES_OK : r;
}

static bool
is_mail(const struct segment_frame *f)
{
	return f->header.type == FRAME_MESSAGE ||
	    f->header.type == FRAME_DELIVERY || f->header.type == FRAME_HELD;
}

/* The frame with the content that `f` delivers. */
static uint64_t
content_of(struct segment_reader *reader, const struct segment_frame *f)
{
	struct frame_body b;
	if ((f->header.flags & FRAME_BODY_IN_FRAME) &&
	    segment_reader_peek_body(reader, f, &b) == RES_OK)
		return b.frame;
	return f->header.number;
}

/* Mark the contents that the ids of this shard name. */
static enum res
mark_contents(struct part *p, const struct erase_request *rq,
    struct segment_reader *reader, uint8_t *chosen, uint64_t frames,
    uint64_t *out_before, struct err *err)
{
	for (size_t i = 0; i < rq->count; i++) {
		struct segment_frame f;
		uint64_t number = rq->ids[i] & UINT32_MAX;
		if (rq->ids[i] >> 32 != p->entry.header.number)
			continue;
		if (erasures_have(&p->erasures, number)) {
			++*out_before;
			continue;
		}
		enum res r = segment_reader_find(reader, number, &f);
		if (r == RES_OK && !is_mail(&f))
			r = RES_NOTFOUND;
		if (r == RES_NOTFOUND)
			err_set(err, "%u.%llu is no message",
			    (unsigned)p->entry.header.number,
			    (unsigned long long)number);
		if (r != RES_OK)
			return r;
		uint64_t content = content_of(reader, &f);
		chosen[content < frames ? content : number] = 1;
		chosen[number] = 1;
	}
	return RES_OK;
}

static enum res
add_frame(struct part *p, struct arena *a, struct segment_reader *reader,
    const struct segment_frame *f)
{
	struct frame_body b;
	if (p->frame_count == ERASE_MAX_FRAMES)
		return RES_LIMIT;
	p->numbers[p->frame_count] = f->header.number;
	p->frames[p->frame_count++] = *f;
	if (!(f->header.flags & FRAME_BODY_IN_FILE) ||
	    segment_reader_peek_body(reader, f, &b) != RES_OK)
		return RES_OK;
	char name[FRAME_BODY_NAME];
	frame_body_name(&b, name);
	p->files[p->file_count] = arena_dup(a, str_c(name));
	return p->files[p->file_count++].ptr != NULL ? RES_OK : RES_NOMEM;
}

/* The chosen contents with all their deliveries. */
static enum res
list_frames(struct part *p, struct arena *a, struct segment_reader *reader,
    const uint8_t *chosen, uint64_t frames)
{
	struct segment_frame f;
	struct segment_walk w = SEGMENT_WALK;
	p->frames = arena_array(a, ERASE_MAX_FRAMES, sizeof *p->frames);
	p->numbers = arena_array(a, ERASE_MAX_FRAMES, sizeof *p->numbers);
	p->files = arena_array(a, ERASE_MAX_FRAMES, sizeof *p->files);
	if (p->frames == NULL || p->numbers == NULL || p->files == NULL)
		return RES_NOMEM;
	enum res r;
	while ((r = segment_reader_next(reader, &w, &f)) == RES_OK) {
		if (!is_mail(&f) || w.next > frames ||
		    erasures_have(&p->erasures, f.header.number))
			continue;
		uint64_t content = content_of(reader, &f);
		if (!chosen[f.header.number] &&
		    (content >= frames || !chosen[content]))
			continue;
		r = add_frame(p, a, reader, &f);
		if (r != RES_OK)
			return r;
	}
	return r == RES_NOTFOUND ? RES_OK : r;
}

static enum res
collect(struct part *p, struct arena *a, const struct erase_request *rq,
    uint64_t *out_before, struct err *err)
{
	struct segment_reader *reader;
	uint64_t frames = 0;
	uint8_t *chosen = NULL;
	enum res r = segment_reader_open(p->entry.dir, NULL, err, &reader);
	if (r != RES_OK)
		return r;
	r = count_frames(reader, &frames);
	if (r == RES_OK) {
		chosen = calloc((size_t)frames + 1, 1);
		r = chosen != NULL ? RES_OK : RES_NOMEM;
	}
	if (r == RES_OK)
		r = mark_contents(
		    p, rq, reader, chosen, frames, out_before, err);
	if (r == RES_OK)
		r = list_frames(p, a, reader, chosen, frames);
	if (r == RES_LIMIT)
		err_set(err, "more than %d deliveries at a time",
		    ERASE_MAX_FRAMES);
	free(chosen);
	segment_reader_close(&reader);
	return r;
}

/* RES_DENIED with the name of a hold that has one of the frames. */
static enum res
check_holds(struct store *s, const struct part *p, const struct holds *holds,
    struct err *err)
{
	struct archive_reader *reader;
	struct held_frames held;
	if (holds->count == 0 || p->frame_count == 0)
		return RES_OK;
	enum res r = RES_OK;
	if (rebuild_is_needed(p->entry.dir))
		r = rebuild_index(p->entry.dir, NULL, err);
	if (r == RES_OK)
		r = archive_reader_open(store_path(s), err, &reader);
	if (r != RES_OK)
		return r;
	r = holds_evaluate(holds, reader, &p->entry, err, &held);
	for (size_t i = 0; r == RES_OK && i < p->frame_count; i++) {
		uint64_t number = p->frames[i].header.number;
		unsigned by = number < held.frames ? held.by[number] :
						     HELD_DOUBT;
		if (by == HELD_NOT)
			continue;
		err_set(err, "%u.%llu %s%.*s",
		    (unsigned)p->entry.header.number,
		    (unsigned long long)number, by == HELD_DOUBT ?
			"is damaged or not wholly indexed: while there are "
			"holds it counts as held" :
			"is under hold ",
		    STR_ARG(by == HELD_DOUBT ? STR_EMPTY :
					       holds->items[by - 1].name));
		r = RES_DENIED;
	}
	if (r == RES_OK || r == RES_DENIED)
		held_frames_done(&held);
	archive_reader_close(&reader);
	return r;
}

/* --- steps 1 and 2 --- */

static enum res
announce(struct store *s, struct part *p, struct arena *a, struct err *err)
{
	struct erasures *e = &p->erasures;
	size_t all = e->count + p->frame_count;
	struct erased_frame *frames = arena_array(a, all + 1, sizeof *frames);
	if (frames == NULL)
		return RES_NOMEM;
	if (e->count > 0)
		memcpy(frames, e->frames, e->count * sizeof *frames);
	for (size_t i = 0; i < p->frame_count; i++)
		frames[e->count + i].number = p->frames[i].header.number;
	e->frames = frames;
	e->count = all;
	e->files = p->files;
	e->file_count = p->file_count;
	e->pending = true;
	enum res r = digest_random(e->token, sizeof e->token);
	if (r == RES_OK)
		r = audit_end(
		    store_path(s), err, &e->audit_shard, &e->audit_frame);
	if (r == RES_OK)
		r = erasures_write(store_env(s)->io, p->entry.dir, e);
	if (r != RES_OK)
		err_set(err, "%s/" ERASURES_FILE ": %s", p->entry.dir,
		    res_text(r));
	return r;
}

static enum res
write_intent(struct store *s, const struct part *p,
    const struct erase_request *rq, struct arena *a, uint64_t *out_id)
{
	struct clock clock = store_clock(s);
	struct record more;
	uint64_t *ids = arena_array(a, p->frame_count + 1, sizeof *ids);
	if (ids == NULL)
		return RES_NOMEM;
	record_init(&more, AUDIT_MAX_RECORD);
	record_add(&more, EVENT_TOKEN,
	    str_of(p->erasures.token, sizeof p->erasures.token));
	for (size_t i = 0; i < p->frame_count; i++) {
		const struct frame_header *h = &p->frames[i].header;
		uint8_t leaf[8 + LEAF_HASH_BYTES];
		ids[i] = (uint64_t)p->entry.header.number << 32 | h->number;
		put_le64(leaf, h->number);
		memcpy(leaf + 8, h->leaf, LEAF_HASH_BYTES);
		record_add(&more, EVENT_LEAF, str_of(leaf, sizeof leaf));
	}
	const struct audit_event event = { .action = STR("erase"),
		.who = rq->who, .reason = rq->reason, .ids = ids,
		.id_count = p->frame_count, .more = &more };
	enum res r =
	    audit_write(s, &event, true, clock_now_us(&clock), out_id);
	record_done(&more);
	return r;
}

static enum res
erase_part(struct store *s, struct part *p, const struct erase_request *rq,
    struct arena *a, struct err *err)
{
	uint64_t intent = 0;
	if (p->frame_count == 0)
		return RES_OK;
	enum res r = announce(s, p, a, err);
	if (r == RES_OK) {
		r = write_intent(s, p, rq, a, &intent);
		if (r != RES_OK) {
			err_set(err, "the intent cannot be written down: %s",
			    res_text(r));
			(void)!erase_take_back(s, p->entry.dir, &p->erasures);
			return r;
		}
	}
	if (r != RES_OK)
		return r;
	const struct erase_first first = { p->numbers, p->frame_count };
	return erase_finish(s, p->entry.dir, &p->erasures, &first, intent,
	    rq->who, rq->stop, err);
}

/* --- the whole --- */

/* The shards that the ids name, each taken, with what is to go. */
static enum res
prepare(struct store *s, const struct erase_request *rq, struct arena *a,
    struct part *parts, size_t *count, uint64_t *out_before, struct err *err)
{
	struct holds holds;
	enum res r = holds_read(store_path(s), a, err, &holds);
	for (size_t i = 0; r == RES_OK && i < rq->count; i++) {
		uint32_t number = (uint32_t)(rq->ids[i] >> 32);
		bool known = false;
		for (size_t j = 0; j < *count; j++)
			known = known || parts[j].entry.header.number == number;
		if (known)
			continue;
		if (*count == MAX_SHARDS) {
			err_set(err, "messages of more than %d shards at a "
				     "time", MAX_SHARDS);
			return RES_LIMIT;
		}
		struct part *p = &parts[*count];
		*p = (struct part){ .lock = -1 };
		r = keeping_find(s, number, a, err, &p->entry);
		if (r == RES_OK &&
		    strcmp(p->entry.family, STORE_AUDIT_FAMILY) == 0) {
			err_set(err, "events are not erased");
			r = RES_DENIED;
		}
		if (r == RES_OK)
			r = keeping_take(s, &p->entry, err, &p->lock);
		if (r != RES_OK)
			return r;
		++*count;
		r = erasures_read(p->entry.dir, a, err, &p->erasures);
		if (r == RES_OK)
			r = erase_settle(s, p->entry.dir, &p->erasures, rq->stop,
			    err);
		if (r == RES_OK)
			r = collect(p, a, rq, out_before, err);
		if (r == RES_OK)
			r = check_holds(s, p, &holds, err);
	}
	return r;
}

enum res
archive_erase(struct store *s, const struct erase_request *rq,
    struct err *err, struct erase_outcome *out)
{
	struct part *parts = NULL;
	size_t count = 0;
	int keeping;
	if (rq->count == 0 || rq->reason.len == 0)
		return RES_INVALID;
	struct arena *a = arena_new((size_t)1 << 30);
	if (a != NULL)
		parts = arena_array(a, MAX_SHARDS, sizeof *parts);
	if (parts == NULL) {
		arena_free(&a);
		return RES_NOMEM;
	}
	*out = (struct erase_outcome){ .frames = 0 };
	enum res r = keeping_begin(s, err, &keeping);
	if (r == RES_OK) {
		r = prepare(s, rq, a, parts, &count, &out->before, err);
		for (size_t i = 0; r == RES_OK && i < count; i++) {
			r = erase_part(s, &parts[i], rq, a, err);
			out->frames += r == RES_OK ? parts[i].frame_count : 0;
		}
		for (size_t i = 0; i < count; i++)
			close(parts[i].lock);
		close(keeping);
	}
	arena_free(&a);
	return r;
}
