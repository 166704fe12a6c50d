#include "archive/index/ahead.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct slot {
	struct ahead_item item;
	struct entry_builder *builder;
	struct arena *arena;
	size_t bytes; /* of META and texts */
};

struct ahead {
	struct segment_reader *reader; /* the thread's; its header is fixed */
	struct slot slots[AHEAD_SLOTS];
	pthread_t thread;
	bool started;
	pthread_mutex_t lock;
	pthread_cond_t more, room;
	/* under the lock */
	size_t first, filled; /* slots that wait to be taken or given back */
	size_t bytes;         /* of these */
	uint64_t offset, frames, durable; /* where the thread goes on */
	uint64_t wanted_offset; /* behind the last one given back */
	unsigned run;           /* counts new beginnings */
	bool idle;              /* the end was told, or an error */
	bool stop;
};

const struct shard_header *
ahead_shard(const struct ahead *a)
{
	return segment_reader_shard(a->reader);
}

/* --- the thread --- */

/* The frame at the position, or the next whole one behind damage.
 * RES_NOTFOUND: none before `durable`. */
static enum res
next_frame(struct segment_reader *r, struct ahead_item *item, uint64_t offset,
    uint64_t frames, uint64_t durable, struct segment_frame *out)
{
	enum res res = segment_reader_at(r, offset, out);
	/* a frame of a later version is as good as damaged to us */
	if (res == RES_CORRUPT || res == RES_NOTFOUND ||
	    res == RES_UNSUPPORTED) {
		res = segment_reader_resync(r, offset, frames, out);
		if (res != RES_OK)
			return res;
		item->skipped = segment_frame_end(out) <= durable;
	}
	if (res == RES_OK && segment_frame_end(out) > durable)
		return RES_NOTFOUND;
	return res;
}

static void
fill(struct ahead *a, struct slot *s, uint64_t offset, uint64_t frames,
    uint64_t durable)
{
	struct segment_frame f;
	struct ahead_item *item = &s->item;
	*item = (struct ahead_item){ .next_offset = durable,
		.next_frames = frames };
	arena_free(&s->arena);
	s->bytes = 0;
	if (offset >= durable) {
		item->end = true;
		return;
	}
	enum res r = next_frame(a->reader, item, offset, frames, durable, &f);
	if (r != RES_OK) {
		item->end = r == RES_NOTFOUND; /* damage up to the end */
		item->res = r == RES_NOTFOUND ? RES_OK : r;
		return;
	}
	item->offset = f.offset;
	item->next_offset = segment_frame_end(&f);
	item->next_frames = f.header.number + 1;
	if (s->builder == NULL)
		s->builder = entry_builder_new();
	s->arena = arena_new(AHEAD_ARENA);
	item->res = s->builder == NULL || s->arena == NULL ? RES_NOMEM :
	    entry_build(s->builder, s->arena, a->reader, &f, &item->why,
		&item->entry);
	if (s->arena != NULL)
		s->bytes = arena_used(s->arena);
	if (item->res == RES_OK)
		s->bytes += entry_bytes(&item->entry);
}

/* After this nothing more is read until the next beginning. */
static bool
is_last(const struct ahead_item *item)
{
	return item->end ||
	    (item->res != RES_OK && item->res != RES_NOTFOUND &&
		item->res != RES_CORRUPT && item->res != RES_LIMIT);
}

/* Under the lock: enough waits. */
static bool
is_full(const struct ahead *a)
{
	return a->filled == AHEAD_SLOTS ||
	    (a->filled > 0 && a->bytes >= AHEAD_BYTES);
}

static void *
read_ahead(void *context)
{
	struct ahead *a = context;
	pthread_mutex_lock(&a->lock);
	for (;;) {
		while (!a->stop && (a->idle || is_full(a)))
			pthread_cond_wait(&a->room, &a->lock);
		if (a->stop)
			break;
		struct slot *s =
		    &a->slots[(a->first + a->filled) % AHEAD_SLOTS];
		uint64_t offset = a->offset, frames = a->frames;
		uint64_t durable = a->durable;
		unsigned run = a->run;
		pthread_mutex_unlock(&a->lock);
		fill(a, s, offset, frames, durable);
		pthread_mutex_lock(&a->lock);
		/* begun elsewhere meanwhile, or the end has moved */
		if (run != a->run ||
		    (s->item.end && durable != a->durable))
			continue;
		a->offset = s->item.next_offset;
		a->frames = s->item.next_frames;
		a->idle = is_last(&s->item);
		a->filled++;
		a->bytes += s->bytes;
		if (a->filled >= AHEAD_TURN || a->idle || is_full(a))
			pthread_cond_signal(&a->more);
	}
	pthread_mutex_unlock(&a->lock);
	return NULL;
}

/* --- from outside --- */

enum res
ahead_start(const char *shard_dir, struct err *err, struct ahead **out)
{
	struct ahead *a = calloc(1, sizeof *a);
	if (a == NULL)
		return RES_NOMEM;
	a->idle = true;
	pthread_mutex_init(&a->lock, NULL);
	pthread_cond_init(&a->more, NULL);
	pthread_cond_init(&a->room, NULL);
	enum res r = segment_reader_open(shard_dir, NULL, err, &a->reader);
	if (r == RES_OK &&
	    pthread_create(&a->thread, NULL, read_ahead, a) != 0)
		r = RES_NOMEM;
	a->started = r == RES_OK;
	if (r == RES_OK)
		*out = a;
	else
		ahead_stop(&a);
	return r;
}

void
ahead_stop(struct ahead **ahead)
{
	struct ahead *a = *ahead;
	if (a == NULL)
		return;
	pthread_mutex_lock(&a->lock);
	a->stop = true;
	pthread_cond_signal(&a->room);
	pthread_mutex_unlock(&a->lock);
	if (a->started)
		pthread_join(a->thread, NULL);
	for (size_t i = 0; i < AHEAD_SLOTS; i++) {
		arena_free(&a->slots[i].arena);
		entry_builder_free(&a->slots[i].builder);
	}
	segment_reader_close(&a->reader);
	pthread_cond_destroy(&a->more);
	pthread_cond_destroy(&a->room);
	pthread_mutex_destroy(&a->lock);
	free(a);
	*ahead = NULL;
}

void
ahead_begin(
    struct ahead *a, uint64_t offset, uint64_t frames, uint64_t durable)
{
	pthread_mutex_lock(&a->lock);
	if (a->wanted_offset == offset && !a->idle) {
		a->durable = durable; /* it only grows */
	} else {
		a->run++;
		a->filled = a->bytes = 0;
		a->offset = a->wanted_offset = offset;
		a->frames = frames;
		a->durable = durable;
		a->idle = false;
		pthread_cond_signal(&a->room);
	}
	pthread_mutex_unlock(&a->lock);
}

const struct ahead_item *
ahead_take(struct ahead *a)
{
	pthread_mutex_lock(&a->lock);
	while (a->filled == 0)
		pthread_cond_wait(&a->more, &a->lock);
	const struct ahead_item *item = &a->slots[a->first].item;
	pthread_mutex_unlock(&a->lock);
	return item;
}

void
ahead_give(struct ahead *a)
{
	struct slot *s = &a->slots[a->first];
	if (s->bytes > AHEAD_KEEP) {
		arena_free(&s->arena);
		entry_builder_free(&s->builder);
	}
	pthread_mutex_lock(&a->lock);
	a->wanted_offset = s->item.next_offset;
	a->first = (a->first + 1) % AHEAD_SLOTS;
	a->filled--;
	a->bytes -= s->bytes;
	if (a->filled <= AHEAD_TURN)
		pthread_cond_signal(&a->room);
	pthread_mutex_unlock(&a->lock);
}
