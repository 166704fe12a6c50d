#include "auth/key_record.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/codec.h"
#include "base/hash.h"
#include "mail/taglist.h"

#define MAX_KEY_BYTES                                                          \
	8192 /* more than any p= within KEY_RECORD_MAX_TEXT needs */

/* --- parsing -------------------------------------------------------------- */
static void
refuse(struct key_record *r, enum key_record_state state, const char *hint)
{
	static const char *const reasons[] = {
		[KEY_RECORD_OK] = NULL,
		[KEY_RECORD_SYNTAX] = "key syntax error",
		[KEY_RECORD_REVOKED] = "key revoked",
		[KEY_RECORD_INAPPROPRIATE] = "inappropriate key",
		[KEY_RECORD_UNUSABLE] = "unusable key",
	};
	r->state = state;
	r->reason = reasons[state];
	r->hint = hint;
}

/* Whether the colon list holds `word`; blanks around items do not count. */
static bool
list_has(struct str list, const char *word)
{
	struct str item;
	while (str_split(&list, ':', &item))
		if (str_eq(str_trim(item), str_c(word)))
			return true;
	return false;
}

/* The common mistake of publishing a SubjectPublicKeyInfo for Ed25519
 * (KEY-06): its fixed head, then the 32 bytes. */
static bool
is_ed25519_spki(struct str der)
{
	static const char head[] = "\x30\x2a\x30\x05\x06\x03\x2b\x65\x70\x03"
				   "\x21\x00";
	return der.len == sizeof head - 1 + 32 &&
	    str_starts(der, str_of(head, sizeof head - 1));
}

static enum res
read_key(struct key_record *r, struct str der)
{
	enum res res = r->type == KEY_RSA ? pubkey_from_rsa(der, &r->key)
					  : pubkey_from_ed25519(der, &r->key);
	switch (res) {
	case RES_OK:
		return RES_OK;
	case RES_LIMIT:
		refuse(r, KEY_RECORD_UNUSABLE, "modulus or exponent too large");
		return RES_OK;
	case RES_INVALID:
		refuse(r, KEY_RECORD_UNUSABLE, "exponent even or below 3");
		return RES_OK;
	case RES_SYNTAX:
		refuse(r, KEY_RECORD_SYNTAX,
		    r->type == KEY_RSA ? "p= holds no RSA public key"
			: is_ed25519_spki(der)
			? "p= holds a SubjectPublicKeyInfo "
			  "where the raw key belongs"
			: "p= is not 32 bytes long");
		return RES_OK;
	default:
		return RES_NOMEM;
	}
}

/* RFC 6376 §6.1.2 in its order. */
static enum res
judge(struct key_record *r, const struct taglist *tags)
{
	const struct tag *v = taglist_find(tags, "v");
	struct str k = taglist_get(tags, "k"), h = taglist_get(tags, "h");
	struct str s = taglist_get(tags, "s"), t = taglist_get(tags, "t");
	struct str p = taglist_get(tags, "p");
	if (v != NULL && (v != tags->tags || !str_eq(v->value, STR("DKIM1"))))
		refuse(r, KEY_RECORD_SYNTAX, "v= is not first or not DKIM1");
	else if (p.ptr == NULL)
		refuse(r, KEY_RECORD_SYNTAX, "no p=");
	else if (s.ptr != NULL && !list_has(s, "*") && !list_has(s, "email"))
		refuse(r, KEY_RECORD_INAPPROPRIATE, "s= does not allow email");
	else if (h.ptr != NULL && !list_has(h, "sha256"))
		refuse(r, KEY_RECORD_INAPPROPRIATE, "h= does not allow sha256");
	else if (p.len == 0)
		refuse(r, KEY_RECORD_REVOKED, NULL);
	else if (k.ptr != NULL && !str_eq(k, STR("rsa")) &&
	    !str_eq(k, STR("ed25519")))
		refuse(r, KEY_RECORD_INAPPROPRIATE, "unknown k=");
	if (r->state != KEY_RECORD_OK)
		return RES_OK;
	r->type =
	    k.ptr != NULL && str_eq(k, STR("ed25519")) ? KEY_ED25519 : KEY_RSA;
	r->testing = t.ptr != NULL && list_has(t, "y");
	r->strict_identity = t.ptr != NULL && list_has(t, "s");
	struct buf der;
	buf_init(&der, MAX_KEY_BYTES);
	enum res res = base64_decode(p, true, &der);
	if (res == RES_OK)
		res = read_key(r, buf_str(&der));
	else if (res != RES_NOMEM) {
		refuse(r, KEY_RECORD_SYNTAX, "p= is not base64");
		res = RES_OK;
	}
	buf_done(&der);
	return res;
}

/* Some zone editors leave line ends inside a record (KEY-10): to a tag list
 * they are blanks here. */
static struct str
without_line_ends(struct arena *a, struct str text)
{
	if (str_chr(text, '\n') == SIZE_MAX && str_chr(text, '\r') == SIZE_MAX)
		return text;
	struct str copy = arena_dup(a, text);
	char *p = (char *)copy.ptr;
	for (size_t i = 0; i < copy.len; i++)
		if (p[i] == '\n' || p[i] == '\r')
			p[i] = ' ';
	return copy;
}

/* The caller owns the reference in out->key. */
static enum res
parse(struct arena *a, struct str text, struct key_record *out)
{
	struct key_record r = { 0 };
	struct taglist tags;
	if (text.len > KEY_RECORD_MAX_TEXT) {
		refuse(&r, KEY_RECORD_SYNTAX, "the record is too long");
		*out = r;
		return RES_OK;
	}
	text = without_line_ends(a, text);
	if (text.ptr == NULL)
		return RES_NOMEM;
	if (taglist_parse(text, true, &tags) != RES_OK)
		refuse(&r, KEY_RECORD_SYNTAX, "not a tag list");
	else if (judge(&r, &tags) != RES_OK)
		return RES_NOMEM;
	*out = r;
	return RES_OK;
}

static void
release(void *key)
{
	struct pubkey *k = key;
	pubkey_unref(&k);
}

/* Make the arena the owner of the reference in `r`. */
static enum res
give_to_arena(struct arena *a, struct key_record *r)
{
	if (r->key == NULL || arena_on_free(a, release, r->key) == RES_OK)
		return RES_OK;
	pubkey_unref(&r->key);
	return RES_NOMEM;
}

enum res
key_record_parse(struct arena *a, struct str text, struct key_record *out)
{
	struct key_record r;
	enum res res = parse(a, text, &r);
	if (res == RES_OK)
		res = give_to_arena(a, &r);
	if (res == RES_OK)
		*out = r;
	return res;
}

/* --- the cache ------------------------------------------------------------
 * SHARDS locks, each over `sets` sets of WAYS places. A text's hash chooses
 * shard and set. */
#define SHARDS 16
#define WAYS   4

struct place {
	char *text; /* NULL: empty */
	size_t len;
	uint64_t hash, used;      /* `used`: the shard's tick of the last hit */
	struct key_record record; /* holds a reference to its key */
};

struct shard {
	pthread_mutex_t lock;
	uint64_t tick, asked, known;
	struct place *places; /* sets * WAYS */
};

struct key_cache {
	size_t sets;
	struct shard shards[SHARDS];
};

struct key_cache *
key_cache_new(size_t entries)
{
	if (entries == 0)
		entries = KEY_CACHE_DEFAULT;
	struct key_cache *c = calloc(1, sizeof *c);
	if (c == NULL)
		return NULL;
	c->sets = (entries + SHARDS * WAYS - 1) / (SHARDS * WAYS);
	for (size_t i = 0; i < SHARDS; i++) {
		struct shard *s = &c->shards[i];
		s->places = calloc(c->sets * WAYS, sizeof *s->places);
		if (s->places == NULL ||
		    pthread_mutex_init(&s->lock, NULL) != 0) {
			free(s->places);
			s->places = NULL;
			key_cache_free(&c);
			return NULL;
		}
	}
	return c;
}

static void
place_clear(struct place *p)
{
	pubkey_unref(&p->record.key);
	free(p->text);
	*p = (struct place){ 0 };
}

void
key_cache_free(struct key_cache **cp)
{
	struct key_cache *c = *cp;
	if (c == NULL)
		return;
	for (size_t i = 0; i < SHARDS && c->shards[i].places != NULL; i++) {
		struct shard *s = &c->shards[i];
		for (size_t p = 0; p < c->sets * WAYS; p++)
			place_clear(&s->places[p]);
		free(s->places);
		pthread_mutex_destroy(&s->lock);
	}
	free(c);
	*cp = NULL;
}

static struct place *
find(const struct key_cache *c, struct shard *s, uint64_t hash, struct str text)
{
	struct place *set = s->places + hash / SHARDS % c->sets * WAYS;
	for (size_t w = 0; w < WAYS; w++)
		if (set[w].text != NULL && set[w].hash == hash &&
		    str_eq(str_of(set[w].text, set[w].len), text))
			return &set[w];
	return NULL;
}

static struct place *
oldest(const struct key_cache *c, struct shard *s, uint64_t hash)
{
	struct place *set = s->places + hash / SHARDS % c->sets * WAYS;
	struct place *old = set;
	for (size_t w = 0; w < WAYS; w++) {
		if (set[w].text == NULL)
			return &set[w];
		if (set[w].used < old->used)
			old = &set[w];
	}
	return old;
}

static bool
look_up(
    struct key_cache *c, uint64_t hash, struct str text, struct key_record *out)
{
	struct shard *s = &c->shards[hash % SHARDS];
	pthread_mutex_lock(&s->lock);
	s->asked++;
	struct place *p = find(c, s, hash, text);
	if (p != NULL) {
		s->known++;
		p->used = ++s->tick;
		*out = p->record;
		if (out->key != NULL)
			pubkey_ref(out->key);
	}
	pthread_mutex_unlock(&s->lock);
	return p != NULL;
}

/* Keep a record; without memory it is just not kept. */
static void
keep(struct key_cache *c, uint64_t hash, struct str text,
    const struct key_record *r)
{
	struct shard *s = &c->shards[hash % SHARDS];
	char *copy = malloc(text.len + 1);
	if (copy == NULL)
		return;
	if (text.len != 0)
		memcpy(copy, text.ptr, text.len);
	pthread_mutex_lock(&s->lock);
	if (find(c, s, hash, text) == NULL) {
		struct place *p = oldest(c, s, hash);
		place_clear(p);
		*p = (struct place){ copy, text.len, hash, ++s->tick, *r };
		if (r->key != NULL)
			pubkey_ref(r->key);
		copy = NULL;
	}
	pthread_mutex_unlock(&s->lock);
	free(copy);
}

enum res
key_cache_get(struct key_cache *c, struct arena *a, struct str text,
    struct key_record *out)
{
	if (c == NULL || text.len > KEY_CACHE_MAX_TEXT)
		return key_record_parse(a, text, out);
	struct key_record r;
	uint64_t hash = hash_bytes(text);
	if (!look_up(c, hash, text, &r)) {
		enum res res = parse(a, text, &r);
		if (res != RES_OK)
			return res;
		keep(c, hash, text, &r);
	}
	enum res res = give_to_arena(a, &r);
	if (res == RES_OK)
		*out = r;
	return res;
}

void
key_cache_counts(struct key_cache *c, uint64_t *out_asked, uint64_t *out_known)
{
	*out_asked = *out_known = 0;
	for (size_t i = 0; i < SHARDS; i++) {
		struct shard *s = &c->shards[i];
		pthread_mutex_lock(&s->lock);
		*out_asked += s->asked;
		*out_known += s->known;
		pthread_mutex_unlock(&s->lock);
	}
}
