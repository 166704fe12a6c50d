/* The file that says which store this is. */
#include <stdint.h>
#include <stdlib.h>

#include "archive/store/store_dir.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct err err = { "" };
	struct store_identity id;
	enum res r =
	    store_identity_parse(str_of(data, size), "store", &err, &id);
	if ((r == RES_OK) != (err.text[0] == '\0') ||
	    (r == RES_OK && (id.epoch == 0 || id.next_shard == 0)))
		abort();
	return 0;
}
