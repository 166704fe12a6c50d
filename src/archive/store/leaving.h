/* Shards that get no more frames, until their index is complete: merging the
 * postings of a month takes a while, and the writer must not wait for it. One
 * thread a shard, a few at most; the shard's lock is kept until the end. */
#ifndef ARCHIVE_LEAVING_H
#define ARCHIVE_LEAVING_H

#include <pthread.h>
#include <stdbool.h>

#include "archive/index/applier.h"
#include "archive/store/shard.h"

#define LEAVING_MAX 4

struct leaving {
	struct leaving_shard {
		bool used;
		pthread_t thread;
		struct shard *shard;
		struct applier *applier; /* NULL: no index */
		bool seal;               /* no more will ever come */
	} shards[LEAVING_MAX];
	size_t oldest;
};

void leaving_init(struct leaving *l);
/* Takes shard and applier over. Waits for the oldest when there are
 * LEAVING_MAX under way. */
void leaving_add(struct leaving *l, struct shard *shard,
    struct applier *applier, bool seal);
/* Until none is left. */
void leaving_wait(struct leaving *l);

#endif
