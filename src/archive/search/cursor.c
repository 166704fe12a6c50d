#include "archive/search/cursor.h"

#include <inttypes.h>
#include <stdio.h>

enum res
cursor_parse(struct str text, const struct query *q, struct err *err,
    struct cursor *out)
{
	struct str part[5], one;
	size_t count = 0;
	*out = (struct cursor){ .given = text.len > 0 };
	if (text.len == 0)
		return RES_OK;
	while (count < 5 && str_split(&text, '_', &one))
		part[count++] = one;
	char hash[16];
	snprintf(hash, sizeof hash, "%08" PRIx32, query_hash(q));
	if (count != 5 || text.ptr != NULL || !str_eq(part[0], STR("1")) ||
	    part[1].len > SHARD_MAX_PERIOD ||
	    str_to_u64(part[2], UINT32_MAX, &out->shard) != RES_OK ||
	    str_to_u64(part[3], UINT32_MAX, &out->frame) != RES_OK) {
		err_set(err, "no cursor of a search");
		return RES_INVALID;
	}
	if (!str_eq(part[4], str_c(hash))) {
		err_set(err, "this cursor belongs to another query");
		return RES_INVALID;
	}
	out->period = part[1];
	return RES_OK;
}

struct str
cursor_make(struct arena *a, const struct query *q,
    const struct shard_entry *e, uint64_t frame)
{
	return arena_printf(a, "1_%s_%" PRIu32 "_%" PRIu64 "_%08" PRIx32,
	    e->period, e->header.number, frame, query_hash(q));
}

uint64_t
cursor_below(const struct cursor *c, const struct shard_entry *e)
{
	if (!c->given)
		return UINT64_MAX;
	int by_period = str_cmp(str_c(e->period), c->period);
	if (by_period != 0)
		return by_period < 0 ? UINT64_MAX : 0;
	if (e->header.number != c->shard)
		return e->header.number < c->shard ? UINT64_MAX : 0;
	return c->frame;
}
