#include "archive/index/applier.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "archive/index/ahead.h"
#include "archive/index/index.h"
#include "base/clock.h"

/* After an error of the index. */
#define RETRY_US 10000000

struct applier {
	char *dir;
	void (*alarm)(void *context, const char *line);
	void *alarm_context;
	pthread_t thread;
	bool started, rebuild;
	pthread_mutex_t lock;
	pthread_cond_t wake;
	/* under the lock */
	uint64_t durable_bytes;
	int64_t woken_us; /* when that last grew */
	bool idle;        /* nothing to do: wants to be woken by the next */
	bool stop, seal;
	int64_t stop_by_us;
	enum res trouble; /* of the last try */
	struct err why;
	/* any thread */
	atomic_uint_fast64_t durable_frames, applied_frames;
	/* the thread's own */
	struct ahead *ahead;
	struct index_writer *index;
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
	const struct shard_header *shard = ahead_shard(a->ahead);
	enum res r = a->rebuild ?
	    index_open_building(a->dir, shard, err, &a->index) :
	    index_open(a->dir, shard, err, &a->index);
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
	if (a->ahead == NULL)
		r = ahead_start(a->dir, err, &a->ahead);
	if (r == RES_OK && a->index == NULL)
		r = open_index(a, durable, err);
	return r;
}

static enum res
add_entry(struct applier *a, const struct ahead_item *item, struct err *err)
{
	enum res r = index_add(a->index, &item->entry, err);
	if (r == RES_OK && item->entry.damaged)
		r = index_note_damage(
		    a->index, item->offset, item->next_offset, err);
	return r;
}

static enum res
apply_item(struct applier *a, const struct ahead_item *item, struct err *err)
{
	switch (item->res) {
	case RES_OK:
		return add_entry(a, item, err);
	case RES_NOTFOUND:
		return RES_OK;
	case RES_CORRUPT:
	case RES_LIMIT:
		alarm_line(a, "a frame is not indexed", item->why.text);
		return index_note_damage(
		    a->index, item->offset, item->next_offset, err);
	case RES_NOMEM:
	case RES_SYNTAX:
	case RES_IO:
	case RES_AGAIN:
	case RES_EXISTS:
	case RES_DENIED:
	case RES_UNSUPPORTED:
	case RES_INVALID:
	case RES_TIMEOUT:
		break;
	}
	err_set(err, "%s", item->why.text);
	return item->res;
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
	int64_t until_us = clock_mono_us() + APPLIER_BATCH_US;
	*out_more = true;
	ahead_begin(a->ahead, at.offset, at.frames, durable);
	for (size_t n = 0; r == RES_OK && *out_more && n < APPLIER_BATCH &&
	    (n == 0 || clock_mono_us() < until_us); n++) {
		const struct ahead_item *item = ahead_take(a->ahead);
		if (item->skipped) {
			alarm_line(a, "damaged frames are not indexed", "");
			r = index_note_damage(
			    a->index, at.offset, item->offset, err);
		}
		if (r == RES_OK && !item->end)
			r = apply_item(a, item, err);
		else if (r == RES_OK && at.offset < durable)
			r = index_note_damage(
			    a->index, at.offset, durable, err);
		at.offset = item->next_offset;
		at.frames = item->next_frames;
		*out_more = at.offset < durable;
		ahead_give(a->ahead);
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
	if (r != RES_OK)
		err_set(&err, "%s", res_text(r));
	(void)pthread_mutex_lock(&a->lock);
	a->trouble = r;
	a->why = err;
	(void)pthread_mutex_unlock(&a->lock);
	if (r == RES_OK) {
		a->alarmed = false;
		return r;
	}
	alarm_once(a, "the index does not follow", err.text);
	/* open anew: a damaged one is then replaced */
	index_close(&a->index, false);
	ahead_stop(&a->ahead);
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

/* Under the lock: until there is a pause in what comes, or enough. The wakes
 * of applier_wake do not reach us here: looking from time to time costs less
 * than being woken for each group. */
static void
gather(struct applier *a, uint64_t done)
{
	int64_t since = clock_mono_us();
	while (!a->stop && !a->rebuild) {
		int64_t now = clock_mono_us();
		int64_t quiet = a->woken_us + APPLIER_QUIET_US;
		if (now >= quiet || now >= since + APPLIER_LATE_US ||
		    applier_unapplied(a) >= APPLIER_LATE_FRAMES ||
		    a->durable_bytes - done >= APPLIER_LATE_BYTES)
			break;
		wait_until(a, quiet - now);
	}
}

/* What is left to do for the index when nothing more comes. */
static void
end_index(struct applier *a)
{
	struct err err = { "" };
	if (a->index != NULL && a->seal &&
	    index_optimize(a->index, &err) != RES_OK)
		alarm_line(a, "the postings are not merged", err.text);
	bool complete = a->index != NULL && a->seal &&
	    index_position(a->index)->offset >= a->durable_bytes;
	if (a->rebuild && complete &&
	    index_publish(a->dir, &a->index, &err) != RES_OK)
		alarm_line(a, "the new index cannot be put in its place",
		    err.text);
	index_close(&a->index, !a->rebuild);
}

static void *
applier_main(void *context)
{
	struct applier *a = context;
	uint64_t done = 0;
	bool more = true;
	(void)pthread_mutex_lock(&a->lock);
	for (;;) {
		bool waited = !more;
		a->idle = true;
		while (!more && !a->stop && a->durable_bytes <= done)
			(void)pthread_cond_wait(&a->wake, &a->lock);
		a->idle = false;
		if (waited)
			gather(a, done);
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
	end_index(a);
	ahead_stop(&a->ahead);
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
	a->rebuild = o->rebuild;
	a->alarm = o->alarm;
	a->alarm_context = o->alarm_context;
	a->durable_bytes = o->durable_bytes;
	atomic_init(&a->durable_frames, o->durable_frames);
	struct index_position p;
	uint64_t applied = 0;
	if (!o->rebuild && index_peek(o->dir, &p) == RES_OK)
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
	a->woken_us = clock_mono_us();
	if (a->idle)
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

enum res
applier_trouble(struct applier *a, struct err *err)
{
	(void)pthread_mutex_lock(&a->lock);
	enum res r = a->trouble;
	if (r != RES_OK)
		err_set(err, "%s: the index does not follow: %s", a->dir,
		    a->why.text);
	(void)pthread_mutex_unlock(&a->lock);
	return r;
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
