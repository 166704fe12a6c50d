#include "base/arena.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* The sizes of blocks, one after the other: next to nothing for a session, all
 * that a usual message needs in the third. Larger requests get a block of
 * their own behind the current one, so that its free rest is not lost. */
static const size_t sizes[] = { 320, 4096, 65536 };
#define LAST_SIZE (sizeof sizes / sizeof *sizes - 1)
#define ALIGNMENT 16

struct block {
	struct block *next;
	size_t size, used;
	_Alignas(ALIGNMENT) unsigned char bytes[];
};

struct cleanup {
	struct cleanup *next;
	void (*fn)(void *);
	void *arg;
};

struct arena {
	struct block *blocks; /* the one allocated from is first */
	struct cleanup *cleanups;
	size_t max, used;
	unsigned next; /* of `sizes` */
};

/* Each thread keeps one large block for its next arena: message after message
 * it is the same warm memory. Not under a sanitizer, which is to see it
 * freed. */
#if defined(__SANITIZE_ADDRESS__)
#define KEEP_SPARE false
#elif defined(__has_feature)
#define KEEP_SPARE !__has_feature(address_sanitizer)
#else
#define KEEP_SPARE true
#endif
static pthread_once_t spare_once = PTHREAD_ONCE_INIT;
static pthread_key_t spare_key;
static bool have_key;

static void
make_key(void)
{
	have_key = KEEP_SPARE && pthread_key_create(&spare_key, free) == 0;
}

static struct block *
block_new(size_t room)
{
	struct block *b = NULL;
	pthread_once(&spare_once, make_key);
	if (have_key && room == sizes[LAST_SIZE])
		b = pthread_getspecific(spare_key);
	if (b != NULL) {
		pthread_setspecific(spare_key, NULL);
		return b;
	}
	b = malloc(sizeof *b + room);
	if (b != NULL)
		b->size = room;
	return b;
}

static void
block_free(struct block *b)
{
	if (!have_key || b->size != sizes[LAST_SIZE] ||
	    pthread_getspecific(spare_key) != NULL ||
	    pthread_setspecific(spare_key, b) != 0)
		free(b);
}

struct arena *
arena_new(size_t max_bytes)
{
	struct arena *a = calloc(1, sizeof *a);
	if (a == NULL)
		return NULL;
	a->max = max_bytes != 0 ? max_bytes : ARENA_DEFAULT_MAX;
	return a;
}

void
arena_free(struct arena **ap)
{
	struct arena *a = *ap;
	if (a == NULL)
		return;
	for (struct cleanup *c = a->cleanups; c != NULL; c = c->next)
		c->fn(c->arg);
	struct block *b = a->blocks;
	while (b != NULL) {
		struct block *next = b->next;
		block_free(b);
		b = next;
	}
	free(a);
	*ap = NULL;
}

static struct block *
add_block(struct arena *a, size_t size)
{
	while (size > sizes[a->next] / 2 && a->next < LAST_SIZE)
		a->next++;
	bool own = size > sizes[a->next] / 2;
	struct block *b = block_new(own ? size : sizes[a->next]);
	if (b == NULL)
		return NULL;
	b->used = 0;
	if (own && a->blocks != NULL) {
		b->next = a->blocks->next;
		a->blocks->next = b;
	} else {
		b->next = a->blocks;
		a->blocks = b;
	}
	if (!own && a->next < LAST_SIZE)
		a->next++;
	return b;
}

void *
arena_alloc_raw(struct arena *a, size_t size)
{
	if (size > SIZE_MAX - ALIGNMENT)
		return NULL;
	size = (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
	if (size == 0)
		size = ALIGNMENT;
	if (size > a->max - a->used)
		return NULL;
	struct block *b = a->blocks;
	if (b == NULL || size > b->size - b->used)
		b = add_block(a, size);
	if (b == NULL)
		return NULL;
	void *p = b->bytes + b->used;
	b->used += size;
	a->used += size;
	return p;
}

void *
arena_alloc(struct arena *a, size_t size)
{
	void *p = arena_alloc_raw(a, size);
	return p != NULL ? memset(p, 0, size) : NULL;
}

void *
arena_array(struct arena *a, size_t count, size_t size)
{
	size_t total;
	if (__builtin_mul_overflow(count, size, &total))
		return NULL;
	return arena_alloc(a, total);
}

struct str
arena_join(struct arena *a, const struct str *parts, size_t count)
{
	size_t len = 0, at = 0;
	for (size_t i = 0; i < count; i++)
		if (__builtin_add_overflow(len, parts[i].len, &len))
			return STR_EMPTY;
	char *p = len < SIZE_MAX ? arena_alloc_raw(a, len + 1) : NULL;
	if (p == NULL)
		return STR_EMPTY;
	for (size_t i = 0; i < count; i++) {
		if (parts[i].len != 0)
			memcpy(p + at, parts[i].ptr, parts[i].len);
		at += parts[i].len;
	}
	p[len] = '\0';
	return str_of(p, len);
}

struct str
arena_dup(struct arena *a, struct str s)
{
	return arena_join(a, &s, 1);
}

struct str
arena_lower(struct arena *a, struct str s)
{
	struct str copy = arena_dup(a, s);
	char *p = (char *)copy.ptr;
	for (size_t i = 0; i < copy.len; i++)
		p[i] = ascii_lower(p[i]);
	return copy;
}

char *
arena_cstr(struct arena *a, struct str s)
{
	return (char *)arena_dup(a, s).ptr;
}

struct str
arena_printf(struct arena *a, const char *fmt, ...)
{
	char text[256]; /* most fit: printed once */
	va_list ap;
	va_start(ap, fmt);
	int n = vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	if (n < 0)
		return STR_EMPTY;
	size_t len = (size_t)n;
	if (len < sizeof text)
		return arena_dup(a, str_of(text, len));
	char *p = arena_alloc(a, len + 1);
	if (p == NULL)
		return STR_EMPTY;
	va_start(ap, fmt);
	vsnprintf(p, len + 1, fmt, ap);
	va_end(ap);
	return str_of(p, len);
}

enum res
arena_on_free(struct arena *a, void (*fn)(void *), void *arg)
{
	struct cleanup *c = ARENA_NEW(a, struct cleanup);
	if (c == NULL)
		return RES_NOMEM;
	*c = (struct cleanup){ a->cleanups, fn, arg };
	a->cleanups = c;
	return RES_OK;
}

size_t
arena_used(const struct arena *a)
{
	return a->used;
}
