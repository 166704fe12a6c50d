/* The file of holds: what is taken has valid names and as many as it says. */
#include <stdint.h>
#include <stdlib.h>

#include "archive/keeping/holds.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct err err = { "" };
	struct holds h;
	struct arena *a = arena_new((size_t)256 << 20);
	if (a == NULL || size > HOLDS_MAX_BYTES)
		return 0;
	enum res r = holds_parse(str_of(data, size), "holds", a, &err, &h);
	if ((r == RES_OK) != (err.text[0] == '\0') ||
	    (r == RES_OK && h.count > HOLDS_MAX))
		abort();
	for (size_t i = 0; r == RES_OK && i < h.count; i++)
		if (!hold_name_valid(h.items[i].name))
			abort();
	arena_free(&a);
	return 0;
}
