#include "base/sink.h"

struct tee {
	struct sink sink;
	size_t count;
	struct sink *const *sinks;
};

static void
tee_push(struct sink *s, const char *bytes, size_t len)
{
	struct tee *t = (struct tee *)s;
	for (size_t i = 0; i < t->count; i++)
		sink_push(t->sinks[i], bytes, len);
}

static enum res
tee_finish(struct sink *s)
{
	struct tee *t = (struct tee *)s;
	enum res first = RES_OK;
	for (size_t i = 0; i < t->count; i++) {
		enum res r = sink_finish(t->sinks[i]);
		if (first == RES_OK)
			first = r;
	}
	return first;
}

struct sink *
sink_tee(struct arena *a, struct sink *const *sinks, size_t count)
{
	if (count == 1)
		return sinks[0];
	struct tee *t = ARENA_NEW(a, struct tee);
	struct sink **copy = arena_array(a, count, sizeof *copy);
	if (t == NULL || copy == NULL)
		return NULL;
	for (size_t i = 0; i < count; i++)
		copy[i] = sinks[i];
	*t = (struct tee){ { tee_push, tee_finish }, count, copy };
	return &t->sink;
}

struct buf_sink {
	struct sink sink;
	struct buf *buf;
};

static void
buf_sink_push(struct sink *s, const char *bytes, size_t len)
{
	buf_add(((struct buf_sink *)s)->buf, bytes, len);
}

static enum res
buf_sink_finish(struct sink *s)
{
	return ((struct buf_sink *)s)->buf->error;
}

struct sink *
sink_buf(struct arena *a, struct buf *b)
{
	struct buf_sink *s = ARENA_NEW(a, struct buf_sink);
	if (s == NULL)
		return NULL;
	*s = (struct buf_sink){ { buf_sink_push, buf_sink_finish }, b };
	return &s->sink;
}

struct limit {
	struct sink sink;
	uint64_t max, *count;
	struct sink *next;
};

static void
limit_push(struct sink *s, const char *bytes, size_t len)
{
	struct limit *l = (struct limit *)s;
	*l->count += len;
	if (l->next != NULL && *l->count <= l->max)
		sink_push(l->next, bytes, len);
}

static enum res
limit_finish(struct sink *s)
{
	struct limit *l = (struct limit *)s;
	enum res r = l->next != NULL ? sink_finish(l->next) : RES_OK;
	return *l->count > l->max ? RES_LIMIT : r;
}

struct sink *
sink_limit(struct arena *a, uint64_t max, uint64_t *count, struct sink *next)
{
	struct limit *l = ARENA_NEW(a, struct limit);
	if (l == NULL)
		return NULL;
	*count = 0;
	*l = (struct limit){ { limit_push, limit_finish }, max, count, next };
	return &l->sink;
}

static void
null_push(struct sink *s, const char *bytes, size_t len)
{
	(void)s;
	(void)bytes;
	(void)len;
}

static enum res
null_finish(struct sink *s)
{
	(void)s;
	return RES_OK;
}

struct sink *
sink_null(void)
{
	static struct sink s = { null_push, null_finish };
	return &s;
}
