/* Any text as a sign_table: rules come sorted, each with a place and a
 * domain; what is refused names the place. */
#include <stdint.h>
#include <stdlib.h>

#include "config/sign_table.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arena *a = arena_new(0);
	struct err err = { "" };
	const struct sign_rule *rules = NULL;
	size_t count = 0;
	if (a == NULL)
		return 0;
	enum res r = sign_table_parse(
	    a, str_of(data, size), "fuzz", &err, &rules, &count);
	if (r != RES_OK && r != RES_NOMEM && err.text[0] == '\0')
		abort();
	for (size_t i = 0; i < count; i++) {
		if (rules[i].domain.len == 0 || rules[i].where.len == 0)
			abort();
		if (i > 0 && rules[i - 1].kind > rules[i].kind)
			abort();
	}
	arena_free(&a);
	return 0;
}
