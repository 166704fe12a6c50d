#include "base/codec.h"

#if defined(__x86_64__)
#include <nmmintrin.h>
#endif

static const char base64_alphabet[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void
base64_encode(struct buf *out, const void *bytes, size_t len)
{
	const uint8_t *p = bytes;
	size_t need = (len + 2) / 3 * 4;
	char *o = buf_reserve(out, need);
	if (o == NULL)
		return;
	for (; len >= 3; len -= 3, p += 3) {
		uint32_t v = (uint32_t)p[0] << 16 | p[1] << 8 | p[2];
		*o++ = base64_alphabet[v >> 18];
		*o++ = base64_alphabet[v >> 12 & 63];
		*o++ = base64_alphabet[v >> 6 & 63];
		*o++ = base64_alphabet[v & 63];
	}
	if (len > 0) {
		uint32_t v = (uint32_t)p[0] << 16 | (len == 2 ? p[1] << 8 : 0);
		*o++ = base64_alphabet[v >> 18];
		*o++ = base64_alphabet[v >> 12 & 63];
		*o++ = len == 2 ? base64_alphabet[v >> 6 & 63] : '=';
		*o++ = '=';
	}
	out->len += need;
}

static int
base64_value(char c)
{
	if (c >= 'A' && c <= 'Z')
		return c - 'A';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 26;
	if (c >= '0' && c <= '9')
		return c - '0' + 52;
	if (c == '+')
		return 62;
	return c == '/' ? 63 : -1;
}

enum res
base64_decode(struct str text, bool skip_fws, struct buf *out)
{
	uint32_t acc = 0;
	unsigned digits = 0, pads = 0;
	for (size_t i = 0; i < text.len; i++) {
		char c = text.ptr[i];
		if (skip_fws &&
		    (c == ' ' || c == '\t' || c == '\r' || c == '\n'))
			continue;
		if (c == '=') {
			if (++pads > 2 || digits % 4 < 2)
				return RES_SYNTAX;
			continue;
		}
		int v = base64_value(c);
		if (v < 0 || pads > 0)
			return RES_SYNTAX;
		acc = acc << 6 | (uint32_t)v;
		if (++digits % 4 == 0) {
			uint8_t b[3] = { (uint8_t)(acc >> 16),
				(uint8_t)(acc >> 8), (uint8_t)acc };
			buf_add(out, b, 3);
			acc = 0;
		}
	}
	unsigned rest = digits % 4;
	if (rest == 1 || (rest != 0 && rest + pads != 4) ||
	    (rest == 0 && pads != 0))
		return RES_SYNTAX;
	if (rest == 2)
		buf_add_char(out, (char)(acc >> 4));
	if (rest == 3) {
		buf_add_char(out, (char)(acc >> 10));
		buf_add_char(out, (char)(acc >> 2));
	}
	return out->error;
}

void
hex_encode(struct buf *out, const void *bytes, size_t len)
{
	static const char digits[] = "0123456789abcdef";
	const uint8_t *p = bytes;
	for (size_t i = 0; i < len; i++) {
		char two[2] = { digits[p[i] >> 4], digits[p[i] & 15] };
		buf_add(out, two, 2);
	}
}

int
hex_digit(char c)
{
	if (ascii_is_digit(c))
		return c - '0';
	c = ascii_lower(c);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

enum res
hex_decode(struct str text, struct buf *out)
{
	if (text.len % 2 != 0)
		return RES_SYNTAX;
	for (size_t i = 0; i < text.len; i += 2) {
		int hi = hex_digit(text.ptr[i]), lo = hex_digit(text.ptr[i + 1]);
		if (hi < 0 || lo < 0)
			return RES_SYNTAX;
		buf_add_char(out, (char)(hi << 4 | lo));
	}
	return out->error;
}

/* Bitwise, one byte at a time: the reference and the fallback. */
static uint32_t
crc32c_portable(uint32_t crc, const uint8_t *p, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		crc ^= p[i];
		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (0x82f63b78 & -(crc & 1));
	}
	return crc;
}

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) static uint32_t
crc32c_sse42(uint32_t crc, const uint8_t *p, size_t len)
{
	uint64_t c = crc;
	for (; len >= 8; len -= 8, p += 8)
		c = _mm_crc32_u64(c, get_le64(p));
	for (; len > 0; len--, p++)
		c = _mm_crc32_u8((uint32_t)c, *p);
	return (uint32_t)c;
}
#endif

uint32_t
crc32c(uint32_t crc, const void *bytes, size_t len)
{
	crc = ~crc;
#if defined(__x86_64__)
	if (__builtin_cpu_supports("sse4.2"))
		return ~crc32c_sse42(crc, bytes, len);
#endif
	return ~crc32c_portable(crc, bytes, len);
}

size_t
utf8_decode(struct str s, uint32_t *out_cp)
{
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	if (s.len == 0)
		return 0;
	uint8_t first = (uint8_t)s.ptr[0];
	if (first < 0x80) {
		*out_cp = first;
		return 1;
	}
	size_t n = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
	if (first < 0xc2 || first > 0xf4 || s.len < n)
		return 0;
	uint32_t cp = first & (0x7fu >> n);
	for (size_t i = 1; i < n; i++) {
		uint8_t b = (uint8_t)s.ptr[i];
		if ((b & 0xc0) != 0x80)
			return 0;
		cp = cp << 6 | (b & 0x3f);
	}
	if (cp < least[n] || cp > 0x10ffff || (cp >= 0xd800 && cp <= 0xdfff))
		return 0;
	*out_cp = cp;
	return n;
}

bool
utf8_valid(struct str s)
{
	uint32_t cp;
	while (s.len > 0) {
		size_t n = utf8_decode(s, &cp);
		if (n == 0)
			return false;
		s = str_skip(s, n);
	}
	return true;
}

void
utf8_encode(struct buf *out, uint32_t cp)
{
	char b[4];
	size_t n = cp < 0x80 ? 1 : cp < 0x800 ? 2 : cp < 0x10000 ? 3 : 4;
	static const uint8_t lead[] = { 0, 0, 0xc0, 0xe0, 0xf0 };
	for (size_t i = n - 1; i > 0; i--) {
		b[i] = (char)(0x80 | (cp & 0x3f));
		cp >>= 6;
	}
	b[0] = (char)(lead[n] | cp);
	buf_add(out, b, n);
}
