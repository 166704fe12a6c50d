/* Encodings without words of mail: little- and big-endian integers, base64
 * (RFC 4648 §4), hex, CRC-32C (RFC 3720 appendix B.4), UTF-8 checks. */
#ifndef BASE_CODEC_H
#define BASE_CODEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/res.h"
#include "base/str.h"

static inline void
put_le16(uint8_t *p, uint16_t v)
{
	p[0] = (uint8_t)v;
	p[1] = (uint8_t)(v >> 8);
}
static inline void
put_le32(uint8_t *p, uint32_t v)
{
	put_le16(p, (uint16_t)v);
	put_le16(p + 2, (uint16_t)(v >> 16));
}
static inline void
put_le64(uint8_t *p, uint64_t v)
{
	put_le32(p, (uint32_t)v);
	put_le32(p + 4, (uint32_t)(v >> 32));
}
static inline uint16_t
get_le16(const uint8_t *p)
{
	return (uint16_t)(p[0] | p[1] << 8);
}
static inline uint32_t
get_le32(const uint8_t *p)
{
	return get_le16(p) | (uint32_t)get_le16(p + 2) << 16;
}
static inline uint64_t
get_le64(const uint8_t *p)
{
	return get_le32(p) | (uint64_t)get_le32(p + 4) << 32;
}
static inline uint16_t
get_be16(const uint8_t *p)
{
	return (uint16_t)(p[0] << 8 | p[1]);
}
static inline uint32_t
get_be32(const uint8_t *p)
{
	return (uint32_t)get_be16(p) << 16 | get_be16(p + 2);
}
static inline uint64_t
get_be64(const uint8_t *p)
{
	return (uint64_t)get_be32(p) << 32 | get_be32(p + 4);
}

/* Append `len` bytes as base64 with padding, without line breaks. */
void base64_encode(struct buf *out, const void *bytes, size_t len);

/* Decode strict base64: only the alphabet and correct padding; with
 * `skip_fws` SP, HTAB, CR and LF are passed over anywhere (RFC 6376 §3.2).
 * RES_SYNTAX otherwise; bytes decoded before the error stay in `out`. */
HN_CHECK enum res base64_decode(struct str text, bool skip_fws,
    struct buf *out);
/* The same into memory of `room` bytes; RES_LIMIT: it does not fit. */
HN_CHECK enum res base64_decode_to(struct str text, bool skip_fws,
    uint8_t *to, size_t room, size_t *out_len);
/* Room enough for the bytes of so many characters. */
static inline size_t
base64_decoded_max(size_t characters)
{
	return characters / 4 * 3 + 3;
}

/* Lower-case hex, and back (either case, even length). */
void hex_encode(struct buf *out, const void *bytes, size_t len);
HN_CHECK enum res hex_decode(struct str text, struct buf *out);
/* 0..15, or -1 when `c` is no hex digit. */
int hex_digit(char c);

/* CRC-32C of `bytes`, continuing from `crc` (0 at the start). */
uint32_t crc32c(uint32_t crc, const void *bytes, size_t len);

/* Well-formed UTF-8 by RFC 3629: no surrogates, no overlong forms. */
bool utf8_valid(struct str s);
/* Length of the valid UTF-8 sequence at the start of `s` with its code point
 * in *out_cp, or 0 when there is none. */
size_t utf8_decode(struct str s, uint32_t *out_cp);
void utf8_encode(struct buf *out, uint32_t cp);

#endif
