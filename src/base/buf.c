#include "base/buf.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/codec.h"

void
buf_init(struct buf *b, size_t max_bytes)
{
	*b = (struct buf){ .max = max_bytes };
}

void
buf_done(struct buf *b)
{
	free(b->ptr);
	buf_init(b, b->max);
}

void
buf_reset(struct buf *b)
{
	b->len = 0;
	b->error = RES_OK;
}

char *
buf_reserve(struct buf *b, size_t len)
{
	if (b->error != RES_OK)
		return NULL;
	if (len > b->max - b->len) {
		b->error = RES_LIMIT;
		return NULL;
	}
	if (b->ptr == NULL || len > b->cap - b->len) {
		size_t cap = b->cap < 64 ? 64 : b->cap;
		while (cap < b->len + len)
			cap = cap > b->max / 2 ? b->max : cap * 2;
		/* one byte more than counted, for buf_cstr's NUL */
		char *p = realloc(b->ptr, cap + 1);
		if (p == NULL) {
			b->error = RES_NOMEM;
			return NULL;
		}
		b->ptr = p;
		b->cap = cap;
	}
	return b->ptr + b->len;
}

void
buf_add(struct buf *b, const void *bytes, size_t len)
{
	char *p = buf_reserve(b, len);
	if (p == NULL || len == 0)
		return;
	memcpy(p, bytes, len);
	b->len += len;
}

void
buf_add_str(struct buf *b, struct str s)
{
	buf_add(b, s.ptr, s.len);
}

void
buf_add_c(struct buf *b, const char *c_string)
{
	buf_add(b, c_string, strlen(c_string));
}

void
buf_add_char(struct buf *b, char c)
{
	buf_add(b, &c, 1);
}

void
buf_addf(struct buf *b, const char *fmt, ...)
{
	/* Mostly it fits into what there is, and is printed once. The NUL
	 * lands in the spare byte behind the capacity. */
	size_t room = b->ptr != NULL && b->error == RES_OK ? b->cap - b->len : 0;
	char none[1];
	va_list ap;
	va_start(ap, fmt);
	int n = vsnprintf(room > 0 ? b->ptr + b->len : none,
	    room > 0 ? room + 1 : 1, fmt, ap);
	va_end(ap);
	char *p = n >= 0 ? buf_reserve(b, (size_t)n) : NULL;
	if (p == NULL)
		return;
	if ((size_t)n > room) {
		va_start(ap, fmt);
		vsnprintf(p, (size_t)n + 1, fmt, ap);
		va_end(ap);
	}
	b->len += (size_t)n;
}

void
buf_add_le16(struct buf *b, uint16_t v)
{
	uint8_t bytes[2];
	put_le16(bytes, v);
	buf_add(b, bytes, sizeof bytes);
}

void
buf_add_le32(struct buf *b, uint32_t v)
{
	uint8_t bytes[4];
	put_le32(bytes, v);
	buf_add(b, bytes, sizeof bytes);
}

void
buf_add_le64(struct buf *b, uint64_t v)
{
	uint8_t bytes[8];
	put_le64(bytes, v);
	buf_add(b, bytes, sizeof bytes);
}

const char *
buf_cstr(struct buf *b)
{
	if (buf_reserve(b, 0) == NULL)
		return NULL;
	b->ptr[b->len] = '\0';
	return b->ptr;
}

bool
buf_write(const struct buf *b, FILE *stream)
{
	return b->len == 0 || fwrite(b->ptr, 1, b->len, stream) == b->len;
}

#define READ_PIECE ((size_t)65536)

enum res
buf_read(struct buf *b, int fd)
{
	for (;;) {
		/* what fills it to the last byte is still to be told from
		 * what is more */
		char one;
		size_t left = b->max - b->len;
		size_t piece = left < READ_PIECE ? left : READ_PIECE;
		char *to = piece > 0 ? buf_reserve(b, piece) : &one;
		if (to == NULL || b->error != RES_OK)
			return b->error;
		ssize_t n = read(fd, to, piece > 0 ? piece : 1);
		if (n == 0)
			return RES_OK;
		if (n < 0 && errno != EINTR)
			return RES_IO;
		if (n > 0 && piece == 0)
			return b->error = RES_LIMIT;
		if (n > 0)
			b->len += (size_t)n;
	}
}
