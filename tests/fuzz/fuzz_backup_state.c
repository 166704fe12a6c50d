/* The file that says how far a shard was backed up. */
#include <stdint.h>
#include <stdlib.h>

#include "archive/keeping/backup_state.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct backup_state s;
	uint8_t root[LEAF_HASH_BYTES];
	if (backup_state_parse(str_of(data, size), &s) == RES_OK &&
	    (s.last >= s.bytes || merkle_root(&s.tree, root) != RES_OK))
		abort();
	return 0;
}
