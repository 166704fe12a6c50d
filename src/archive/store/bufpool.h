/* Buffers that are used again: a message of some hundred kilobytes needs two,
 * and getting their pages from the kernel and giving them back each time costs
 * more than compressing it. Any thread. */
#ifndef ARCHIVE_BUFPOOL_H
#define ARCHIVE_BUFPOOL_H

#include <pthread.h>

#include "base/buf.h"

#define BUFPOOL_MAX_KEPT 16                   /* buffers */
#define BUFPOOL_MAX_SIZE ((size_t)512 << 10) /* larger ones are not kept */

struct bufpool {
	pthread_mutex_t mutex;
	struct buf idle[BUFPOOL_MAX_KEPT];
	size_t count;
};

void bufpool_init(struct bufpool *p);
void bufpool_done(struct bufpool *p);
/* An empty buffer with this maximum; perhaps it has room already. `p` may be
 * NULL for both: then it is made and freed. */
struct buf bufpool_take(struct bufpool *p, size_t max_bytes);
void bufpool_give(struct bufpool *p, struct buf *b);

#endif
