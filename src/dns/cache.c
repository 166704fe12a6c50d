#include "dns/cache.h"

#include <pthread.h>
#include <stdlib.h>

#define SHARDS          16  /* a power of two */
#define ENTRY_OVERHEAD  256 /* what an answer costs beside its data, about */
#define ENTRIES_PER_BIN 2

struct entry {
	struct dns_answer *answer;
	uint64_t hash;
	int64_t expires_us;
	size_t bytes;
	struct entry *next;          /* in its bin */
	struct entry *newer, *older; /* by use */
};

struct shard {
	pthread_mutex_t lock;
	struct entry **bins;
	struct entry *newest, *oldest;
	size_t count, bytes;
};

struct dns_cache {
	size_t bin_count;              /* per shard, a power of two */
	size_t max_entries, max_bytes; /* per shard */
	struct shard shards[SHARDS];
};

struct dns_cache *
dns_cache_new(size_t max_entries, size_t max_bytes)
{
	struct dns_cache *c = calloc(1, sizeof(*c));
	if (c == NULL)
		return NULL;
	if (max_entries == 0)
		max_entries = DNS_CACHE_DEFAULT_ENTRIES;
	if (max_bytes == 0)
		max_bytes = DNS_CACHE_MAX_BYTES;
	c->max_entries = (max_entries + SHARDS - 1) / SHARDS;
	c->max_bytes = (max_bytes + SHARDS - 1) / SHARDS;
	c->bin_count = 1;
	while (c->bin_count < c->max_entries / ENTRIES_PER_BIN)
		c->bin_count *= 2;
	for (size_t i = 0; i < SHARDS; i++)
		pthread_mutex_init(&c->shards[i].lock, NULL);
	for (size_t i = 0; i < SHARDS; i++) {
		struct shard *s = &c->shards[i];
		s->bins = calloc(c->bin_count, sizeof(struct entry *));
		if (s->bins == NULL) {
			dns_cache_free(&c);
			return NULL;
		}
	}
	return c;
}

/* FNV-1a; the upper bits choose the shard, the lower ones the bin. */
static uint64_t
key_hash(struct str name, enum dns_type type)
{
	uint64_t h = 14695981039346656037u ^ (uint64_t)type;
	for (size_t i = 0; i < name.len; i++)
		h = (h ^ (uint8_t)name.ptr[i]) * 1099511628211u;
	return h;
}

static struct shard *
shard_of(struct dns_cache *c, uint64_t hash)
{
	return &c->shards[hash >> 40 & (SHARDS - 1)];
}

static struct entry **
find(const struct dns_cache *c, struct shard *s, uint64_t hash, struct str name,
    enum dns_type type)
{
	struct entry **at = &s->bins[hash & (c->bin_count - 1)];
	while (*at != NULL) {
		struct entry *e = *at;
		if (e->hash == hash && e->answer->type == type &&
		    str_eq(e->answer->name, name))
			break;
		at = &e->next;
	}
	return at;
}

static void
unlink_use(struct shard *s, struct entry *e)
{
	if (e->newer != NULL)
		e->newer->older = e->older;
	else
		s->newest = e->older;
	if (e->older != NULL)
		e->older->newer = e->newer;
	else
		s->oldest = e->newer;
}

static void
link_newest(struct shard *s, struct entry *e)
{
	e->newer = NULL;
	e->older = s->newest;
	if (s->newest != NULL)
		s->newest->newer = e;
	else
		s->oldest = e;
	s->newest = e;
}

/* Take *at out of its bin and free it. */
static void
drop(struct shard *s, struct entry **at)
{
	struct entry *e = *at;
	*at = e->next;
	unlink_use(s, e);
	s->count--;
	s->bytes -= e->bytes;
	dns_answer_unref(&e->answer);
	free(e);
}

static void
drop_oldest(const struct dns_cache *c, struct shard *s)
{
	struct entry **at = &s->bins[s->oldest->hash & (c->bin_count - 1)];
	while (*at != s->oldest)
		at = &(*at)->next;
	drop(s, at);
}

struct dns_answer *
dns_cache_get(
    struct dns_cache *c, struct str name, enum dns_type type, int64_t now_us)
{
	uint64_t hash = key_hash(name, type);
	struct shard *s = shard_of(c, hash);
	struct dns_answer *a = NULL;
	pthread_mutex_lock(&s->lock);
	struct entry **at = find(c, s, hash, name, type);
	struct entry *e = *at;
	if (e != NULL && e->expires_us <= now_us) {
		drop(s, at);
	} else if (e != NULL) {
		a = dns_answer_ref(e->answer);
		unlink_use(s, e);
		link_newest(s, e);
	}
	pthread_mutex_unlock(&s->lock);
	return a;
}

static size_t
answer_bytes(const struct dns_answer *a)
{
	size_t n =
	    ENTRY_OVERHEAD + a->name.len + a->count * sizeof(*a->records);
	for (size_t i = 0; i < a->count; i++)
		n += a->records[i].data.len;
	return n;
}

void
dns_cache_put(struct dns_cache *c, struct dns_answer *a, int64_t now_us)
{
	uint32_t ttl = a->ttl;
	if (a->status != DNS_OK && ttl > DNS_CACHE_MAX_NEGATIVE)
		ttl = DNS_CACHE_MAX_NEGATIVE;
	size_t bytes = answer_bytes(a);
	if (dns_status_temporary(a->status) || a->status == DNS_BADNAME ||
	    ttl == 0 || bytes > c->max_bytes)
		return;
	struct entry *e = calloc(1, sizeof(*e));
	if (e == NULL)
		return;
	*e = (struct entry){ .answer = dns_answer_ref(a),
		.hash = key_hash(a->name, a->type),
		.expires_us = now_us + (int64_t)ttl * 1000000,
		.bytes = bytes };
	struct shard *s = shard_of(c, e->hash);
	pthread_mutex_lock(&s->lock);
	struct entry **old = find(c, s, e->hash, a->name, a->type);
	if (*old != NULL)
		drop(s, old);
	while (s->count >= c->max_entries || s->bytes + bytes > c->max_bytes)
		drop_oldest(c, s);
	struct entry **bin = &s->bins[e->hash & (c->bin_count - 1)];
	e->next = *bin;
	*bin = e;
	link_newest(s, e);
	s->count++;
	s->bytes += bytes;
	pthread_mutex_unlock(&s->lock);
}

size_t
dns_cache_count(struct dns_cache *c)
{
	size_t n = 0;
	for (size_t i = 0; i < SHARDS; i++) {
		pthread_mutex_lock(&c->shards[i].lock);
		n += c->shards[i].count;
		pthread_mutex_unlock(&c->shards[i].lock);
	}
	return n;
}

void
dns_cache_free(struct dns_cache **cache)
{
	struct dns_cache *c = *cache;
	*cache = NULL;
	if (c == NULL)
		return;
	for (size_t i = 0; i < SHARDS; i++) {
		struct shard *s = &c->shards[i];
		while (s->oldest != NULL)
			drop_oldest(c, s);
		free(s->bins);
		pthread_mutex_destroy(&s->lock);
	}
	free(c);
}
