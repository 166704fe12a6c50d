/* A growing byte buffer with a named maximum and a sticky error: write ten
 * times, check once. After an error nothing more is added. */
#ifndef BASE_BUF_H
#define BASE_BUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/res.h"
#include "base/str.h"

struct buf {
	char *ptr; /* `len` bytes; not NUL-terminated */
	size_t len, cap, max;
	enum res error; /* RES_OK, RES_NOMEM or RES_LIMIT */
};

void buf_init(struct buf *b, size_t max_bytes);
/* Free the memory; the buffer may be used again with the same maximum. */
void buf_done(struct buf *b);
/* Length 0 and no error, memory kept. */
void buf_reset(struct buf *b);

void buf_add(struct buf *b, const void *bytes, size_t len);
void buf_add_str(struct buf *b, struct str s);
void buf_add_c(struct buf *b, const char *c_string);
void buf_add_char(struct buf *b, char c);
void buf_addf(struct buf *b, const char *fmt, ...) HN_PRINTF(2, 3);
void buf_add_le16(struct buf *b, uint16_t v);
void buf_add_le32(struct buf *b, uint32_t v);
void buf_add_le64(struct buf *b, uint64_t v);

/* Room for `len` more bytes to write into, or NULL (the error is kept). The
 * caller then adds to b->len what it wrote. */
char *buf_reserve(struct buf *b, size_t len);

/* What has been written; valid until the next change. */
static inline struct str
buf_str(const struct buf *b)
{
	return str_of(b->ptr, b->len);
}
/* Write all of it, also when that is nothing and ptr is NULL, which fwrite
 * must not be given. False when the stream took less. */
bool buf_write(const struct buf *b, FILE *stream);
/* Append what a file or a pipe has, to its end. RES_IO with errno; else the
 * buffer's error. */
HN_CHECK enum res buf_read(struct buf *b, int fd);
/* The same with a NUL behind it; NULL after an error. */
const char *buf_cstr(struct buf *b);

#endif
