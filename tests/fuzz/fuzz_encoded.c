/* Encoded words: what comes out is UTF-8. */
#include <stdint.h>
#include <stdlib.h>

#include "base/codec.h"
#include "mail/encoded.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct buf b;
	buf_init(&b, 16 * size + 64);
	encoded_decode(str_of(data, size), &b);
	if (b.error != RES_OK || !utf8_valid(buf_str(&b)))
		abort();
	buf_done(&b);
	return 0;
}
