/* Records of META, EVIDENCE and EDITS, nested ones too. */
#include <stdlib.h>

#include "archive/format/record.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static size_t
walk(struct str bytes, int depth)
{
	struct record_reader r;
	unsigned tag;
	struct str value;
	size_t sum = 0;
	if (record_open(bytes, &r) != RES_OK)
		return 0;
	while (record_next(&r, &tag, &value)) {
		if (value.ptr < bytes.ptr ||
		    value.ptr + value.len > bytes.ptr + bytes.len)
			abort();
		for (size_t i = 0; i < value.len; i++)
			sum += (unsigned char)value.ptr[i];
		struct str first = record_find(bytes, tag);
		if (first.ptr == NULL || first.ptr > value.ptr)
			abort();
		if (depth < 3)
			sum += walk(value, depth + 1);
	}
	if (r.error != RES_OK && r.error != RES_CORRUPT)
		abort();
	return sum;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size > 4096)
		return 0; /* finding each tag again is quadratic */
	volatile size_t sum = walk(str_of(data, size), 0);
	(void)sum;
	return 0;
}
