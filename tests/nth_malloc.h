/* In one source of a program: its n-th allocation fails, once. Sanitizers have
 * a malloc of their own; NTH_MALLOC is 0 there. */
#ifndef NTH_MALLOC_H
#define NTH_MALLOC_H

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define NTH_MALLOC 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define NTH_MALLOC 0
#endif
#endif
#ifndef NTH_MALLOC
#define NTH_MALLOC 1
#endif

/* Allocations until one fails, it included; <= 0: none. It is -1 after that.
 * NTH_MALLOC_LEFT, if it is defined, points to another place (or nowhere). */
#ifndef NTH_MALLOC_LEFT
static atomic_long nth_malloc;
#define NTH_MALLOC_LEFT (&nth_malloc)
#endif

#if NTH_MALLOC
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *p, size_t size);

static bool
nth_malloc_fails(void)
{
	atomic_long *left = NTH_MALLOC_LEFT;
	if (left == NULL || atomic_load(left) <= 0 ||
	    atomic_fetch_sub(left, 1) != 1)
		return false;
	atomic_store(left, -1);
	errno = ENOMEM;
	return true;
}

void *
malloc(size_t size)
{
	return nth_malloc_fails() ? NULL : __libc_malloc(size);
}

void *
calloc(size_t count, size_t size)
{
	return nth_malloc_fails() ? NULL : __libc_calloc(count, size);
}

void *
realloc(void *p, size_t size)
{
	return nth_malloc_fails() ? NULL : __libc_realloc(p, size);
}
#endif

#endif
