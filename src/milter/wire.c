#include "milter/wire.h"

#include <arpa/inet.h>

uint32_t
wire_get32(const char *p)
{
	uint32_t v;
	memcpy(&v, p, sizeof v);
	return ntohl(v);
}

void
wire_add32(struct buf *b, uint32_t v)
{
	v = htonl(v);
	buf_add(b, &v, sizeof v);
}

void
wire_add_text(struct buf *b, struct str s)
{
	buf_add_str(b, s);
	buf_add_char(b, '\0');
}

size_t
wire_open(struct buf *b, char what)
{
	size_t mark = b->len;
	wire_add32(b, 0);
	buf_add_char(b, what);
	return mark;
}

void
wire_close(struct buf *b, size_t mark)
{
	if (b->error != RES_OK)
		return;
	uint32_t v = htonl((uint32_t)(b->len - mark - WIRE_HEAD));
	memcpy(b->ptr + mark, &v, sizeof v);
}

void
wire_simple(struct buf *b, char what)
{
	wire_close(b, wire_open(b, what));
}
