/* What the parts of a shard know of each other: making one (shard_create.c),
 * recovering one (shard_open.c), writing into it (shard.c). */
#ifndef ARCHIVE_SHARD_INSIDE_H
#define ARCHIVE_SHARD_INSIDE_H

#include "archive/store/shard.h"

/* Nothing is open or locked yet. NULL: no memory. */
struct shard *shard_new(const struct shard_env *env);
/* The segment in s->dir, to be written. */
HN_CHECK enum res shard_open_segment(struct shard *s);

#endif
