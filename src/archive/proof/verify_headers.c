/* Checking a shard's header, and the chain from shard to shard. */
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include "archive/proof/verify_inside.h"
#include "archive/store/store.h"

void
verify_check_successors(struct verify *v)
{
	uint8_t root[LEAF_HASH_BYTES], none[LEAF_HASH_BYTES] = { 0 };
	for (size_t i = 0; i < v->entry_count; i++) {
		const struct shard_entry *e = &v->entries[i];
		const struct shard_header *h = &e->header;
		if (e->status != RES_OK ||
		    h->previous != v->entry->header.number)
			continue;
		if (h->previous_frames != v->number)
			verify_shard_fault(v,
			    "the header of %s says it has %" PRIu64
			    " frames, not %" PRIu64,
			    e->dir, h->previous_frames, v->number);
		if (h->previous_bytes != v->at)
			verify_shard_fault(v,
			    "the header of %s says it has %" PRIu64
			    " bytes, not %" PRIu64,
			    e->dir, h->previous_bytes, v->at);
		if (!v->holes &&
		    memcmp(h->previous_root, none, sizeof none) != 0 &&
		    (merkle_root(&v->tree, root) != RES_OK ||
			memcmp(h->previous_root, root, sizeof root) != 0))
			verify_shard_fault(v,
			    "the header of %s has another tree head of it",
			    e->dir);
	}
}

/* Only a header: its making failed in the middle, and another took its place.
 * One that held frames is named by its successor. */
static bool
is_stillborn(const struct shard_entry *e)
{
	char path[PATH_MAX];
	struct stat st;
	return io_path(path, "%s/segment", e->dir) == RES_OK &&
	    stat(path, &st) == 0 && st.st_size <= SHARD_HEADER_BYTES;
}

/* The newest shard of the family that was made before this one; in `import`
 * of the same month. */
static const struct shard_entry *
before(const struct verify *v, const struct shard_entry *e)
{
	const struct shard_entry *found = NULL;
	for (size_t i = 0; i < v->entry_count; i++) {
		const struct shard_entry *o = &v->entries[i];
		if (o->status != RES_OK || strcmp(o->family, e->family) != 0 ||
		    o->header.number >= e->header.number ||
		    (strcmp(e->family, STORE_IMPORT_FAMILY) == 0 &&
			strcmp(o->period, e->period) != 0) ||
		    (o->header.number != e->header.previous &&
			is_stillborn(o)))
			continue;
		if (found == NULL || o->header.number > found->header.number)
			found = o;
	}
	return found;
}

const struct shard_entry *
verify_by_number(const struct verify *v, uint32_t number)
{
	for (size_t i = 0; i < v->entry_count; i++)
		if (v->entries[i].status == RES_OK &&
		    v->entries[i].header.number == number)
			return &v->entries[i];
	return NULL;
}

void
verify_check_header(struct verify *v)
{
	const struct shard_entry *e = v->entry;
	const struct shard_header *h = &e->header;
	if (memcmp(h->store_uuid, v->id.uuid, sizeof v->id.uuid) != 0)
		verify_shard_fault(v, "it is of another store");
	if (strcmp(h->family, e->family) != 0 ||
	    strcmp(h->period, e->period) != 0)
		verify_shard_fault(
		    v, "its header says it is of %s %s", h->family, h->period);
	if (h->epoch > v->id.epoch || h->number >= v->id.next_shard)
		verify_shard_fault(v, "it is newer than the store's identity");
	const struct shard_entry *same = verify_by_number(v, h->number);
	if (same != e)
		verify_shard_fault(v, "%s has the same number", same->dir);
	const struct shard_entry *older = before(v, e);
	if (older == NULL)
		return; /* what was there has expired */
	if (h->previous == 0)
		verify_shard_fault(v,
		    "it names no shard before it, but there is shard %" PRIu32,
		    older->header.number);
	else if (verify_by_number(v, h->previous) == NULL)
		verify_shard_fault(v, "shard %" PRIu32 ", which it follows, is missing", h->previous);
	else if (older->header.number != h->previous)
		verify_shard_fault(v,
		    "it follows shard %" PRIu32 ", but shard %" PRIu32
		    " is between them",
		    h->previous, older->header.number);
}
