/* A trace and its evidence, with a length of two bytes in front: what is said
 * of them can be shown on a terminal, whatever they hold. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/codec.h"
#include "flow/explain.h"

#define MAX_OUT ((size_t)1 << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct buf out;
	if (size < 2)
		return 0;
	size_t len = get_le16(data);
	data += 2;
	size -= 2;
	if (len > size)
		len = size;
	buf_init(&out, MAX_OUT);
	(void)!explain_render(
	    str_of(data, len), str_of(data + len, size - len), &out);
	for (size_t i = 0; i < out.len; i++)
		if (out.ptr[i] != '\n' &&
		    (out.ptr[i] < ' ' || out.ptr[i] > '~'))
			abort();
	buf_done(&out);
	return 0;
}
