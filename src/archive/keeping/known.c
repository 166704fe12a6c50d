#include "archive/keeping/known.h"

#include <stdlib.h>
#include <string.h>

#include "archive/store/recover.h"
#include "archive/store/store_dir.h"
#include "base/codec.h"

#define FIRST_SLOTS 4096 /* a power of two */
#define KEPT        16   /* bytes of a hash: no two contents share them */

/* Open addressing, at most half full; all zeros is an empty slot. */
struct known {
	uint8_t (*slots)[KEPT];
	size_t count, size;
};

static const uint8_t nothing[KEPT];

static uint8_t *
slot_for(const struct known *k, const uint8_t *hash)
{
	size_t at = (size_t)get_le64(hash) & (k->size - 1);
	while (memcmp(k->slots[at], nothing, KEPT) != 0 &&
	    memcmp(k->slots[at], hash, KEPT) != 0)
		at = (at + 1) & (k->size - 1);
	return k->slots[at];
}

static enum res
grow(struct known *k)
{
	struct known wide = { .count = k->count,
		.size = k->size > 0 ? k->size * 2 : FIRST_SLOTS };
	wide.slots = calloc(wide.size, KEPT);
	if (wide.slots == NULL)
		return RES_NOMEM;
	for (size_t i = 0; i < k->size; i++)
		if (memcmp(k->slots[i], nothing, KEPT) != 0)
			memcpy(slot_for(&wide, k->slots[i]), k->slots[i], KEPT);
	free(k->slots);
	*k = wide;
	return RES_OK;
}

bool
known_has(const struct known *k, const uint8_t sha256[32])
{
	return k->size > 0 && memcmp(slot_for(k, sha256), sha256, KEPT) == 0;
}

enum res
known_add(struct known *k, const uint8_t sha256[32])
{
	if (k->count == KNOWN_MAX)
		return RES_LIMIT;
	if ((k->count + 1) * 2 > k->size) {
		enum res r = grow(k);
		if (r != RES_OK)
			return r;
	}
	uint8_t *slot = slot_for(k, sha256);
	if (memcmp(slot, sha256, KEPT) != 0) {
		memcpy(slot, sha256, KEPT);
		k->count++;
	}
	return RES_OK;
}

static enum res
on_message(void *context, const uint8_t sha256[32], uint64_t offset)
{
	(void)offset;
	return known_add(context, sha256);
}

/* What an interrupted import wrote may not be on disk yet: after the sync it
 * is, and what the scan then finds is there to stay. */
static enum res
read_shard(struct known *k, const struct archive_io *io,
    const struct shard_entry *e, struct err *err)
{
	const struct recover_seen seen = { .message = on_message,
		.context = k };
	struct segment_reader *reader;
	struct erasures erased;
	struct err ignored = { "" };
	if (segment_reader_open(e->dir, io, &ignored, &reader) != RES_OK)
		return RES_OK;
	struct arena *a = arena_new(ERASURES_ARENA);
	if (a == NULL || erasures_read(e->dir, a, &ignored, &erased) != RES_OK)
		erased = (struct erasures){ .count = 0 };
	struct recovery *rec = malloc(sizeof *rec);
	enum res r = rec != NULL ? segment_reader_sync(reader, err) : RES_NOMEM;
	if (r == RES_OK) {
		r = recover_scan(reader, 0, 0, &erased, &seen, rec);
		if (r != RES_NOMEM && r != RES_LIMIT)
			r = RES_OK;
	}
	segment_reader_close(&reader);
	arena_free(&a);
	free(rec);
	return r;
}

enum res
known_new(const char *store_path, const struct archive_io *io, struct err *err,
    struct known **out)
{
	struct shard_entry *entries;
	size_t count;
	struct arena *a = arena_new(0);
	struct known *k = calloc(1, sizeof *k);
	enum res r = a != NULL && k != NULL ? RES_OK : RES_NOMEM;
	if (r == RES_OK)
		r = store_dir_shards(
		    store_path, NULL, a, err, &entries, &count);
	for (size_t i = 0; r == RES_OK && i < count; i++)
		if (entries[i].status == RES_OK)
			r = read_shard(k, io, &entries[i], err);
	if (r == RES_LIMIT)
		r = RES_OK; /* enough are known */
	arena_free(&a);
	if (r != RES_OK) {
		known_free(&k);
		return r;
	}
	*out = k;
	return RES_OK;
}

void
known_free(struct known **k)
{
	if (*k == NULL)
		return;
	free((*k)->slots);
	free(*k);
	*k = NULL;
}
