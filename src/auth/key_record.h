/* DKIM key records (RFC 6376 §3.6, RFC 8301, RFC 8463), shared by DKIM and
 * ARC, and a cache of parsed ones.
 *
 * The cache goes by record text, so an entry can never be stale: another text
 * is another key. It is cut into shards with a lock each; within a shard a
 * record has a few places it can be in, and the least recently used one makes
 * room. Keys are shared by reference, a hit copies nothing but the struct. */
#ifndef AUTH_KEY_RECORD_H
#define AUTH_KEY_RECORD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/res.h"
#include "base/str.h"
#include "keys/pubkey.h"

enum key_record_state {
	KEY_RECORD_OK,
	KEY_RECORD_SYNTAX,   /* not a key record, p= missing, bad DER … */
	KEY_RECORD_REVOKED,  /* p= empty */
	KEY_RECORD_INAPPROPRIATE, /* unknown k=, s= without email, h= without sha256 */
	KEY_RECORD_UNUSABLE, /* too large, odd exponent */
};

struct key_record {
	enum key_record_state state;
	const char *reason;     /* static text when state is not OK */
	const char *hint;       /* static text: what is wrong with it, or NULL */
	struct pubkey *key;     /* owned by the arena it was parsed into */
	enum key_type type;
	bool testing;           /* t=y */
	bool strict_identity;   /* t=s */
};

#define KEY_RECORD_MAX_TEXT 16384 /* longer ones are KEY_RECORD_SYNTAX */

/* `text`: all strings of one TXT record joined (KEY-01). RES_NOMEM only. */
HN_CHECK enum res key_record_parse(
    struct arena *a, struct str text, struct key_record *out);

#define KEY_CACHE_DEFAULT  4096 /* records */
#define KEY_CACHE_MAX_TEXT 2048 /* longer records are not kept */

struct key_cache;

/* Room for about `entries` records (0 = the default), KEY_CACHE_MAX_TEXT bytes
 * each at most. NULL without memory. Used by many threads. */
struct key_cache *key_cache_new(size_t entries);
void key_cache_free(struct key_cache **c);

/* As key_record_parse, but from the cache when the text is known. `c` may be
 * NULL. RES_NOMEM only. */
HN_CHECK enum res key_cache_get(struct key_cache *c, struct arena *a,
    struct str text, struct key_record *out);
/* How often it was asked, and how often it knew. */
void key_cache_counts(
    struct key_cache *c, uint64_t *out_asked, uint64_t *out_known);

#endif
