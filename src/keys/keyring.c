#include "keys/keyring.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "keys/manifest.h"

#define MAX_PUBLIC ((size_t)4 << 10) /* of 8192 bits: 1,062 bytes */
#define MAX_ARENA  ((size_t)1 << 30) /* 100,000 keys need some 60 MB */

/* One key set; a reload replaces it, running requests hold on to theirs. */
struct keyset {
	atomic_uint refs;
	uint32_t generation;
	struct manifest *manifest;
	struct private {
		struct privkey *key;
		bool notes;
	} *keys; /* by signing_key.id */
	size_t count;
};

struct keyring {
	struct signer signer;
	pthread_mutex_t lock; /* guards `set`, held for a pointer copy */
	struct keyset *set;
};

static void
keyset_unref(struct keyset **sp)
{
	struct keyset *s = *sp;
	*sp = NULL;
	if (s == NULL ||
	    atomic_fetch_sub_explicit(&s->refs, 1, memory_order_acq_rel) != 1)
		return;
	for (size_t i = 0; i < s->count; i++)
		privkey_free(&s->keys[i].key);
	free(s->keys);
	manifest_unref(&s->manifest);
	free(s);
}

static struct keyset *
keyset_new(uint32_t generation, size_t max_keys)
{
	struct keyset *s = calloc(1, sizeof *s);
	if (s == NULL)
		return NULL;
	atomic_init(&s->refs, 1);
	s->generation = generation;
	s->keys = calloc(max_keys + 1, sizeof *s->keys);
	if (s->keys == NULL)
		keyset_unref(&s);
	return s;
}

static enum res
describe(struct arena *a, const struct privkey *k, struct signing_key *out)
{
	struct buf public;
	buf_init(&public, MAX_PUBLIC);
	enum res r = privkey_public(k, &public);
	if (r == RES_OK) {
		out->public_der = arena_dup(a, buf_str(&public));
		if (out->public_der.ptr == NULL)
			r = RES_NOMEM;
	}
	buf_done(&public);
	out->type = privkey_type(k);
	out->bits = privkey_bits(k);
	return r;
}

/* Name and add one key; takes it over when RES_OK. */
static enum res
keyset_add(struct keyset *s, struct arena *a, struct signing_key *list,
    struct str domain, struct str selector, bool notes, struct privkey **key)
{
	struct signing_key *k = &list[s->count];
	*k = (struct signing_key){ .domain = arena_dup(a, domain),
		.selector = arena_dup(a, selector),
		.notes = notes,
		.id = (uint32_t)s->count,
		.generation = s->generation };
	if (k->domain.ptr == NULL || k->selector.ptr == NULL)
		return RES_NOMEM;
	enum res r = describe(a, *key, k);
	if (r != RES_OK)
		return r;
	s->keys[s->count++] = (struct private){ *key, notes };
	*key = NULL;
	return RES_OK;
}

static enum res
load(const struct keydir *d, uint32_t generation, struct err *err,
    struct keyset **out)
{
	enum res r = RES_NOMEM;
	struct arena *a = arena_new(MAX_ARENA);
	struct keyset *s = keyset_new(generation, d->count);
	struct signing_key *list =
	    a != NULL ? arena_array(a, d->count + 1, sizeof *list) : NULL;
	if (s == NULL || list == NULL)
		goto out;
	r = RES_OK;
	for (size_t i = 0; i < d->count && r == RES_OK; i++) {
		const struct keyfile *f = &d->files[i];
		struct privkey *key = NULL;
		if (f->state != KEY_STATE_ACTIVE)
			continue;
		r = keyfile_load(f, err, &key);
		if (r == RES_OK)
			r = keyset_add(s, a, list, f->domain, f->selector,
			    f->notes, &key);
		if (r == RES_OK)
			list[s->count - 1].by_rule = f->by_rule;
		privkey_free(&key);
	}
	if (r == RES_OK)
		r = manifest_new(&a, list, s->count, &s->manifest);
	if (r == RES_OK) {
		*out = s;
		s = NULL;
	}
out:
	if (r != RES_OK)
		err_set(err, "cannot load the keys: %s", res_text(r));
	keyset_unref(&s);
	arena_free(&a);
	return r;
}

static struct keyset *
current(struct keyring *ring)
{
	pthread_mutex_lock(&ring->lock);
	struct keyset *s = ring->set;
	atomic_fetch_add_explicit(&s->refs, 1, memory_order_relaxed);
	pthread_mutex_unlock(&ring->lock);
	return s;
}

static struct manifest *
keyring_manifest(struct signer *signer)
{
	struct keyset *s = current((struct keyring *)signer);
	struct manifest *m = manifest_ref(s->manifest);
	keyset_unref(&s);
	return m;
}

/* The private half, for this kind of work; NULL: not there. */
static const struct privkey *
find(const struct keyset *s, const struct signing_key *key, bool notes)
{
	if (key->generation != s->generation)
		key = manifest_same(s->manifest, key);
	if (key == NULL || key->id >= s->count ||
	    s->keys[key->id].notes != notes)
		return NULL;
	return s->keys[key->id].key;
}

static enum res
keyring_sign(struct signer *signer, const struct signing_key *key,
    const uint8_t digest[32], struct buf *out)
{
	struct keyset *s = current((struct keyring *)signer);
	const struct privkey *k = find(s, key, false);
	enum res r = k != NULL ? privkey_sign(k, digest, out) : RES_NOTFOUND;
	keyset_unref(&s);
	return r;
}

static enum res
keyring_sign_note(struct signer *signer, const struct signing_key *key,
    struct str text, struct buf *out)
{
	if (!signer_note_ok(text))
		return RES_INVALID;
	struct keyset *s = current((struct keyring *)signer);
	const struct privkey *k = find(s, key, true);
	enum res r = k != NULL ? privkey_sign_text(k, text, out) : RES_NOTFOUND;
	keyset_unref(&s);
	return r;
}

static void
keyring_free(struct signer *signer)
{
	struct keyring *ring = (struct keyring *)signer;
	keyset_unref(&ring->set);
	pthread_mutex_destroy(&ring->lock);
	free(ring);
}

/* Takes over `*set` in any case. */
static enum res
keyring_new(struct keyset **set, struct signer **out)
{
	struct keyring *ring = calloc(1, sizeof *ring);
	if (ring == NULL) {
		keyset_unref(set);
		return RES_NOMEM;
	}
	ring->signer = (struct signer){ keyring_manifest, keyring_sign,
		keyring_sign_note, keyring_free };
	pthread_mutex_init(&ring->lock, NULL);
	ring->set = *set;
	*set = NULL;
	*out = &ring->signer;
	return RES_OK;
}

enum res
keyring_from_keydir(
    const struct keydir *d, struct err *err, struct signer **out)
{
	struct keyset *set;
	enum res r = load(d, 1, err, &set);
	return r == RES_OK ? keyring_new(&set, out) : r;
}

enum res
keyring_single(struct str domain, struct str selector, struct privkey **key,
    struct signer **out)
{
	enum res r = RES_NOMEM;
	struct arena *a = arena_new(0);
	struct keyset *s = keyset_new(1, 1);
	struct signing_key *list =
	    a != NULL ? arena_array(a, 1, sizeof *list) : NULL;
	struct privkey *k = *key;
	*key = NULL;
	if (s != NULL && list != NULL)
		r = keyset_add(s, a, list, domain, selector, false, &k);
	if (r == RES_OK)
		r = manifest_new(&a, list, 1, &s->manifest);
	if (r == RES_OK)
		r = keyring_new(&s, out);
	privkey_free(&k);
	keyset_unref(&s);
	arena_free(&a);
	return r;
}

enum res
keyring_reload(struct signer *signer, const struct keydir *d, struct err *err)
{
	struct keyring *ring = (struct keyring *)signer;
	struct keyset *set;
	/* one thread reloads: nobody else changes the generation */
	enum res r = load(d, ring->set->generation + 1, err, &set);
	if (r != RES_OK)
		return r;
	pthread_mutex_lock(&ring->lock);
	struct keyset *old = ring->set;
	ring->set = set;
	pthread_mutex_unlock(&ring->lock);
	keyset_unref(&old);
	return RES_OK;
}
