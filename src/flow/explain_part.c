#include "flow/explain_part.h"

#include "base/codec.h"

#define MAX_SHOWN 600 /* bytes of one text */

uint64_t
explain_number(struct str record, unsigned tag)
{
	struct str v = record_find(record, tag);
	return v.len == 8 ? get_le64((const uint8_t *)v.ptr) : 0;
}

bool
explain_is(struct str record, unsigned tag, const char *word)
{
	return str_eq(record_find(record, tag), str_c(word));
}

bool
explain_has(struct str record, unsigned tag)
{
	return record_find(record, tag).len != 0;
}

void
explain_show(struct buf *out, struct str s)
{
	size_t n = s.len < MAX_SHOWN ? s.len : MAX_SHOWN;
	for (size_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)s.ptr[i];
		buf_add_char(out, c < 0x20 || c >= 0x7f ? '?' : (char)c);
	}
	if (n < s.len)
		buf_add_c(out, "...");
}

void
explain_pair(
    struct buf *out, const char *before, struct str record, unsigned tag)
{
	struct str v = record_find(record, tag);
	if (v.len == 0)
		return;
	buf_add_c(out, before);
	explain_show(out, v);
}
