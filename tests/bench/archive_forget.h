/* What forgetting costs: one message, then every shard. */
#ifndef BENCH_ARCHIVE_FORGET_H
#define BENCH_ARCHIVE_FORGET_H

#include <stdint.h>

/* Of the store at `path`, whose mail is of `time_us`: erase message `id`,
 * then expire all. Little is left of it. */
void forget_measure(const char *path, uint64_t id, int64_t time_us);

#endif
