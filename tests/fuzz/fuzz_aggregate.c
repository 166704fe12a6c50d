/* Rows of the decision store, each with a length of two bytes in front, to a
 * report: the XML and the text hold only what they may, whatever the rows. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/codec.h"
#include "flow/aggregate.h"

#define MAX_OUT ((size_t)1 << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
need(bool good)
{
	if (!good)
		abort();
}

/* No byte that XML 1.0 has no place for, as many "<" as ">", all closed. */
static void
check_xml(struct str xml)
{
	long open = 0;
	need(utf8_valid(xml));
	for (size_t i = 0; i < xml.len; i++) {
		unsigned char c = (unsigned char)xml.ptr[i];
		need(c >= 0x20 || c == '\n');
		open += c == '<' ? 1 : c == '>' ? -1 : 0;
		need(open == 0 || open == 1);
	}
	need(open == 0 && str_ends(xml, STR("</feedback>\n")));
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct aggregate_facts facts = { .end_s = 86399 };
	struct str uris[AGGREGATE_MAX_URIS];
	struct arena *a = arena_new(AGGREGATE_MEMORY);
	struct aggregate *g = a != NULL ? aggregate_new(a) : NULL;
	struct buf out;
	need(g != NULL);
	while (size >= 2) {
		size_t len = get_le16(data);
		if (len > size - 2)
			len = size - 2;
		aggregate_add(g, str_of(data + 2, len));
		data += 2 + len;
		size -= 2 + len;
	}
	buf_init(&out, MAX_OUT);
	if (aggregate_xml(g, &facts, MAX_OUT, &out) == RES_OK)
		check_xml(buf_str(&out));
	buf_reset(&out);
	(void)!aggregate_preview(g, &facts, &out);
	for (size_t i = 0; i < out.len; i++)
		need(out.ptr[i] == '\n' ||
		    (out.ptr[i] >= ' ' && out.ptr[i] <= '~'));
	need(aggregate_rua(g, uris, AGGREGATE_MAX_URIS) <= AGGREGATE_MAX_URIS);
	buf_done(&out);
	arena_free(&a);
	return 0;
}
