/* Parameters of Content-Type and its kin: what comes out is UTF-8. */
#include <stdint.h>
#include <stdlib.h>

#include "base/codec.h"
#include "mail/param.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const names[] = { "n", "name", "boundary",
		"charset" };
	struct str value = str_of(data, size);
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		struct buf b;
		buf_init(&b, 16 * PARAM_MAX_VALUE);
		if (param_find(value, str_c(names[i]), &b) &&
		    !utf8_valid(buf_str(&b)))
			abort();
		buf_done(&b);
	}
	struct str main = param_main(value);
	if (main.len > size)
		abort();
	return 0;
}
