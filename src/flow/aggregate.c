#include "flow/aggregate.h"

#include <stdlib.h>

#include "base/hash.h"
#include "flow/aggregate_row.h"

/* Most domains have few records: the tables begin small and double. Both are
 * powers of two, and more than half of the slots stay free. */
#define FIRST_ROOM 32
#define SLOTS_EACH 4

/* `slots` holds positions in `records`, plus one; 0 is free. */
struct aggregate {
	struct arena *arena;
	struct aggregate_record *records;
	uint32_t *slots;
	size_t count, room; /* records; SLOTS_EACH slots for each of `room` */
	struct str policy;
	struct aggregate_counts counts;
};

/* Where the search for these bytes begins. */
static size_t
first_slot(const struct aggregate *g, struct str bytes)
{
	return (size_t)hash_bytes(bytes) & (SLOTS_EACH * g->room - 1);
}

static size_t
next_slot(const struct aggregate *g, size_t at)
{
	return (at + 1) & (SLOTS_EACH * g->room - 1);
}

static bool
set_room(struct aggregate *g, size_t room)
{
	struct aggregate_record *records =
	    arena_array(g->arena, room, sizeof *records);
	uint32_t *slots =
	    arena_array(g->arena, SLOTS_EACH * room, sizeof *slots);
	if (records == NULL || slots == NULL)
		return false;
	if (g->count != 0)
		memcpy(records, g->records, g->count * sizeof *records);
	g->records = records;
	g->slots = slots;
	g->room = room;
	for (size_t i = 0; i < g->count; i++) {
		size_t at = first_slot(g, records[i].bytes);
		while (slots[at] != 0)
			at = next_slot(g, at);
		slots[at] = (uint32_t)i + 1;
	}
	return true;
}

struct aggregate *
aggregate_new(struct arena *a)
{
	struct aggregate *g = ARENA_NEW(a, struct aggregate);
	if (g == NULL)
		return NULL;
	g->arena = a;
	return set_room(g, FIRST_ROOM) ? g : NULL;
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

/* What a message is judged by. */
static const struct {
	unsigned tag;
	const char *name;
} judged_by[] = { { ROW_P, "p" }, { ROW_SP, "sp" }, { ROW_NP, "np" },
	{ ROW_ADKIM, "adkim" }, { ROW_ASPF, "aspf" }, { ROW_TESTING, "t" } };
#define JUDGED_BY (sizeof judged_by / sizeof judged_by[0])

static bool
is_same_policy(struct str a, struct str b)
{
	if (a.ptr == b.ptr)
		return true;
	for (size_t i = 0; i < JUDGED_BY; i++)
		if (!str_eq(record_find(a, judged_by[i].tag),
			record_find(b, judged_by[i].tag)))
			return false;
	return true;
}

bool
aggregate_earlier(const struct aggregate *g,
    const struct aggregate_record *record, struct buf *out)
{
	if (is_same_policy(record->policy, g->policy))
		return false;
	for (size_t i = 0; i < JUDGED_BY; i++) {
		buf_addf(out, "%s%s=", i == 0 ? "" : " ", judged_by[i].name);
		buf_add_str(out,
		    record_find(record->policy, judged_by[i].tag));
	}
	return true;
}

/* The slot where these bytes under the newest policy are, or would go. */
static uint32_t *
find_slot(struct aggregate *g, struct str bytes)
{
	size_t at = first_slot(g, bytes);
	for (; g->slots[at] != 0; at = next_slot(g, at)) {
		const struct aggregate_record *r =
		    &g->records[g->slots[at] - 1];
		if (str_eq(r->bytes, bytes) &&
		    is_same_policy(r->policy, g->policy))
			break;
	}
	return &g->slots[at];
}

static bool
keep_record(struct aggregate *g, struct str bytes)
{
	if (g->count == AGGREGATE_MAX_RECORDS ||
	    (g->count == g->room && !set_room(g, 2 * g->room)))
		return false;
	struct str copy = arena_dup(g->arena, bytes);
	if (copy.ptr == NULL)
		return false;
	g->records[g->count] = (struct aggregate_record){ 1, copy, g->policy };
	*find_slot(g, bytes) = (uint32_t)g->count + 1;
	g->count++;
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
	else if (!keep_record(g, bytes))
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
