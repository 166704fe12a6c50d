#include "archive/store/dedupe.h"

#include <stdlib.h>

#include "base/codec.h"

/* Entries are named by their place + 1, so that a table of zeros is empty:
 * its pages are touched as it fills. */
#define NONE 0

struct entry {
	uint64_t key, offset;
	uint32_t next; /* in its chain */
};

struct dedupe {
	uint32_t used, oldest;
	uint32_t heads[DEDUPE_MAX];
	struct entry entries[DEDUPE_MAX]; /* a ring */
};

struct dedupe *
dedupe_new(void)
{
	return calloc(1, sizeof(struct dedupe));
}

void
dedupe_free(struct dedupe **d)
{
	free(*d);
	*d = NULL;
}

/* SHA-256 is its own hash function, but its senders choose the bytes: a
 * chain made long on purpose costs them 2^16 tries an entry. */
static uint32_t *
head_of(const struct dedupe *d, uint64_t key)
{
	return (uint32_t *)&d->heads[key % DEDUPE_MAX];
}

uint64_t
dedupe_find(const struct dedupe *d, const uint8_t sha256[32])
{
	uint64_t key = get_le64(sha256);
	for (uint32_t n = *head_of(d, key); n != NONE;) {
		const struct entry *e = &d->entries[n - 1];
		if (e->key == key)
			return e->offset;
		n = e->next;
	}
	return 0;
}

static void
unlink_entry(struct dedupe *d, uint32_t i)
{
	uint32_t *at = head_of(d, d->entries[i].key);
	while (*at != i + 1)
		at = &d->entries[*at - 1].next;
	*at = d->entries[i].next;
}

void
dedupe_add(struct dedupe *d, const uint8_t sha256[32], uint64_t offset)
{
	uint32_t i = (d->oldest + d->used) % DEDUPE_MAX;
	if (d->used == DEDUPE_MAX) {
		unlink_entry(d, d->oldest);
		d->oldest = (d->oldest + 1) % DEDUPE_MAX;
		d->used--;
	}
	uint64_t key = get_le64(sha256);
	d->entries[i] = (struct entry){ key, offset, *head_of(d, key) };
	*head_of(d, key) = i + 1;
	d->used++;
}

void
dedupe_cut(struct dedupe *d, uint64_t offset)
{
	while (d->used > 0) {
		uint32_t i = (d->oldest + d->used - 1) % DEDUPE_MAX;
		if (d->entries[i].offset < offset)
			return;
		unlink_entry(d, i);
		d->used--;
	}
}
