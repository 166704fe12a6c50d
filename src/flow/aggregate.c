#include "flow/aggregate.h"

#include <stdlib.h>

#include "base/hash.h"
#include "flow/aggregate_row.h"

#define SLOTS 131072 /* a power of two, over twice AGGREGATE_MAX_RECORDS */
_Static_assert(SLOTS > 2 * AGGREGATE_MAX_RECORDS, "half of it stays empty");

/* `slots` holds positions in `records`, plus one; 0 is free. */
struct aggregate {
	struct arena *arena;
	struct aggregate_record *records;
	uint32_t *slots;
	size_t count;
	struct str policy;
	struct aggregate_counts counts;
};

struct aggregate *
aggregate_new(struct arena *a)
{
	struct aggregate *g = ARENA_NEW(a, struct aggregate);
	if (g == NULL)
		return NULL;
	g->arena = a;
	g->records =
	    arena_array(a, AGGREGATE_MAX_RECORDS, sizeof *g->records);
	g->slots = arena_array(a, SLOTS, sizeof *g->slots);
	return g->records != NULL && g->slots != NULL ? g : NULL;
}

/* Well-formed, with all that a report must tell. */
static bool
is_sound(struct str row)
{
	struct record_reader r;
	unsigned tag;
	struct str value;
	if (record_open(row, &r) != RES_OK)
		return false;
	while (record_next(&r, &tag, &value))
		;
	struct str policy = record_find(row, ROW_POLICY);
	struct str record = record_find(row, ROW_RECORD);
	return r.error == RES_OK && record_find(policy, ROW_DOMAIN).len != 0 &&
	    record_find(policy, ROW_P).len != 0 &&
	    record_find(record, ROW_SOURCE_IP).len != 0 &&
	    record_find(record, ROW_HEADER_FROM).len != 0 &&
	    record_find(record, ROW_DISPOSITION).len != 0 &&
	    record_find(record, ROW_DKIM_ALIGNED).len != 0 &&
	    record_find(record, ROW_SPF_ALIGNED).len != 0;
}

/* The slot where these bytes are, or where they would go. */
static uint32_t *
find_slot(struct aggregate *g, struct str bytes)
{
	size_t at = (size_t)hash_bytes(bytes) & (SLOTS - 1);
	while (g->slots[at] != 0 &&
	    !str_eq(g->records[g->slots[at] - 1].bytes, bytes))
		at = (at + 1) & (SLOTS - 1);
	return &g->slots[at];
}

static bool
keep_record(struct aggregate *g, uint32_t *slot, struct str bytes)
{
	if (g->count == AGGREGATE_MAX_RECORDS)
		return false;
	struct str copy = arena_dup(g->arena, bytes);
	if (copy.ptr == NULL)
		return false;
	g->records[g->count] = (struct aggregate_record){ 1, copy };
	*slot = (uint32_t)++g->count;
	return true;
}

void
aggregate_add(struct aggregate *g, struct str row)
{
	if (!is_sound(row)) {
		g->counts.damaged++;
		return;
	}
	struct str policy = record_find(row, ROW_POLICY);
	struct str bytes = record_find(row, ROW_RECORD);
	if (!str_eq(policy, g->policy)) {
		struct str copy = arena_dup(g->arena, policy);
		if (copy.ptr != NULL)
			g->policy = copy;
	}
	g->counts.messages++;
	uint32_t *slot = find_slot(g, bytes);
	if (*slot != 0)
		g->records[*slot - 1].count++;
	else if (!keep_record(g, slot, bytes))
		g->counts.left_out++;
	g->counts.records = g->count;
}

struct aggregate_counts
aggregate_count(const struct aggregate *g)
{
	return g->counts;
}

struct str
aggregate_policy(const struct aggregate *g)
{
	return g->policy;
}

struct str
aggregate_domain(const struct aggregate *g)
{
	return record_find(g->policy, ROW_DOMAIN);
}

size_t
aggregate_rua(const struct aggregate *g, struct str *out_uris, size_t max)
{
	struct record_reader r;
	unsigned tag;
	struct str value;
	size_t n = 0;
	if (record_open(g->policy, &r) != RES_OK)
		return 0;
	while (n < max && record_next(&r, &tag, &value))
		if (tag == ROW_RUA)
			out_uris[n++] = value;
	return n;
}

static int
by_count(const void *va, const void *vb)
{
	const struct aggregate_record *a = va, *b = vb;
	if (a->count != b->count)
		return a->count > b->count ? -1 : 1;
	return str_cmp(a->bytes, b->bytes);
}

const struct aggregate_record *
aggregate_sorted(const struct aggregate *g, size_t *out_count)
{
	struct aggregate_record *sorted =
	    arena_array(g->arena, g->count, sizeof *sorted);
	*out_count = g->count;
	if (sorted == NULL || g->count == 0)
		return NULL;
	memcpy(sorted, g->records, g->count * sizeof *sorted);
	qsort(sorted, g->count, sizeof *sorted, by_count);
	return sorted;
}
