/* Which contents a store holds, by SHA-256: what an import passes over. Found
 * in the segments themselves, so it is right after a crash, an expiry and a
 * restore. 32 bytes of memory a message. */
#ifndef ARCHIVE_KNOWN_H
#define ARCHIVE_KNOWN_H

#include <stdbool.h>
#include <stdint.h>

#include "archive/store/io.h"
#include "base/err.h"

/* Beyond so many, contents are not recognised any more. */
#define KNOWN_MAX ((size_t)64 << 20)

struct known;

/* Reads the frames of all shards, `io` NULL is the system. Only what is whole
 * and durable counts: a frame that an interrupted import left half written is
 * cut off when its shard is opened, and then its message must come in again.
 * A shard that cannot be read counts as empty; RES_IO: one cannot be synced. */
HN_CHECK enum res known_new(const char *store_path,
    const struct archive_io *io, struct err *err, struct known **out);
void known_free(struct known **k);
bool known_has(const struct known *k, const uint8_t sha256[32]);
/* RES_LIMIT: there are KNOWN_MAX. */
HN_CHECK enum res known_add(struct known *k, const uint8_t sha256[32]);

#endif
