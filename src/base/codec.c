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

/* What a byte stands for: DIGIT + its value, a blank, padding, or nothing. */
enum { SP = 1, PAD = 2, DIGIT = 64 };

/* clang-format off */
static const uint8_t base64_meaning[256] = {
	  0,   0,   0,   0,   0,   0,   0,   0,   0,  SP,  SP,   0,   0,  SP,   0,   0,
	  0,   0,   0,   0,   0,   0,   0,   0,   0,   0,   0,   0,   0,   0,   0,   0,
	 SP,   0,   0,   0,   0,   0,   0,   0,   0,   0,   0, 126,   0,   0,   0, 127,
	116, 117, 118, 119, 120, 121, 122, 123, 124, 125,   0,   0,   0, PAD,   0,   0,
	  0,  64,  65,  66,  67,  68,  69,  70,  71,  72,  73,  74,  75,  76,  77,  78,
	 79,  80,  81,  82,  83,  84,  85,  86,  87,  88,  89,   0,   0,   0,   0,   0,
	  0,  90,  91,  92,  93,  94,  95,  96,  97,  98,  99, 100, 101, 102, 103, 104,
	105, 106, 107, 108, 109, 110, 111, 112, 113, 114, 115,   0,   0,   0,   0,   0,
};
/* clang-format on */

/* Where base64_decode stands. */
struct decoding {
	uint8_t *to;
	size_t room, done;
	uint32_t acc; /* the last digits; older ones fall off the top */
	size_t digits, pads;
};

/* Append the upper `n` octets of the last `bits` bits. */
static bool
put_octets(struct decoding *d, unsigned bits, unsigned n)
{
	if (d->room - d->done < n)
		return false;
	for (unsigned i = 0; i < n; i++)
		d->to[d->done++] = (uint8_t)(d->acc >> (bits -= 8));
	return true;
}

/* Groups of four digits from `i` on, as long as nothing else is between. */
static size_t
decode_groups(struct decoding *d, struct str text, size_t i)
{
	const uint8_t *p = (const uint8_t *)text.ptr;
	size_t groups = (text.len - i) / 4, n = 0;
	uint8_t *to = d->to + d->done;
	if (groups > (d->room - d->done) / 3)
		groups = (d->room - d->done) / 3;
	for (; n < groups; n++, i += 4, to += 3) {
		unsigned a = base64_meaning[p[i]];
		unsigned b = base64_meaning[p[i + 1]];
		unsigned c = base64_meaning[p[i + 2]];
		unsigned e = base64_meaning[p[i + 3]];
		if ((a & b & c & e & DIGIT) == 0)
			break;
		to[0] = (uint8_t)(a << 2 | (b & 63) >> 4);
		to[1] = (uint8_t)(b << 4 | (c & 63) >> 2);
		to[2] = (uint8_t)(c << 6 | (e & 63));
	}
	d->done += 3 * n;
	d->digits += 4 * n;
	return i;
}

static enum res
decode_digits(struct decoding *d, struct str text, bool skip_fws)
{
	for (size_t i = 0; i < text.len; i++) {
		if (d->digits % 4 == 0 && d->pads == 0)
			i = decode_groups(d, text, i);
		if (i == text.len)
			break;
		unsigned m = base64_meaning[(uint8_t)text.ptr[i]];
		if (m >= DIGIT && d->pads == 0) {
			d->acc = d->acc << 6 | (m & 63);
			if (++d->digits % 4 == 0 && !put_octets(d, 24, 3))
				return RES_LIMIT;
		} else if (m == PAD && d->digits % 4 >= 2 && d->pads < 2) {
			d->pads++;
		} else if (m != SP || !skip_fws) {
			return RES_SYNTAX;
		}
	}
	unsigned rest = (unsigned)(d->digits % 4);
	if (rest + d->pads != (rest == 0 ? 0 : 4) || rest == 1)
		return RES_SYNTAX;
	if (rest != 0 && !put_octets(d, rest * 6, rest - 1))
		return RES_LIMIT;
	return RES_OK;
}

enum res
base64_decode_to(struct str text, bool skip_fws, uint8_t *to, size_t room,
    size_t *out_len)
{
	struct decoding d = { .to = to, .room = room };
	enum res r = decode_digits(&d, text, skip_fws);
	*out_len = d.done;
	return r;
}

enum res
base64_decode(struct str text, bool skip_fws, struct buf *out)
{
	size_t room = base64_decoded_max(text.len), len;
	if (room > out->max - out->len)
		room = out->max - out->len; /* blanks may be many */
	uint8_t *to = (uint8_t *)buf_reserve(out, room);
	if (to == NULL)
		return out->error;
	enum res r = base64_decode_to(text, skip_fws, to, room, &len);
	out->len += len;
	if (r == RES_LIMIT)
		out->error = r;
	return r;
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
