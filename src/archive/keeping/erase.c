#include "archive/keeping/erase.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "archive/index/forget.h"
#include "archive/index/rebuild.h"
#include "archive/keeping/erasures.h"
#include "archive/keeping/holds.h"
#include "archive/keeping/keeping.h"
#include "archive/store/segment_reader.h"
#include "archive/store/shard.h"
#include "base/codec.h"
#include "keys/digest.h"

#define MAX_SHARDS 64 /* in one request */
#define ZEROS      ((size_t)65536)
#define WAIT_NS    200000000L

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

/* --- steps 3 to 6, also after a crash --- */

static enum res
zero_frame(const struct archive_io *io, int fd, const struct segment_frame *f)
{
	static const char zeros[ZEROS];
	uint64_t at = f->offset + FRAME_HEADER_BYTES;
	uint64_t end = segment_frame_end(f);
	enum res r = RES_OK;
	while (r == RES_OK && at < end) {
		size_t n = end - at < ZEROS ? (size_t)(end - at) : ZEROS;
		r = io_write(io, fd, zeros, n, at);
		at += n;
	}
	return r;
}

/* Frames under way; a restart finds them by their numbers. */
static enum res
zero_frames(const struct archive_io *io, const char *dir,
    const struct erasures *e, struct err *err)
{
	char path[PATH_MAX];
	struct segment_reader *reader;
	enum res r = segment_reader_open(dir, io, err, &reader);
	if (r != RES_OK)
		return r;
	r = io_path(path, "%s/segment", dir);
	int fd = r == RES_OK ? io->open(io, path, O_RDWR, 0) : -1;
	if (r == RES_OK && fd < 0)
		r = io_error(errno);
	for (size_t i = 0; r == RES_OK && i < e->count; i++) {
		struct segment_frame f;
		if (e->frames[i].intent != 0)
			continue;
		r = segment_reader_find(reader, e->frames[i].number, &f);
		if (r == RES_OK)
			r = zero_frame(io, fd, &f);
	}
	if (r == RES_OK && io->fdatasync(io, fd) < 0)
		r = io_error(errno);
	if (fd >= 0)
		io->close(io, fd);
	segment_reader_close(&reader);
	if (r != RES_OK)
		err_set(err, "%s: not all blocks are zeros: %s", path,
		    res_text(r));
	return r;
}

static enum res
unlink_files(const struct archive_io *io, const char *dir,
    const struct erasures *e, struct err *err)
{
	char path[PATH_MAX];
	enum res r = RES_OK;
	for (size_t i = 0; r == RES_OK && i < e->file_count; i++) {
		r = io_path(path, "%s/bodies/%.*s", dir, STR_ARG(e->files[i]));
		if (r == RES_OK && io->unlink(io, path) < 0 && errno != ENOENT)
			r = io_error(errno);
	}
	if (r == RES_OK && e->file_count > 0) {
		r = io_path(path, "%s/bodies", dir);
		if (r == RES_OK && io->fsync_dir(io, path) < 0)
			r = io_error(errno);
	}
	if (r != RES_OK)
		err_set(err, "%s: cannot be removed: %s", path, res_text(r));
	return r;
}

static enum res
wipe(const struct archive_io *io, const char *dir, const struct erasures *e,
    struct err *err)
{
	enum res r = zero_frames(io, dir, e, err);
	return r == RES_OK ? unlink_files(io, dir, e, err) : r;
}

static enum res
write_done(struct store *s, uint64_t intent, struct audit_who who,
    struct err *err)
{
	struct clock clock = store_clock(s);
	struct record more;
	uint64_t id;
	record_init(&more, 64);
	record_add_u64(&more, EVENT_INTENT, intent);
	const struct audit_event event = { .action = STR("erased"), .who = who,
		.more = &more };
	enum res r =
	    audit_write(s, &event, false, clock_now_us(&clock), &id);
	record_done(&more);
	if (r != RES_OK)
		err_set(err, "the end of the erasure is not written down: %s",
		    res_text(r));
	return r;
}

/* Blocks and terms. `first`: nobody has begun with it, so that the texts can
 * still be read, by which the index gives up the terms. Else, or when that
 * cannot be relied on, it is made anew of what is left. */
static enum res
forget(const struct archive_io *io, const char *dir, const struct erasures *e,
    const struct part *first, const atomic_bool *stop, struct err *err)
{
	struct err ignored = { "" };
	enum res prepared = RES_UNSUPPORTED;
	if (first != NULL)
		prepared = forget_prepare(
		    dir, first->numbers, first->frame_count, stop, &ignored);
	enum res r = wipe(io, dir, e, err);
	if (r != RES_OK)
		return r;
	return prepared == RES_OK ? forget_publish(dir, err) :
				    rebuild_index(dir, stop, err);
}

/* All that is left to do once the intent is durable; `first` as above. */
static enum res
finish(struct store *s, const char *dir, struct erasures *e,
    const struct part *first, uint64_t intent, struct audit_who who,
    const atomic_bool *stop, struct err *err)
{
	const struct archive_io *io = store_env(s)->io;
	enum res r = forget(io, dir, e, first, stop, err);
	if (r == RES_OK)
		r = write_done(s, intent, who, err);
	if (r != RES_OK)
		return r;
	for (size_t i = 0; i < e->count; i++)
		if (e->frames[i].intent == 0)
			e->frames[i].intent = intent;
	e->pending = false;
	r = erasures_write(io, dir, e);
	if (r != RES_OK)
		err_set(err, "%s/" ERASURES_FILE ": %s", dir, res_text(r));
	return r;
}

/* --- finding an intent again --- */

struct looking {
	const uint8_t *token;
	uint64_t id;
	struct audit_who who;
};

static bool
is_intent(void *context, const struct audit_entry *e)
{
	struct looking *l = context;
	struct str token = record_find(e->meta, EVENT_TOKEN);
	if (token.len != ERASURES_TOKEN ||
	    memcmp(token.ptr, l->token, ERASURES_TOKEN) != 0)
		return true;
	l->id = e->id;
	l->who.uid = e->event.who.uid;
	return false;
}

/* RES_NOTFOUND: there is none, nothing was erased yet. RES_CORRUPT: it may
 * be among what cannot be read. */
static enum res
find_intent(struct store *s, const struct erasures *e, struct looking *out,
    struct err *err)
{
	uint64_t unreadable = 0;
	*out = (struct looking){ .token = e->token };
	enum res r = audit_walk(store_path(s), e->audit_shard, e->audit_frame,
	    true, is_intent, out, &unreadable, err);
	if (r != RES_OK || out->id != 0)
		return r;
	if (unreadable == 0)
		return RES_NOTFOUND;
	err_set(err, "the audit family is damaged where the intent of an "
		     "erasure should stand");
	return RES_CORRUPT;
}

/* The erasure never began. */
static enum res
take_back(struct store *s, const char *dir, struct erasures *e)
{
	size_t kept = 0;
	forget_drop(dir);
	for (size_t i = 0; i < e->count; i++)
		if (e->frames[i].intent != 0)
			e->frames[kept++] = e->frames[i];
	e->count = kept;
	e->pending = false;
	return erasures_write(store_env(s)->io, dir, e);
}

/* An intent that can be read need not be durable: a write that failed may have
 * left it behind the end of its shard, where it is cut off once the family
 * goes on. After an event has become durable nothing of that kind is left. */
static enum res
write_resume(struct store *s, struct err *err)
{
	struct clock clock = store_clock(s);
	uint64_t id;
	const struct audit_event event = { .action = STR("resume"),
		.who = { (uint32_t)geteuid(), STR_EMPTY } };
	enum res r =
	    audit_write(s, &event, false, clock_now_us(&clock), &id);
	if (r != RES_OK)
		err_set(err, "the audit family takes no events: %s",
		    res_text(r));
	return r;
}

/* What a crash left under way in a shard whose lock we have. */
static enum res
settle(struct store *s, const char *dir, struct erasures *e,
    const atomic_bool *stop, struct err *err)
{
	struct looking l;
	if (!e->pending)
		return RES_OK;
	enum res r = write_resume(s, err);
	if (r == RES_OK)
		r = find_intent(s, e, &l, err);
	if (r == RES_NOTFOUND)
		return take_back(s, dir, e);
	if (r == RES_OK)
		r = finish(s, dir, e, NULL, l.id, l.who, stop, err);
	return r;
}

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
			(void)!take_back(s, p->entry.dir, &p->erasures);
			return r;
		}
	}
	if (r == RES_OK)
		r = finish(s, p->entry.dir, &p->erasures, p, intent, rq->who,
		    rq->stop, err);
	return r;
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
			r = settle(s, p->entry.dir, &p->erasures, rq->stop,
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

/* --- after a crash --- */

/* Call `step` for each shard with an erasure under way. */
static void
for_pending(struct store *s,
    enum res (*step)(struct store *s, const struct shard_entry *e,
	struct erasures *erasures, void *context, struct err *err),
    void *context)
{
	struct shard_entry *list = NULL;
	size_t count = 0;
	struct err err = { "" };
	struct arena *a = arena_new(0);
	enum res r = a != NULL ? RES_OK : RES_NOMEM;
	if (r == RES_OK)
		r = store_dir_shards(
		    store_path(s), NULL, a, &err, &list, &count);
	for (size_t i = 0; r == RES_OK && i < count; i++) {
		struct erasures e;
		struct err why = { "" };
		struct arena *one = arena_new(ERASURES_ARENA);
		enum res done = one != NULL ? RES_OK : RES_NOMEM;
		if (done == RES_OK)
			done = erasures_read(list[i].dir, one, &why, &e);
		if (done == RES_OK && e.pending)
			done = step(s, &list[i], &e, context, &why);
		if (done != RES_OK && done != RES_AGAIN)
			shard_alarm(store_env(s),
			    "%s: an erasure is not done: %s", list[i].dir,
			    why.text[0] != '\0' ? why.text : res_text(done));
		arena_free(&one);
	}
	arena_free(&a);
	if (r != RES_OK)
		shard_alarm(store_env(s), "erasures are not looked for: %s",
		    err.text[0] != '\0' ? err.text : res_text(r));
}

static enum res
count_step(struct store *s, const struct shard_entry *e, struct erasures *er,
    void *context, struct err *err)
{
	(void)s;
	(void)e;
	(void)er;
	(void)err;
	++*(size_t *)context;
	return RES_OK;
}

size_t
erase_pending(struct store *s)
{
	size_t count = 0;
	for_pending(s, count_step, &count);
	return count;
}

static enum res
finish_step(struct store *s, const struct shard_entry *e, struct erasures *er,
    void *context, struct err *err)
{
	int lock;
	enum res r = keeping_take(s, e, err, &lock);
	if (r != RES_OK)
		return r;
	r = settle(s, e->dir, er, context, err);
	close(lock);
	return r;
}

void
erase_finish_pending(struct store *s, const atomic_bool *stop)
{
	const struct timespec pause = { 0, WAIT_NS };
	struct err err = { "" };
	int keeping;
	while (keeping_begin(s, &err, &keeping) != RES_OK) {
		if (*stop)
			return;
		nanosleep(&pause, NULL);
	}
	for_pending(s, finish_step, (void *)(uintptr_t)stop);
	close(keeping);
}
