/* HTML to text: the same whatever the split, never longer than the input by
 * more than a separator for each tag. */
#include <stdint.h>
#include <stdlib.h>

#include "mail/html.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
extract(const uint8_t *data, size_t size, size_t step, struct buf *out)
{
	struct html h;
	buf_init(out, 2 * size + 64);
	html_init(&h, out);
	for (size_t at = 0; at < size; at += step)
		html_push(&h, (const char *)data + at,
		    size - at < step ? size - at : step);
	html_finish(&h);
	if (out->error != RES_OK)
		abort();
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct buf a, b;
	extract(data, size, size + 1, &a);
	extract(data, size, 1 + size % 5, &b);
	if (!str_eq(buf_str(&a), buf_str(&b)))
		abort();
	buf_done(&a);
	buf_done(&b);
	return 0;
}
