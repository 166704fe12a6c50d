/* An arena for each test: begun before it, freed after it. */
#ifndef ARENA_TEST_H
#define ARENA_TEST_H

#include "base/arena.h"
#include "hn_test.h"

static struct arena *arena;

static int
setup(void **state)
{
	(void)state;
	arena = arena_new(0);
	return arena == NULL;
}

static int
teardown(void **state)
{
	(void)state;
	arena_free(&arena);
	return 0;
}

#endif
