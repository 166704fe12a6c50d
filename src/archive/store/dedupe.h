/* Which contents an open shard holds: the last 65,536 of them, so that the
 * same bytes arriving again are kept once (archive.md §2). Only a hint: 8
 * bytes of the hash lead to an offset, where the whole hash is compared. */
#ifndef ARCHIVE_DEDUPE_H
#define ARCHIVE_DEDUPE_H

#include <stdint.h>

#include "base/res.h"

#define DEDUPE_MAX 65536

struct dedupe;

struct dedupe *dedupe_new(void);
void dedupe_free(struct dedupe **d);
/* The newest offset for this hash, or 0. */
uint64_t dedupe_find(const struct dedupe *d, const uint8_t sha256[32]);
/* Remember; the oldest entry goes. */
void dedupe_add(struct dedupe *d, const uint8_t sha256[32], uint64_t offset);
/* Forget everything at or behind `offset`: it was not written. */
void dedupe_cut(struct dedupe *d, uint64_t offset);

#endif
