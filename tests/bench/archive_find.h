/* The index: how fast it is made, how large it is, how soon it answers. */
#ifndef TESTS_BENCH_ARCHIVE_FIND_H
#define TESTS_BENCH_ARCHIVE_FIND_H

#include "mail.h"

/* A store of `messages` small messages in `dir`, sealed; then `shards` times
 * as many. */
void find_measure(const char *dir, const struct mail_maker *m,
    unsigned messages, unsigned shards);

#endif
