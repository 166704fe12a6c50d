#include "archive/keeping/intents.h"

#include "archive/keeping/audit.h"
#include "base/codec.h"

void
intents_init(
    struct intents *i, const struct shard_entry *entries, size_t count)
{
	*i = (struct intents){ .entries = entries, .count = count };
}

void
intents_done(struct intents *i)
{
	arena_free(&i->arena);
	i->id = 0;
}

static enum res
load(struct intents *i, const char *dir, uint64_t number)
{
	struct segment_reader *r = NULL;
	struct segment_frame f;
	struct segment_content c;
	enum res res = segment_reader_open(dir, NULL, NULL, &r);
	if (res == RES_OK)
		res = segment_reader_find(r, number, &f);
	if (res == RES_OK && f.header.type != FRAME_TOMBSTONE)
		res = RES_NOTFOUND;
	if (res == RES_OK)
		res = segment_reader_load(r, i->arena, &f, NULL, &c);
	if (res == RES_OK)
		i->meta = c.meta;
	segment_reader_close(&r);
	return res;
}

static enum res
open_intent(struct intents *i, uint64_t id)
{
	enum res r = RES_NOTFOUND;
	if (i->id == id && i->arena != NULL)
		return RES_OK;
	intents_done(i);
	i->arena = arena_new(0);
	if (i->arena == NULL)
		return RES_NOMEM;
	for (size_t n = 0; n < i->count; n++)
		if (i->entries[n].status == RES_OK &&
		    strcmp(i->entries[n].family, "audit") == 0 &&
		    i->entries[n].header.number == id >> 32)
			r = load(i, i->entries[n].dir, id & UINT32_MAX);
	if (r == RES_OK)
		i->id = id;
	else
		intents_done(i);
	return r;
}

enum res
intents_find(
    struct intents *i, uint64_t id, const struct frame_header *frame)
{
	struct record_reader records;
	uint8_t want[8 + LEAF_HASH_BYTES];
	unsigned tag;
	struct str value;
	enum res r = open_intent(i, id);
	if (r == RES_OK)
		r = record_open(i->meta, &records);
	if (r != RES_OK)
		return r;
	put_le64(want, frame->number);
	memcpy(want + 8, frame->leaf, LEAF_HASH_BYTES);
	while (record_next(&records, &tag, &value))
		if (tag == EVENT_LEAF &&
		    str_eq(value, str_of(want, sizeof want)))
			return RES_OK;
	return RES_NOTFOUND;
}
