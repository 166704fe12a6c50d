/* All memory of one message (or one configuration, one command) in one place:
 * many allocations, one free. Foreign handles register a clean-up when they
 * are made; clean-ups run in reverse order of registration.
 *
 * An arena is used by one thread at a time. It is bounded: past `max_bytes`
 * allocations return NULL, which callers report as RES_NOMEM. */
#ifndef BASE_ARENA_H
#define BASE_ARENA_H

#include <stddef.h>

#include "base/res.h"
#include "base/str.h"

struct arena;

#define ARENA_DEFAULT_MAX ((size_t)64 << 20)

/* A new empty arena, or NULL without memory. max_bytes 0 = the default. */
struct arena *arena_new(size_t max_bytes);

/* Run the clean-ups, free everything, clear the pointer. NULL is fine. */
void arena_free(struct arena **a);

/* Zeroed memory aligned for any type, or NULL at the limit or without
 * memory. size 0 gives a valid pointer. */
void *arena_alloc(struct arena *a, size_t size);
/* The same, not zeroed: for large buffers that are written before they are
 * read. */
void *arena_alloc_raw(struct arena *a, size_t size);
#define ARENA_NEW(a, type) ((type *)arena_alloc((a), sizeof(type)))

/* `count` zeroed elements; NULL also when the product overflows. */
void *arena_array(struct arena *a, size_t count, size_t size);

/* A copy with a NUL behind it (not counted). ptr NULL = no memory. */
struct str arena_dup(struct arena *a, struct str s);
struct str arena_lower(struct arena *a, struct str s);
/* `count` pieces one behind the other, with a NUL behind them. */
struct str arena_join(struct arena *a, const struct str *parts, size_t count);
char *arena_cstr(struct arena *a, struct str s);
struct str arena_printf(struct arena *a, const char *fmt, ...) HN_PRINTF(2, 3);

/* Call fn(arg) when the arena is freed. RES_NOMEM: not registered, the caller
 * must release at once. */
HN_CHECK enum res arena_on_free(struct arena *a, void (*fn)(void *), void *arg);

/* Bytes handed out so far. */
size_t arena_used(const struct arena *a);

#endif
