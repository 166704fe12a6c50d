/* A URI of a policy record: what comes of it can stand in a header field. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "flow/rua.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arena *a = arena_new(0);
	struct str address;
	if (a != NULL &&
	    rua_address(a, str_of(data, size), &address) == RES_OK) {
		size_t at = str_chr(address, '@');
		if (at == 0 || at > 64 || at + 1 >= address.len ||
		    address.len > 318)
			abort();
		for (size_t i = 0; i < address.len; i++)
			if (address.ptr[i] <= ' ' || address.ptr[i] > '~' ||
			    str_chr(STR("<>,;:\"\\()[]"), address.ptr[i]) !=
				SIZE_MAX ||
			    (address.ptr[i] == '@' && i != at))
				abort();
	}
	arena_free(&a);
	return 0;
}
