#include "cli/lives.h"

#include <stdlib.h>

#include "base/hash.h"

#define FIRST_SLOTS 4096 /* a power of two */
/* Lines of one message may be written in another order than they happened. */
#define LATE_US ((int64_t)5 * 1000000)
/* A message stays in the queue for five days, by default. */
#define QUEUE_US ((int64_t)6 * 86400 * 1000000)
#define MAX_PASSES 4

struct lives {
	struct arena *arena;
	struct life **slots;
	size_t size;
	struct life **all; /* in order */
	size_t count, cap;
};

struct lives *
lives_new(size_t memory)
{
	struct lives *l = calloc(1, sizeof *l);
	if (l == NULL)
		return NULL;
	l->arena = arena_new(memory);
	l->slots = calloc(FIRST_SLOTS, sizeof *l->slots);
	l->size = FIRST_SLOTS;
	if (l->arena == NULL || l->slots == NULL)
		lives_free(&l);
	return l;
}

void
lives_free(struct lives **l)
{
	if (*l == NULL)
		return;
	arena_free(&(*l)->arena);
	free((*l)->slots);
	free((*l)->all);
	free(*l);
	*l = NULL;
}

size_t
lives_count(const struct lives *l)
{
	return l->count;
}

struct life *
lives_at(const struct lives *l, size_t i)
{
	return l->all[i];
}

/* --- the table ------------------------------------------------------------- */

static struct life **
slot_of(const struct lives *l, struct str queue_id)
{
	return &l->slots[hash_bytes(queue_id) & (l->size - 1)];
}

static enum res
grow_slots(struct lives *l)
{
	struct life **wide = calloc(l->size * 2, sizeof *wide);
	if (wide == NULL)
		return RES_NOMEM;
	free(l->slots);
	l->slots = wide;
	l->size *= 2;
	/* oldest first, so that each chain has the newest in front */
	for (size_t i = 0; i < l->count; i++) {
		struct life *f = l->all[i];
		struct life **slot = slot_of(l, f->queue_id);
		f->older = *slot;
		*slot = f;
	}
	return RES_OK;
}

static enum res
make_room(struct lives *l)
{
	if (l->count == LIVES_MAX)
		return RES_LIMIT;
	if (l->count == l->cap) {
		size_t cap = l->cap == 0 ? 1024 : l->cap * 2;
		struct life **more = realloc(l->all, cap * sizeof(*more));
		if (more == NULL)
			return RES_NOMEM;
		l->all = more;
		l->cap = cap;
	}
	return l->count >= l->size ? grow_slots(l) : RES_OK;
}

static struct life *
begin(struct lives *l, const struct maillog_event *e)
{
	if (make_room(l) != RES_OK)
		return NULL;
	struct life *f = ARENA_NEW(l->arena, struct life);
	if (f == NULL)
		return NULL;
	f->queue_id = arena_dup(l->arena, e->queue_id);
	f->host = arena_dup(l->arena, e->host);
	f->service = arena_dup(l->arena, e->service);
	if (f->queue_id.ptr == NULL || f->host.ptr == NULL ||
	    f->service.ptr == NULL)
		return NULL;
	f->begin_us = f->last_us = e->time_us;
	struct life **slot = slot_of(l, f->queue_id);
	f->older = *slot;
	*slot = f;
	l->all[l->count++] = f;
	return f;
}

/* The newest life of this id in the same queue. */
static struct life *
newest(const struct lives *l, const struct maillog_event *e)
{
	for (struct life *f = *slot_of(l, e->queue_id); f != NULL; f = f->older)
		if (str_eq(f->queue_id, e->queue_id) &&
		    str_eq(f->host, e->host) && str_eq(f->service, e->service))
			return f;
	return NULL;
}

/* --- events ---------------------------------------------------------------- */

/* Does this line belong to the life `f`, or does a new one begin? */
static bool
goes_on(const struct life *f, const struct maillog_event *e)
{
	if (e->is_sendmail)
		return true;
	if (e->kind == MAILLOG_CLIENT || e->kind == MAILLOG_LOCAL)
		return false;
	if (e->kind == MAILLOG_MESSAGE_ID && f->message_id.len > 0 &&
	    !str_eq(f->message_id, e->value))
		return false; /* the end of the other one is not in the log */
	if (!f->done)
		return true;
	return e->kind != MAILLOG_MESSAGE_ID &&
	    e->time_us <= f->last_us + LATE_US;
}

static enum res
set_message_id(struct lives *l, struct life *f, struct str id)
{
	if (f->message_id.len > 0 || id.len == 0)
		return RES_OK;
	f->message_id = arena_dup(l->arena, id);
	return f->message_id.ptr != NULL ? RES_OK : RES_NOMEM;
}

/* Sendmail told the sender: that is the end, unless others wait for another
 * attempt at that time. */
static void
failed(struct life *f, const struct maillog_event *e)
{
	if (!e->reported)
		return;
	f->done = !f->deferred || e->kind == MAILLOG_EXPIRED;
	f->deferred = false;
}

static enum res
apply(struct lives *l, struct life *f, const struct maillog_event *e)
{
	switch (e->kind) {
	case MAILLOG_CLIENT:
	case MAILLOG_OTHER:
		break;
	case MAILLOG_LOCAL:
		if (e->value.len > 0)
			f->from_id = arena_dup(l->arena, e->value);
		break;
	case MAILLOG_MESSAGE_ID:
		return set_message_id(l, f, e->value);
	case MAILLOG_SENT:
		if (e->value.len > 0)
			f->to_id = arena_dup(l->arena, e->value);
		else
			f->sent++;
		break;
	case MAILLOG_BOUNCED:
		f->bounced = true;
		failed(f, e);
		break;
	case MAILLOG_DEFERRED:
		f->deferred = true;
		break;
	case MAILLOG_EXPIRED:
		f->expired = true;
		failed(f, e);
		break;
	case MAILLOG_REFUSED:
		f->refused = f->done = true;
		break;
	case MAILLOG_DISCARDED:
		f->discarded = f->done = true;
		break;
	case MAILLOG_HELD:
		f->held = true;
		break;
	case MAILLOG_DELETED:
		f->deleted = f->done = true;
		break;
	case MAILLOG_REMOVED:
		f->done = true;
		break;
	}
	return set_message_id(l, f, e->message_id);
}

enum res
lives_add(struct lives *l, const struct maillog_event *e)
{
	static const enum life_source sources[] = {
		[MAILLOG_CLIENT] = LIFE_SMTP,
		[MAILLOG_LOCAL] = LIFE_LOCAL,
		[MAILLOG_MESSAGE_ID] = LIFE_INTERNAL,
		[MAILLOG_REMOVED] = LIFE_UNKNOWN,
	};
	struct life *f = newest(l, e);
	if (f == NULL || !goes_on(f, e)) {
		f = begin(l, e);
		if (f == NULL)
			return l->count == LIVES_MAX ? RES_LIMIT : RES_NOMEM;
		f->source = sources[e->kind];
		if (f->source == LIFE_UNKNOWN)
			f->begin_us -= QUEUE_US;
	}
	if (e->is_sendmail && f->source == LIFE_UNKNOWN &&
	    sources[e->kind] != LIFE_UNKNOWN) {
		/* a line of a milter's was written first */
		f->source = sources[e->kind];
		f->begin_us += QUEUE_US;
	}
	if (e->time_us > f->last_us)
		f->last_us = e->time_us;
	return apply(l, f, e);
}

/* --- afterwards ------------------------------------------------------------ */

/* Is `f` more likely than `best` to be what was archived at that time? A
 * certain beginning before a guess, the nearest one; at the same time in the
 * queues of several hosts, one that is still to be accounted for. */
static bool
likelier(const struct life *f, const struct life *best, int64_t at_us)
{
	if (best == NULL)
		return true;
	if ((f->source == LIFE_UNKNOWN) != (best->source == LIFE_UNKNOWN))
		return best->source == LIFE_UNKNOWN;
	int64_t x = llabs(at_us - f->begin_us);
	int64_t y = llabs(at_us - best->begin_us);
	if (x != y)
		return x < y;
	if ((f->archived == 0) != (best->archived == 0))
		return f->archived == 0;
	return life_delivered(f) && !life_delivered(best);
}

struct life *
lives_find(const struct lives *l, struct str queue_id, int64_t at_us,
    int64_t slack_us)
{
	struct life *best = NULL;
	for (struct life *f = *slot_of(l, queue_id); f != NULL; f = f->older)
		if (str_eq(f->queue_id, queue_id) &&
		    at_us >= f->begin_us - slack_us &&
		    at_us <= f->last_us + slack_us && likelier(f, best, at_us))
			best = f;
	return best;
}

static struct life *
other_life(const struct lives *l, const struct life *f, struct str id)
{
	for (struct life *o = *slot_of(l, id); o != NULL; o = o->older)
		if (o != f && str_eq(o->queue_id, id) &&
		    str_eq(o->host, f->host) &&
		    o->begin_us <= f->last_us + LATE_US &&
		    f->begin_us <= o->last_us + LATE_US)
			return o;
	return NULL;
}

void
lives_join(struct lives *l)
{
	for (size_t i = 0; i < l->count; i++) {
		struct life *f = l->all[i], *o;
		if (f->to_id.len > 0) {
			o = other_life(l, f, f->to_id);
			if (o != NULL && o->parent == NULL)
				o->parent = f;
			else if (o == NULL)
				f->sent++; /* of its way there is no more */
		}
		if (f->from_id.len > 0 && f->parent == NULL)
			f->parent = other_life(l, f, f->from_id);
	}
	/* a few steps up: mail that goes through many filters is rare, and a
	 * circle is somebody's joke */
	for (int pass = 0; pass < MAX_PASSES; pass++)
		for (size_t i = l->count; i-- > 0;) {
			struct life *f = l->all[i];
			if (f->parent == NULL)
				continue;
			f->parent->child_delivered |= life_delivered(f);
			uint64_t id = f->archived != 0 ? f->archived :
							 f->child_archived;
			if (id > f->parent->child_archived)
				f->parent->child_archived = id;
		}
}

bool
life_delivered(const struct life *f)
{
	return f->sent > 0 || f->child_delivered;
}

uint64_t
life_archived(const struct life *f)
{
	return f->archived != 0 ? f->archived : f->child_archived;
}

const char *
life_fate(const struct life *f)
{
	if (life_delivered(f))
		return "delivered";
	if (f->refused)
		return "refused";
	if (f->discarded)
		return "discarded";
	if (f->deleted)
		return "deleted";
	if (f->expired)
		return "expired";
	if (f->bounced)
		return "bounced";
	if (f->held)
		return "held";
	return f->done ? "removed" : "queued";
}

const char *
life_source_word(enum life_source s)
{
	static const char *const words[] = { "unknown", "smtp", "local",
		"internal" };
	return words[s];
}
