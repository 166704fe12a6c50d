/* The file of what was erased in a shard. */
#include <stdint.h>
#include <stdlib.h>

#include "archive/keeping/erasures.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct err err = { "" };
	struct erasures e;
	struct arena *a = arena_new(ERASURES_ARENA);
	if (a == NULL || size > ERASURES_MAX_BYTES)
		return 0;
	enum res r =
	    erasures_parse(str_of(data, size), "erasures", a, &err, &e);
	if ((r == RES_OK) != (err.text[0] == '\0'))
		abort();
	for (size_t i = 0; r == RES_OK && i < e.count; i++)
		if (!erasures_have(&e, e.frames[i].number))
			abort();
	arena_free(&a);
	return 0;
}
