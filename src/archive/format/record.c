#include "archive/format/record.h"

#include "base/codec.h"

#define RECORD_VERSION 1
#define RECORD_HEAD    6 /* tag u16, length u32 */

void
record_init(struct record *r, size_t max_bytes)
{
	buf_init(&r->buf, max_bytes);
	buf_add_char(&r->buf, RECORD_VERSION);
}

void
record_done(struct record *r)
{
	buf_done(&r->buf);
}

void
record_add(struct record *r, unsigned tag, struct str value)
{
	if (r->buf.error != RES_OK)
		return;
	if (tag > UINT16_MAX || value.len > UINT32_MAX) {
		r->buf.error = RES_LIMIT;
		return;
	}
	/* all or nothing: no head without its value at the limit */
	if (buf_reserve(&r->buf, RECORD_HEAD + value.len) == NULL)
		return;
	buf_add_le16(&r->buf, (uint16_t)tag);
	buf_add_le32(&r->buf, (uint32_t)value.len);
	buf_add_str(&r->buf, value);
}

void
record_add_u16(struct record *r, unsigned tag, uint16_t v)
{
	uint8_t bytes[2];
	put_le16(bytes, v);
	record_add(r, tag, str_of(bytes, sizeof bytes));
}

void
record_add_u32(struct record *r, unsigned tag, uint32_t v)
{
	uint8_t bytes[4];
	put_le32(bytes, v);
	record_add(r, tag, str_of(bytes, sizeof bytes));
}

void
record_add_u64(struct record *r, unsigned tag, uint64_t v)
{
	uint8_t bytes[8];
	put_le64(bytes, v);
	record_add(r, tag, str_of(bytes, sizeof bytes));
}

void
record_add_buf(struct record *r, unsigned tag, struct buf *b)
{
	if (b->error != RES_OK && r->buf.error == RES_OK)
		r->buf.error = b->error;
	record_add(r, tag, buf_str(b));
	buf_done(b);
}

void
record_add_record(struct record *r, unsigned tag, const struct record *in)
{
	if (in->buf.error != RES_OK && r->buf.error == RES_OK)
		r->buf.error = in->buf.error;
	record_add(r, tag, buf_str(&in->buf));
}

enum res
record_open(struct str bytes, struct record_reader *out)
{
	if (bytes.len > 0 && bytes.ptr[0] != RECORD_VERSION)
		return RES_UNSUPPORTED;
	*out = (struct record_reader){ str_skip(bytes, 1), RES_OK };
	return RES_OK;
}

bool
record_next(struct record_reader *r, unsigned *out_tag, struct str *out)
{
	if (r->error != RES_OK || r->rest.len == 0)
		return false;
	const uint8_t *p = (const uint8_t *)r->rest.ptr;
	if (r->rest.len < RECORD_HEAD ||
	    get_le32(p + 2) > r->rest.len - RECORD_HEAD) {
		r->error = RES_CORRUPT;
		return false;
	}
	uint32_t len = get_le32(p + 2);
	*out_tag = get_le16(p);
	*out = str_of(p + RECORD_HEAD, len);
	r->rest = str_skip(r->rest, RECORD_HEAD + (size_t)len);
	return true;
}

struct str
record_find(struct str bytes, unsigned tag)
{
	struct record_reader r;
	unsigned t;
	struct str value;
	if (record_open(bytes, &r) != RES_OK)
		return STR_EMPTY;
	while (record_next(&r, &t, &value))
		if (t == tag)
			return value;
	return STR_EMPTY;
}
