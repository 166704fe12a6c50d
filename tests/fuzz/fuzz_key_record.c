/* A TXT record as DKIM key: the parser, the DER walk, the cache. Whatever is
 * accepted must be a key within bounds; the cache must say the same. */
#include <stdlib.h>

#include "auth/key_record.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
check(const struct key_record *k)
{
	bool good = k->state == KEY_RECORD_OK;
	if (good != (k->key != NULL) || good != (k->reason == NULL))
		abort();
	if (good &&
	    (pubkey_type(k->key) != k->type ||
		pubkey_bits(k->key) > PUBKEY_MAX_RSA_BITS))
		abort();
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str text = str_of(data, size);
	struct arena *a = arena_new(0);
	struct key_cache *c = key_cache_new(1);
	struct key_record first, again;
	if (a == NULL || c == NULL ||
	    key_record_parse(a, text, &first) != RES_OK)
		abort();
	check(&first);
	for (int i = 0; i < 2; i++) {
		if (key_cache_get(c, a, text, &again) != RES_OK ||
		    again.state != first.state || again.type != first.type ||
		    again.testing != first.testing)
			abort();
		check(&again);
	}
	if (first.key != NULL) {
		uint8_t digest[32] = { 0 };
		bool fits;
		if (pubkey_verify(first.key, digest, text, &fits) != RES_OK)
			abort();
		/* Nobody signed that. */
		if (fits)
			abort();
		(void)!pubkey_recover(first.key, text, digest);
	}
	key_cache_free(&c);
	arena_free(&a);
	return 0;
}
