#include "archive/applier.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "archive/index.h"
#include "base/clock.h"

/* After an error of the index. */
#define RETRY_US 10000000
/* Bytes of one message's META and texts on the way to the index. */
#define FRAME_ARENA ((size_t)32 << 20)

struct applier {
	char *dir;
	void (*alarm)(void *context, const char *line);
	void *alarm_context;
	pthread_t thread;
	bool started;
	pthread_mutex_t lock;
	pthread_cond_t wake;
	/* under the lock */
	uint64_t durable_bytes;
	bool stop, seal;
	int64_t stop_by_us;
	/* any thread */
	atomic_uint_fast64_t durable_frames, applied_frames;
	/* the thread's own */
	struct segment_reader *reader;
	struct index_writer *index;
	struct entry_builder *builder;
	bool alarmed;
};

static void
alarm_line(struct applier *a, const char *what, const char *why)
{
	char line[ERR_MAX_TEXT + 512];
	if (a->alarm == NULL)
		return;
	snprintf(line, sizeof line, "%s: %s%s%s", a->dir, what,
	    why[0] != '\0' ? ": " : "", why);
	a->alarm(a->alarm_context, line);
}

/* Trouble is told once, until it is over. */
static void
alarm_once(struct applier *a, const char *what, const char *why)
{
	if (!a->alarmed)
		alarm_line(a, what, why);
	a->alarmed = true;
}

/* --- the thread's work --- */

static enum res
open_index(struct applier *a, uint64_t durable, struct err *err)
{
	const struct shard_header *shard = segment_reader_shard(a->reader);
	enum res r = index_open(a->dir, shard, err, &a->index);
	if (r == RES_OK && index_position(a->index)->offset > durable) {
		alarm_line(a, "the index is ahead of the segment: acknowledged "
		    "data is missing", "");
		index_close(&a->index, true);
		r = RES_UNSUPPORTED;
	}
	if (r == RES_UNSUPPORTED || r == RES_CORRUPT) {
		alarm_line(a, "the index is built anew", err->text);
		err_clear(err);
		r = index_renew(a->dir, shard, err, &a->index);
	}
	if (r == RES_OK)
		atomic_store(
		    &a->applied_frames, index_position(a->index)->frames);
	return r;
}

static enum res
prepare(struct applier *a, uint64_t durable, struct err *err)
{
	enum res r = RES_OK;
	if (a->builder == NULL && (a->builder = entry_builder_new()) == NULL)
		return RES_NOMEM;
	if (a->reader == NULL)
		r = segment_reader_open(a->dir, NULL, err, &a->reader);
	if (r == RES_OK && a->index == NULL)
		r = open_index(a, durable, err);
	return r;
}

static enum res
apply_frame(struct applier *a, const struct segment_frame *f, struct err *err)
{
	struct arena *arena = arena_new(FRAME_ARENA);
	struct entry e;
	struct err why = { "" };
	if (arena == NULL)
		return RES_NOMEM;
	enum res r = entry_build(a->builder, arena, a->reader, f, &why, &e);
	if (r == RES_OK)
		r = index_add(a->index, &e, err);
	else if (r == RES_NOTFOUND)
		r = RES_OK;
	else if (r == RES_CORRUPT || r == RES_LIMIT) {
		alarm_line(a, "a frame is not indexed", why.text);
		r = RES_OK;
	} else {
		err_set(err, "%s", why.text);
	}
	arena_free(&arena);
	return r;
}

/* The frame at the position, or the next whole one behind damage. RES_NOTFOUND: none
 * before `durable`. */
static enum res
next_frame(struct applier *a, const struct index_position *at,
    uint64_t durable, struct segment_frame *out)
{
	enum res r = segment_reader_at(a->reader, at->offset, out);
	if (r == RES_CORRUPT || r == RES_NOTFOUND) {
		enum res again = segment_reader_resync(
		    a->reader, at->offset, at->frames, out);
		if (again != RES_OK)
			return again;
		if (segment_frame_end(out) <= durable)
			alarm_line(a, "damaged frames are not indexed", "");
		r = RES_OK;
	}
	if (r == RES_OK && segment_frame_end(out) > durable)
		return RES_NOTFOUND;
	return r;
}

/* One transaction. *out_more: there is more to do. */
static enum res
apply_batch(struct applier *a, uint64_t durable, bool *out_more,
    struct err *err)
{
	struct index_position at = *index_position(a->index);
	if (at.offset >= durable) {
		*out_more = false;
		return RES_OK;
	}
	enum res r = index_begin(a->index, err);
	size_t count = 0;
	*out_more = true;
	while (r == RES_OK && count < APPLIER_BATCH && *out_more) {
		struct segment_frame f;
		r = next_frame(a, &at, durable, &f);
		if (r == RES_NOTFOUND) {
			/* nothing whole up to there: damage at the end */
			at.offset = durable;
			*out_more = false;
			r = RES_OK;
			break;
		}
		if (r == RES_OK)
			r = apply_frame(a, &f, err);
		if (r != RES_OK)
			break;
		at.offset = segment_frame_end(&f);
		at.frames = f.header.number + 1;
		*out_more = at.offset < durable;
		count++;
	}
	if (r == RES_OK)
		r = index_commit(a->index, at.offset, at.frames, err);
	if (r != RES_OK)
		index_rollback(a->index);
	else
		atomic_store(&a->applied_frames, at.frames);
	return r;
}

static enum res
work(struct applier *a, uint64_t durable, bool *out_more)
{
	struct err err = { "" };
	enum res r = prepare(a, durable, &err);
	if (r == RES_OK)
		r = apply_batch(a, durable, out_more, &err);
	if (r == RES_OK) {
		a->alarmed = false;
		return r;
	}
	alarm_once(a, "the index does not follow",
	    err.text[0] != '\0' ? err.text : res_text(r));
	/* open anew: a damaged one is then replaced */
	index_close(&a->index, false);
	segment_reader_close(&a->reader);
	return r;
}

static void
wait_until(struct applier *a, int64_t us)
{
	struct timespec ts;
	(void)clock_gettime(CLOCK_MONOTONIC, &ts);
	int64_t at = (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000 + us;
	ts.tv_sec = at / 1000000;
	ts.tv_nsec = at % 1000000 * 1000;
	(void)pthread_cond_timedwait(&a->wake, &a->lock, &ts);
}

static void *
applier_main(void *context)
{
	struct applier *a = context;
	uint64_t done = 0;
	bool more = true;
	(void)pthread_mutex_lock(&a->lock);
	for (;;) {
		while (!more && !a->stop && a->durable_bytes <= done)
			(void)pthread_cond_wait(&a->wake, &a->lock);
		bool behind = more || a->durable_bytes > done;
		bool late = !a->seal && a->stop &&
		    clock_mono_us() > a->stop_by_us;
		if (a->stop && (!behind || late))
			break;
		uint64_t durable = a->durable_bytes;
		(void)pthread_mutex_unlock(&a->lock);
		enum res r = work(a, durable, &more);
		(void)pthread_mutex_lock(&a->lock);
		if (r == RES_OK) {
			done = more ? done : durable;
			continue;
		}
		more = true;
		if (a->stop)
			break;
		wait_until(a, RETRY_US);
	}
	(void)pthread_mutex_unlock(&a->lock);
	struct err err = { "" };
	if (a->index != NULL && a->seal &&
	    index_optimize(a->index, &err) != RES_OK)
		alarm_line(a, "the postings are not merged", err.text);
	index_close(&a->index, true);
	segment_reader_close(&a->reader);
	entry_builder_free(&a->builder);
	return NULL;
}

/* --- from outside --- */

enum res
applier_start(
    const struct applier_options *o, struct err *err, struct applier **out)
{
	struct applier *a = calloc(1, sizeof *a);
	if (a == NULL)
		return RES_NOMEM;
	a->dir = strdup(o->dir);
	a->alarm = o->alarm;
	a->alarm_context = o->alarm_context;
	a->durable_bytes = o->durable_bytes;
	atomic_init(&a->durable_frames, o->durable_frames);
	struct index_position p;
	uint64_t applied = 0;
	if (index_peek(o->dir, &p) == RES_OK)
		applied = p.frames;
	atomic_init(&a->applied_frames, applied);
	pthread_condattr_t attr;
	(void)pthread_condattr_init(&attr);
	(void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	(void)pthread_mutex_init(&a->lock, NULL);
	(void)pthread_cond_init(&a->wake, &attr);
	(void)pthread_condattr_destroy(&attr);
	if (a->dir == NULL ||
	    pthread_create(&a->thread, NULL, applier_main, a) != 0) {
		err_set(err, "%s: no thread for the index", o->dir);
		applier_stop(&a);
		return RES_NOMEM;
	}
	a->started = true;
	*out = a;
	return RES_OK;
}

void
applier_wake(
    struct applier *a, uint64_t durable_bytes, uint64_t durable_frames)
{
	atomic_store(&a->durable_frames, durable_frames);
	(void)pthread_mutex_lock(&a->lock);
	a->durable_bytes = durable_bytes;
	(void)pthread_cond_signal(&a->wake);
	(void)pthread_mutex_unlock(&a->lock);
}

uint64_t
applier_unapplied(const struct applier *a)
{
	uint64_t applied = atomic_load(&a->applied_frames);
	uint64_t durable = atomic_load(&a->durable_frames);
	return durable > applied ? durable - applied : 0;
}

static void
finish(struct applier **out, bool seal)
{
	struct applier *a = *out;
	if (a == NULL)
		return;
	if (a->started) {
		(void)pthread_mutex_lock(&a->lock);
		a->stop = true;
		a->seal = seal;
		a->stop_by_us = clock_mono_us() + APPLIER_STOP_US;
		(void)pthread_cond_signal(&a->wake);
		(void)pthread_mutex_unlock(&a->lock);
		(void)pthread_join(a->thread, NULL);
	}
	(void)pthread_cond_destroy(&a->wake);
	(void)pthread_mutex_destroy(&a->lock);
	free(a->dir);
	free(a);
	*out = NULL;
}

void
applier_stop(struct applier **a)
{
	finish(a, false);
}

void
applier_seal(struct applier **a)
{
	finish(a, true);
}
