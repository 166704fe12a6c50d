#include "keys/lack.h"

#include <openssl/crypto.h>
#include <stdatomic.h>
#include <stdlib.h>

static _Thread_local bool lacked;
static atomic_bool ever;

static void
lack(void)
{
	lacked = true;
	atomic_store(&ever, true);
}

static void *
watched_malloc(size_t size, const char *file, int line)
{
	(void)file;
	(void)line;
	void *p = size > 0 ? malloc(size) : NULL;
	if (p == NULL && size > 0)
		lack();
	return p;
}

static void
watched_free(void *p, const char *file, int line)
{
	(void)file;
	(void)line;
	free(p);
}

/* As CRYPTO_realloc: of no bytes it frees. */
static void *
watched_realloc(void *old, size_t size, const char *file, int line)
{
	if (size == 0) {
		watched_free(old, file, line);
		return NULL;
	}
	void *p = realloc(old, size);
	if (p == NULL)
		lack();
	return p;
}

/* Only possible before libcrypto has allocated anything. */
__attribute__((constructor)) static void
watch(void)
{
	(void)CRYPTO_set_mem_functions(
	    watched_malloc, watched_realloc, watched_free);
}

void
lack_begin(void)
{
	lacked = false;
}

bool
lack_seen(void)
{
	return lacked;
}

bool
lack_ever(void)
{
	return atomic_load(&ever);
}
