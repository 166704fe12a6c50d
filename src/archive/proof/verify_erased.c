/* Checking what was erased against the intents to erase. */
#include <inttypes.h>
#include <stdlib.h>

#include "archive/proof/verify_inside.h"

static int
by_frame(const void *va, const void *vb)
{
	const struct erased_frame *a = va, *b = vb;
	return (a->number > b->number) - (a->number < b->number);
}

enum res
verify_read_erasures(struct verify *v)
{
	struct err err = { "" };
	v->erasures_arena = arena_new(ERASURES_ARENA);
	if (v->erasures_arena == NULL)
		return RES_NOMEM;
	enum res r = erasures_read(
	    v->entry->dir, v->erasures_arena, &err, &v->erasures);
	if (r == RES_OK && v->erasures.count > 1)
		qsort(v->erasures.frames, v->erasures.count,
		    sizeof *v->erasures.frames, by_frame);
	if (r == RES_OK || r == RES_NOMEM)
		return r;
	verify_shard_fault(
	    v, ERASURES_FILE ": cannot be read: %s", res_text(r));
	v->erasures = (struct erasures){ .count = 0 };
	return RES_OK;
}

static const struct erased_frame *
find_erased(const struct verify *v, uint64_t number)
{
	const struct erased_frame key = { .number = number };
	if (v->erasures.count == 0)
		return NULL;
	return bsearch(&key, v->erasures.frames, v->erasures.count,
	    sizeof key, by_frame);
}

bool
verify_is_under_way(const struct verify *v, uint64_t number)
{
	const struct erased_frame *e = find_erased(v, number);
	return e != NULL && e->intent == 0;
}

void
verify_check_erased(
    struct verify *v, const struct segment_frame *f, bool erased)
{
	const struct erased_frame *e = find_erased(v, f->header.number);
	if (e == NULL && erased)
		verify_frame_fault(
		    v, f, "it was blanked, and no erasure names it");
	if (e == NULL || e->intent == 0)
		return;
	if (!erased)
		verify_frame_fault(
		    v, f, ERASURES_FILE " names it, but it is there");
	enum res r = intents_find(&v->intents, e->intent, &f->header);
	if (r == RES_NOTFOUND)
		verify_frame_fault(v, f,
		    "it was erased, but the intent %" PRIu64 ".%" PRIu64
		    " does not name it",
		    e->intent >> 32, e->intent & UINT32_MAX);
	else if (r != RES_OK)
		verify_frame_fault(v, f,
		    "the intent to erase it cannot be read: %s", res_text(r));
}
