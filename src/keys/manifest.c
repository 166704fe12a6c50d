#include "keys/manifest.h"

#include <stdatomic.h>
#include <stdlib.h>

struct manifest {
	atomic_uint refs;
	struct arena *arena;
	struct signing_key *keys;
	size_t count;
};

static int
compare(const void *va, const void *vb)
{
	const struct signing_key *a = va, *b = vb;
	int order = str_cmp(a->domain, b->domain);
	if (order == 0)
		order = (int)a->type - (int)b->type;
	if (order == 0)
		order = str_cmp(a->selector, b->selector);
	return order;
}

enum res
manifest_new(struct arena **arena, struct signing_key *keys, size_t count,
    struct manifest **out)
{
	struct manifest *m = calloc(1, sizeof *m);
	if (m == NULL)
		return RES_NOMEM;
	if (count > 0)
		qsort(keys, count, sizeof *keys, compare);
	atomic_init(&m->refs, 1);
	m->arena = *arena;
	m->keys = keys;
	m->count = count;
	*arena = NULL;
	*out = m;
	return RES_OK;
}

struct manifest *
manifest_ref(struct manifest *m)
{
	atomic_fetch_add_explicit(&m->refs, 1, memory_order_relaxed);
	return m;
}

void
manifest_unref(struct manifest **mp)
{
	struct manifest *m = *mp;
	*mp = NULL;
	if (m == NULL ||
	    atomic_fetch_sub_explicit(&m->refs, 1, memory_order_acq_rel) != 1)
		return;
	arena_free(&m->arena);
	free(m);
}

const struct signing_key *
manifest_find(const struct manifest *m, struct str domain, size_t *out_count)
{
	size_t low = 0, high = m->count, end;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (str_cmp(m->keys[middle].domain, domain) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	for (end = low; end < m->count; end++)
		if (!str_eq(m->keys[end].domain, domain))
			break;
	*out_count = end - low;
	return end > low ? &m->keys[low] : NULL;
}

size_t
manifest_count(const struct manifest *m)
{
	return m->count;
}

const struct signing_key *
manifest_at(const struct manifest *m, size_t i)
{
	return i < m->count ? &m->keys[i] : NULL;
}

const struct signing_key *
manifest_same(const struct manifest *m, const struct signing_key *key)
{
	size_t count;
	const struct signing_key *k = manifest_find(m, key->domain, &count);
	for (size_t i = 0; i < count; i++)
		if (k[i].type == key->type &&
		    str_eq(k[i].selector, key->selector) &&
		    str_eq(k[i].public_der, key->public_der))
			return &k[i];
	return NULL;
}

bool
signing_key_weak(const struct signing_key *k)
{
	return k->type == KEY_RSA && k->bits < SIGNER_MIN_RSA_BITS;
}

bool
signer_note_ok(struct str text)
{
	char last = '\n';
	if (text.len < 2 || text.len > SIGNER_MAX_NOTE ||
	    text.ptr[text.len - 1] != '\n')
		return false;
	for (size_t i = 0; i < text.len; i++) {
		char c = text.ptr[i];
		if (c == '\n' ? last == '\n' : c < ' ' || c > '~')
			return false;
		last = c;
	}
	return true;
}

void
signer_free(struct signer **s)
{
	if (*s != NULL)
		(*s)->free(*s);
	*s = NULL;
}
