/* Any text as a DMARC record: bounded lists, views inside the kept text,
 * policies that fall as they should, and the kept text parses again. */
#include <stdint.h>
#include <stdlib.h>

#include "auth/dmarc.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
inside(struct str part, struct str text)
{
	if (part.len != 0 &&
	    (part.ptr < text.ptr || part.ptr + part.len > text.ptr + text.len))
		abort();
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arena *a = arena_new(0);
	struct dmarc_record d, again;
	if (a == NULL)
		return 0;
	enum res r = dmarc_record_parse(a, str_of(data, size), &d);
	if (r == RES_OK) {
		if (d.rua_count > DMARC_MAX_URIS ||
		    d.ruf_count > DMARC_MAX_URIS)
			abort();
		for (size_t i = 0; i < d.rua_count; i++)
			inside(d.rua[i], d.text);
		for (size_t i = 0; i < d.ruf_count; i++)
			inside(d.ruf[i], d.text);
		if ((!d.has_p && d.p != DMARC_NONE) ||
		    (!d.has_sp && d.sp != d.p) || (!d.has_np && d.np != d.sp))
			abort();
		if (dmarc_record_parse(a, d.text, &again) != RES_OK ||
		    again.p != d.p || again.rua_count != d.rua_count)
			abort();
	}
	arena_free(&a);
	return 0;
}
