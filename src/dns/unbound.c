#include "dns/unbound.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/thread.h"
#include "dns/cache.h"
#include "dns/engine.h"

#define BINS 4096 /* of questions under way, a power of two */

/* One question under way, shared by all who asked it. It is made and found
 * under the lock; the DNS thread holds a reference from when it is queued
 * until it is answered, each struct ub_query another.
 *
 *   QUEUED  -- work() -->  UNDER_WAY  -- done() -->  DONE
 *      `-- work() finds that nobody waits --------> DONE (without answer)
 *
 * It is in a bin until DONE. */
enum state {
	QUEUED,
	UNDER_WAY,
	DONE
};

struct lookup {
	enum state state;
	unsigned refs, waiters;
	struct dns_answer *answer; /* once DONE; NULL: no memory */
	pthread_cond_t done;
	enum dns_type type;
	uint64_t hash;
	struct lookup *next; /* in its bin */
	struct lookup *queue_next;
	struct str name;
	char text[]; /* of name */
};

/* What a caller holds as its struct dns_query: an answer from the cache or a
 * look-up. */
struct ub_query {
	struct dns_answer *hit;
	struct lookup *lookup;
};

struct unbound {
	struct resolver resolver;
	struct engine *engine;
	struct dns_cache *cache;
	pthread_mutex_t lock;
	struct lookup *bins[BINS];
	size_t under_way;
	struct lookup *queue_first, **queue_end;
};

static uint64_t
hash_of(struct str name, enum dns_type type)
{
	uint64_t h = 14695981039346656037u ^ (uint64_t)type;
	for (size_t i = 0; i < name.len; i++)
		h = (h ^ (uint8_t)name.ptr[i]) * 1099511628211u;
	return h;
}

static void
lookup_free(struct lookup *l)
{
	dns_answer_unref(&l->answer);
	pthread_cond_destroy(&l->done);
	free(l);
}

/* With the lock held. */
static void
lookup_unref(struct lookup *l)
{
	if (--l->refs == 0)
		lookup_free(l);
}

static struct lookup *
lookup_new(struct str name, enum dns_type type, uint64_t hash)
{
	struct lookup *l = calloc(1, sizeof(*l) + name.len);
	if (l == NULL)
		return NULL;
	thread_cond_init(&l->done);
	l->type = type;
	l->hash = hash;
	memcpy(l->text, name.ptr, name.len);
	l->name = str_of(l->text, name.len);
	return l;
}

/* With the lock held: into its bin and the queue. */
static void
lookup_enter(struct unbound *u, struct lookup *l)
{
	struct lookup **bin = &u->bins[l->hash & (BINS - 1)];
	l->next = *bin;
	*bin = l;
	u->under_way++;
	l->refs++; /* the DNS thread's */
	*u->queue_end = l;
	u->queue_end = &l->queue_next;
}

/* With the lock held: nobody finds it any more, all waiters look. */
static void
lookup_done(struct unbound *u, struct lookup *l, struct dns_answer *a)
{
	struct lookup **at = &u->bins[l->hash & (BINS - 1)];
	while (*at != l)
		at = &(*at)->next;
	*at = l->next;
	u->under_way--;
	l->answer = a;
	l->state = DONE;
	pthread_cond_broadcast(&l->done);
	lookup_unref(l);
}

static struct lookup *
find(
    const struct unbound *u, struct str name, enum dns_type type, uint64_t hash)
{
	struct lookup *l = u->bins[hash & (BINS - 1)];
	while (l != NULL &&
	    (l->hash != hash || l->type != type || !str_eq(l->name, name)))
		l = l->next;
	return l;
}

/* ---- on the DNS thread ------------------------------------------------ */

static void
work(void *arg)
{
	struct unbound *u = arg;
	pthread_mutex_lock(&u->lock);
	struct lookup *l = u->queue_first;
	u->queue_first = NULL;
	u->queue_end = &u->queue_first;
	while (l != NULL) {
		struct lookup *next = l->queue_next;
		l->queue_next = NULL;
		if (l->waiters == 0) {
			lookup_done(u, l, NULL);
		} else {
			l->state = UNDER_WAY;
			/* The DNS thread's reference keeps `l` alive. */
			pthread_mutex_unlock(&u->lock);
			engine_resolve(u->engine, l->name, l->type, l);
			pthread_mutex_lock(&u->lock);
		}
		l = next;
	}
	pthread_mutex_unlock(&u->lock);
}

static void
done(void *arg, void *lookup, struct dns_answer *a)
{
	struct unbound *u = arg;
	if (a != NULL)
		dns_cache_put(u->cache, a, clock_mono_us());
	pthread_mutex_lock(&u->lock);
	lookup_done(u, lookup, a);
	pthread_mutex_unlock(&u->lock);
}

/* ---- on callers' threads ---------------------------------------------- */

static enum res
join_or_enter(
    struct unbound *u, struct str name, enum dns_type type, struct ub_query *q)
{
	uint64_t hash = hash_of(name, type);
	enum res r = RES_OK;
	bool wake = false;
	pthread_mutex_lock(&u->lock);
	struct lookup *l = find(u, name, type, hash);
	if (l == NULL && u->under_way >= UNBOUND_MAX_UNDER_WAY) {
		r = RES_AGAIN;
	} else if (l == NULL) {
		l = lookup_new(name, type, hash);
		if (l == NULL) {
			r = RES_NOMEM;
		} else {
			wake = u->queue_first == NULL;
			lookup_enter(u, l);
		}
	}
	if (r == RES_OK) {
		l->refs++;
		l->waiters++;
		q->lookup = l;
	}
	pthread_mutex_unlock(&u->lock);
	if (wake)
		engine_wake(u->engine);
	return r;
}

static enum res
start(struct resolver *r, struct str name, enum dns_type type,
    struct dns_query **out)
{
	struct unbound *u = (struct unbound *)r;
	struct ub_query *q = calloc(1, sizeof(*q));
	if (q == NULL)
		return RES_NOMEM;
	q->hit = dns_cache_get(u->cache, name, type, clock_mono_us());
	if (q->hit == NULL) {
		enum res res = join_or_enter(u, name, type, q);
		if (res != RES_OK) {
			free(q);
			return res;
		}
	}
	*out = (struct dns_query *)q;
	return RES_OK;
}

static struct dns_answer *
wait_until(struct resolver *r, struct dns_query *query, int64_t deadline_us)
{
	struct unbound *u = (struct unbound *)r;
	struct ub_query *q = (struct ub_query *)query;
	struct lookup *l = q->lookup;
	if (q->hit != NULL)
		return dns_answer_ref(q->hit);
	if (deadline_us < 0)
		deadline_us = 0;
	pthread_mutex_lock(&u->lock);
	while (l->state != DONE)
		if (!thread_wait(&l->done, &u->lock, deadline_us))
			break;
	struct dns_answer *a =
	    l->state == DONE ? dns_answer_ref(l->answer) : NULL;
	pthread_mutex_unlock(&u->lock);
	return a;
}

static void
release(struct resolver *r, struct dns_query **query)
{
	struct unbound *u = (struct unbound *)r;
	struct ub_query *q = (struct ub_query *)*query;
	*query = NULL;
	if (q == NULL)
		return;
	dns_answer_unref(&q->hit);
	if (q->lookup != NULL) {
		pthread_mutex_lock(&u->lock);
		q->lookup->waiters--;
		lookup_unref(q->lookup);
		pthread_mutex_unlock(&u->lock);
	}
	free(q);
}

static void
unbound_free(struct resolver *r)
{
	struct unbound *u = (struct unbound *)r;
	engine_free(&u->engine);
	for (size_t i = 0; i < BINS; i++) {
		while (u->bins[i] != NULL) {
			struct lookup *l = u->bins[i];
			u->bins[i] = l->next;
			lookup_free(l);
		}
	}
	dns_cache_free(&u->cache);
	pthread_mutex_destroy(&u->lock);
	free(u);
}

enum res
unbound_new(const struct unbound_options *o, struct err *err,
    struct resolver **out, const char **out_dnssec_note)
{
	struct unbound *u = calloc(1, sizeof(*u));
	if (u == NULL)
		return RES_NOMEM;
	u->resolver = (struct resolver){ .start = start,
		.wait = wait_until,
		.release = release,
		.free = unbound_free };
	pthread_mutex_init(&u->lock, NULL);
	u->queue_end = &u->queue_first;
	u->cache = dns_cache_new(o->cache_entries, 0);
	struct engine_hooks hooks = { work, done, u };
	enum res r = u->cache == NULL ? RES_NOMEM
				      : engine_new(o, &hooks, err, &u->engine);
	if (r == RES_OK)
		r = engine_start(u->engine, err);
	if (r != RES_OK) {
		unbound_free(&u->resolver);
		return r;
	}
	if (out_dnssec_note != NULL)
		*out_dnssec_note = engine_probing(u->engine)
		    ? NULL
		    : engine_dnssec_note(u->engine, 0);
	*out = &u->resolver;
	return RES_OK;
}

const char *
unbound_dnssec_note(struct resolver *r, int64_t deadline_us)
{
	struct unbound *u = (struct unbound *)r;
	return engine_dnssec_note(u->engine, deadline_us);
}
