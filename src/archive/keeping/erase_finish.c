#include "archive/keeping/erase_finish.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "archive/index/forget.h"
#include "archive/index/rebuild.h"
#include "archive/keeping/keeping.h"
#include "archive/store/segment_reader.h"
#include "archive/store/shard.h"

#define ZEROS   ((size_t)65536)
#define WAIT_NS 200000000L

/* --- blocks, files, terms --- */

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

/* Without `first`, or when the texts cannot be relied on, the index is made
 * anew of what is left. */
static enum res
forget(const struct archive_io *io, const char *dir, const struct erasures *e,
    const struct erase_first *first, const atomic_bool *stop, struct err *err)
{
	struct err ignored = { "" };
	enum res prepared = RES_UNSUPPORTED;
	if (first != NULL)
		prepared = forget_prepare(
		    dir, first->numbers, first->count, stop, &ignored);
	enum res r = wipe(io, dir, e, err);
	if (r != RES_OK)
		return r;
	return prepared == RES_OK ? forget_publish(dir, err) :
				    rebuild_index(dir, stop, err);
}

enum res
erase_finish(struct store *s, const char *dir, struct erasures *e,
    const struct erase_first *first, uint64_t intent, struct audit_who who,
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

enum res
erase_take_back(struct store *s, const char *dir, struct erasures *e)
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

enum res
erase_settle(struct store *s, const char *dir, struct erasures *e,
    const atomic_bool *stop, struct err *err)
{
	struct looking l;
	if (!e->pending)
		return RES_OK;
	enum res r = write_resume(s, err);
	if (r == RES_OK)
		r = find_intent(s, e, &l, err);
	if (r == RES_NOTFOUND)
		return erase_take_back(s, dir, e);
	if (r == RES_OK)
		r = erase_finish(s, dir, e, NULL, l.id, l.who, stop, err);
	return r;
}

/* --- all shards, after a crash --- */

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
	r = erase_settle(s, e->dir, er, context, err);
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
