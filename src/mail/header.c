#include "mail/header.h"

#include <stdint.h>

#include "base/hash.h"

/* Fields live in chunks that never move, so pointers to them stay good while
 * the header is still being filled; each chunk has twice the room of the one
 * before, so that a small header costs little. Each distinct name has a
 * group; a table (open addressing, linear probing, at most half full) finds
 * it. Fields of one group are linked both ways: no lookup walks over other
 * names. */
#define FIRST_CHUNK 32 /* fields, a power of two */
#define CHUNKS      13
#define FIRST_SLOTS 64
#define NONE        UINT32_MAX

_Static_assert(FIRST_CHUNK *((1u << CHUNKS) - 1) >= HEADER_MAX_FIELDS,
    "room for all fields");

struct entry {
	struct field field; /* first: a field pointer is an entry pointer */
	uint32_t group, above, below; /* entries of the same name, or NONE */
};

struct group {
	uint64_t hash;
	uint32_t first, last, count; /* count 0 = an empty slot */
	uint32_t number;             /* in order of first appearance */
};

struct header {
	struct arena *arena;
	size_t max_bytes, bytes, count;
	bool overflowed;
	struct entry *chunks[CHUNKS];
	struct group *slots;
	size_t slot_count, group_count;
};

struct header *
header_new(struct arena *a, size_t max_bytes)
{
	struct header *h = ARENA_NEW(a, struct header);
	if (h == NULL)
		return NULL;
	h->arena = a;
	h->max_bytes = max_bytes != 0 ? max_bytes : HEADER_DEFAULT_MAX_BYTES;
	h->slots = arena_array(a, FIRST_SLOTS, sizeof *h->slots);
	h->slot_count = FIRST_SLOTS;
	return h->slots != NULL ? h : NULL;
}

/* Chunk `c` begins with field FIRST_CHUNK * (2^c - 1). */
static unsigned
chunk_of(size_t i)
{
	return 63 - (unsigned)__builtin_clzll(i / FIRST_CHUNK + 1);
}

static struct entry *
entry_at(const struct header *h, size_t i)
{
	unsigned c = chunk_of(i);
	return &h->chunks[c][i + FIRST_CHUNK - ((size_t)FIRST_CHUNK << c)];
}

/* The slot of `name`: its group, or the empty one where it belongs. */
static struct group *
find_group(const struct header *h, struct str name, uint64_t hash)
{
	size_t mask = h->slot_count - 1;
	for (size_t i = hash & mask;; i = (i + 1) & mask) {
		struct group *g = &h->slots[i];
		if (g->count == 0)
			return g;
		if (g->hash == hash &&
		    str_case_eq(entry_at(h, g->first)->field.name, name))
			return g;
	}
}

static enum res
grow_slots(struct header *h)
{
	size_t count = h->slot_count * 2;
	struct group *slots = arena_array(h->arena, count, sizeof *slots);
	if (slots == NULL)
		return RES_NOMEM;
	for (size_t i = 0; i < h->slot_count; i++) {
		if (h->slots[i].count == 0)
			continue;
		size_t at = h->slots[i].hash & (count - 1);
		while (slots[at].count != 0)
			at = (at + 1) & (count - 1);
		slots[at] = h->slots[i];
	}
	h->slots = slots;
	h->slot_count = count;
	return RES_OK;
}

/* A bare LF is a fold of the milter's when a blank follows. */
static bool
is_milter_fold(struct str v, size_t i)
{
	return v.ptr[i] == '\n' && (i == 0 || v.ptr[i - 1] != '\r') &&
	    i + 1 < v.len && ascii_is_wsp(v.ptr[i + 1]);
}

static size_t
count_folds(struct str v)
{
	size_t n = 0;
	for (size_t i = 0, at; i < v.len; i += at + 1) {
		at = str_chr(str_skip(v, i), '\n');
		if (at == SIZE_MAX)
			break;
		n += is_milter_fold(v, i + at);
	}
	return n;
}

static char *
copy_bytes(char *to, const char *from, size_t len)
{
	if (len != 0)
		memcpy(to, from, len);
	return to + len;
}

static void
copy_value(char *to, struct str v, size_t folds)
{
	size_t from = 0;
	for (size_t i = 0; folds > 0; i++) {
		i += str_chr(str_skip(v, i), '\n');
		if (!is_milter_fold(v, i))
			continue;
		to = copy_bytes(to, v.ptr + from, i - from);
		*to++ = '\r';
		from = i;
		folds--;
	}
	copy_bytes(to, v.ptr + from, v.len - from);
}

static void
link_entry(struct header *h, struct entry *e, struct group *g, uint64_t hash)
{
	uint32_t i = (uint32_t)h->count;
	if (g->count == 0) {
		g->hash = hash;
		g->first = i;
		g->number = (uint32_t)h->group_count++;
		e->above = NONE;
	} else {
		entry_at(h, g->last)->below = i;
		e->above = g->last;
	}
	g->last = i;
	e->below = NONE;
	e->group = g->number;
	e->field.index = i;
	e->field.occurrence = ++g->count;
	h->count++;
}

static enum res
add(struct header *h, struct str raw_name, struct str value, size_t folds)
{
	size_t room = h->max_bytes - h->bytes;
	if (h->count >= HEADER_MAX_FIELDS || raw_name.len > room ||
	    value.len > room - raw_name.len ||
	    folds + 4 > room - raw_name.len - value.len)
		return RES_LIMIT;
	unsigned c = chunk_of(h->count);
	struct entry **chunk = &h->chunks[c];
	if (*chunk == NULL)
		*chunk = arena_alloc_raw(
		    h->arena, ((size_t)FIRST_CHUNK << c) * sizeof **chunk);
	size_t value_len = value.len + folds;
	char *text = arena_alloc_raw(h->arena, raw_name.len + value_len);
	if (*chunk == NULL || text == NULL)
		return RES_NOMEM;
	if (h->group_count >= h->slot_count / 2 && grow_slots(h) != RES_OK)
		return RES_NOMEM;

	copy_value(copy_bytes(text, raw_name.ptr, raw_name.len), value, folds);
	struct entry *e = entry_at(h, h->count);
	struct field *f = &e->field;
	f->raw_name = str_of(text, raw_name.len);
	f->name = f->raw_name;
	while (f->name.len > 0 && ascii_is_wsp(f->name.ptr[f->name.len - 1]))
		f->name.len--;
	f->value = str_of(text + raw_name.len, value_len);
	uint64_t hash = hash_lower(f->name);
	link_entry(h, e, find_group(h, f->name, hash), hash);
	h->bytes += raw_name.len + value_len + 4;
	return RES_OK;
}

enum res
header_add(struct header *h, struct str name, struct str value)
{
	enum res r = add(h, name, value, count_folds(value));
	if (r != RES_OK)
		h->overflowed = true;
	return r;
}

enum res
header_add_exact(struct header *h, struct str name, struct str value)
{
	enum res r = add(h, name, value, 0);
	if (r != RES_OK)
		h->overflowed = true;
	return r;
}

bool
header_overflowed(const struct header *h)
{
	return h->overflowed;
}

size_t
header_count(const struct header *h)
{
	return h->count;
}

size_t
header_bytes(const struct header *h)
{
	return h->bytes;
}

size_t
header_room(const struct header *h)
{
	return h->max_bytes - h->bytes;
}

const struct field *
header_at(const struct header *h, size_t index)
{
	return index < h->count ? &entry_at(h, index)->field : NULL;
}

static const struct field *
field_or_null(const struct header *h, uint32_t i)
{
	return i != NONE ? &entry_at(h, i)->field : NULL;
}

static const struct group *
group_of(const struct header *h, struct str name)
{
	const struct group *g = find_group(h, name, hash_lower(name));
	return g->count != 0 ? g : NULL;
}

const struct field *
header_find(const struct header *h, struct str name)
{
	const struct group *g = group_of(h, name);
	return g != NULL ? field_or_null(h, g->first) : NULL;
}

const struct field *
header_find_last(const struct header *h, struct str name)
{
	const struct group *g = group_of(h, name);
	return g != NULL ? field_or_null(h, g->last) : NULL;
}

size_t
header_count_name(const struct header *h, struct str name)
{
	const struct group *g = group_of(h, name);
	return g != NULL ? g->count : 0;
}

const struct field *
header_next_same(const struct header *h, const struct field *f)
{
	return field_or_null(h, ((const struct entry *)f)->below);
}

const struct field *
header_prev_same(const struct header *h, const struct field *f)
{
	return field_or_null(h, ((const struct entry *)f)->above);
}

struct str
header_unfold(struct arena *a, struct str value)
{
	value = str_trim(value);
	if (str_chr(value, '\r') == SIZE_MAX)
		return value.ptr != NULL ? value : str_c("");
	char *p = arena_alloc(a, value.len);
	if (p == NULL)
		return STR_EMPTY;
	size_t n = 0;
	for (size_t i = 0; i < value.len; i++) {
		if (i + 2 < value.len && value.ptr[i] == '\r' &&
		    value.ptr[i + 1] == '\n' && ascii_is_wsp(value.ptr[i + 2]))
			i++;
		else
			p[n++] = value.ptr[i];
	}
	return str_of(p, n);
}

bool
header_name_valid(struct str name)
{
	for (size_t i = 0; i < name.len; i++)
		if (name.ptr[i] < 33 || name.ptr[i] > 126 || name.ptr[i] == ':')
			return false;
	return name.len != 0;
}

/* --- picking bottom-up ---------------------------------------------------
 * Per name that was asked for: the entry to give next. A table of its own,
 * sized by the names of one h= tag and not by the header, because many
 * signatures may want a picker over one huge header. */
struct cursor {
	uint32_t group; /* + 1; 0 = an empty slot */
	uint32_t next;  /* entry, or NONE when all are taken */
};

struct header_pick {
	struct arena *arena;
	const struct header *header;
	struct cursor *slots;
	size_t slot_count, used;
};

#define FIRST_CURSORS 64

struct header_pick *
header_pick_new(struct arena *a, const struct header *h)
{
	struct header_pick *p = ARENA_NEW(a, struct header_pick);
	struct cursor *slots = arena_array(a, FIRST_CURSORS, sizeof *slots);
	if (p == NULL || slots == NULL)
		return NULL;
	*p = (struct header_pick){ a, h, slots, FIRST_CURSORS, 0 };
	return p;
}

/* Groups are numbered in order of appearance; a multiplicative step spreads
 * them. No stranger chooses the numbers. */
static struct cursor *
find_cursor(struct cursor *slots, size_t slot_count, uint32_t group)
{
	size_t i = (group * UINT32_C(2654435769)) & (slot_count - 1);
	while (slots[i].group != 0 && slots[i].group != group + 1)
		i = (i + 1) & (slot_count - 1);
	return &slots[i];
}

static enum res
grow_cursors(struct header_pick *p)
{
	size_t count = p->slot_count * 2;
	struct cursor *slots = arena_array(p->arena, count, sizeof *slots);
	if (slots == NULL)
		return RES_NOMEM;
	for (size_t i = 0; i < p->slot_count; i++)
		if (p->slots[i].group != 0)
			*find_cursor(slots, count, p->slots[i].group - 1) =
			    p->slots[i];
	p->slots = slots;
	p->slot_count = count;
	return RES_OK;
}

enum res
header_pick_take(
    struct header_pick *p, struct str name, const struct field **out_field)
{
	const struct group *g = group_of(p->header, name);
	if (g == NULL)
		return RES_NOTFOUND;
	if (p->used >= p->slot_count / 2 && grow_cursors(p) != RES_OK)
		return RES_NOMEM;
	struct cursor *c = find_cursor(p->slots, p->slot_count, g->number);
	if (c->group == 0) {
		*c = (struct cursor){ g->number + 1, g->last };
		p->used++;
	}
	if (c->next == NONE)
		return RES_NOTFOUND;
	const struct entry *e = entry_at(p->header, c->next);
	c->next = e->above;
	*out_field = &e->field;
	return RES_OK;
}
