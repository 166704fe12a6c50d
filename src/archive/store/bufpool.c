#include "archive/store/bufpool.h"

void
bufpool_init(struct bufpool *p)
{
	p->count = 0;
	pthread_mutex_init(&p->mutex, NULL);
}

void
bufpool_done(struct bufpool *p)
{
	while (p->count > 0)
		buf_done(&p->idle[--p->count]);
	pthread_mutex_destroy(&p->mutex);
}

struct buf
bufpool_take(struct bufpool *p, size_t max_bytes)
{
	struct buf b;
	buf_init(&b, max_bytes);
	if (p == NULL)
		return b;
	pthread_mutex_lock(&p->mutex);
	if (p->count > 0)
		b = p->idle[--p->count];
	pthread_mutex_unlock(&p->mutex);
	b.max = max_bytes;
	return b;
}

void
bufpool_give(struct bufpool *p, struct buf *b)
{
	if (p != NULL && b->cap > 0 && b->cap <= BUFPOOL_MAX_SIZE) {
		pthread_mutex_lock(&p->mutex);
		if (p->count < BUFPOOL_MAX_KEPT) {
			buf_reset(b);
			p->idle[p->count++] = *b;
			buf_init(b, b->max);
		}
		pthread_mutex_unlock(&p->mutex);
	}
	buf_done(b);
}
