/* Any text as hanaper.conf: what loads dumps to a text that loads to the same
 * dump, what does not has a message that names the place. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "config/config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
dump(const struct config *c, struct buf *out)
{
	buf_init(out, (size_t)64 << 20);
	config_dump(c, out);
	if (out->error != RES_OK)
		abort();
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct err err = { "" };
	struct config *c = NULL, *again = NULL;
	struct buf first, second;
	if (config_from_text(str_of(data, size), "fuzz", &err, &c) != RES_OK) {
		if (c != NULL || err.text[0] == '\0')
			abort();
		return 0;
	}
	dump(c, &first);
	if (config_from_text(buf_str(&first), "dump", &err, &again) != RES_OK)
		abort();
	dump(again, &second);
	if (!str_eq(buf_str(&first), buf_str(&second)))
		abort();
	buf_done(&first);
	buf_done(&second);
	config_unref(&c);
	config_unref(&again);
	return 0;
}
