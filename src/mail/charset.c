#include "mail/charset.h"

#include <errno.h>
#include <iconv.h>
#include <string.h>

#include "base/codec.h"

#define REPLACEMENT   0xfffdu
#define MAX_NAME      32
/* Output of one iconv call. */
#define OUT_CHUNK     4096

/* Names as compared: lower case, letters and digits only. NULL in `iconv`:
 * no converter needed. */
struct charset_row {
	const char *name;
	enum charset_kind kind;
	const char *iconv;
};

static const struct charset_row rows[] = {
	{ "utf8", CHARSET_UTF8, NULL },
	{ "unicode11utf8", CHARSET_UTF8, NULL },
	{ "usascii", CHARSET_GUESS, NULL },
	{ "ascii", CHARSET_GUESS, NULL },
	{ "ansix341968", CHARSET_GUESS, NULL },
	{ "iso646us", CHARSET_GUESS, NULL },
	{ "646", CHARSET_GUESS, NULL },
	{ "iso88591", CHARSET_WINDOWS_1252, NULL },
	{ "latin1", CHARSET_WINDOWS_1252, NULL },
	{ "l1", CHARSET_WINDOWS_1252, NULL },
	{ "cp819", CHARSET_WINDOWS_1252, NULL },
	{ "windows1252", CHARSET_WINDOWS_1252, NULL },
	{ "cp1252", CHARSET_WINDOWS_1252, NULL },
	{ "iso88592", CHARSET_ICONV, "ISO-8859-2" },
	{ "latin2", CHARSET_ICONV, "ISO-8859-2" },
	{ "iso88593", CHARSET_ICONV, "ISO-8859-3" },
	{ "iso88594", CHARSET_ICONV, "ISO-8859-4" },
	{ "iso88595", CHARSET_ICONV, "ISO-8859-5" },
	{ "iso88596", CHARSET_ICONV, "ISO-8859-6" },
	{ "iso88597", CHARSET_ICONV, "ISO-8859-7" },
	{ "iso88598", CHARSET_ICONV, "ISO-8859-8" },
	{ "iso88598i", CHARSET_ICONV, "ISO-8859-8" },
	{ "iso88598e", CHARSET_ICONV, "ISO-8859-8" },
	{ "iso88599", CHARSET_ICONV, "WINDOWS-1254" },
	{ "latin5", CHARSET_ICONV, "WINDOWS-1254" },
	{ "iso885910", CHARSET_ICONV, "ISO-8859-10" },
	{ "iso885911", CHARSET_ICONV, "ISO-8859-11" },
	{ "iso885913", CHARSET_ICONV, "ISO-8859-13" },
	{ "iso885914", CHARSET_ICONV, "ISO-8859-14" },
	{ "iso885915", CHARSET_ICONV, "ISO-8859-15" },
	{ "latin9", CHARSET_ICONV, "ISO-8859-15" },
	{ "iso885916", CHARSET_ICONV, "ISO-8859-16" },
	{ "windows874", CHARSET_ICONV, "CP874" },
	{ "cp874", CHARSET_ICONV, "CP874" },
	{ "tis620", CHARSET_ICONV, "TIS-620" },
	{ "windows1250", CHARSET_ICONV, "WINDOWS-1250" },
	{ "cp1250", CHARSET_ICONV, "WINDOWS-1250" },
	{ "windows1251", CHARSET_ICONV, "WINDOWS-1251" },
	{ "cp1251", CHARSET_ICONV, "WINDOWS-1251" },
	{ "windows1253", CHARSET_ICONV, "WINDOWS-1253" },
	{ "cp1253", CHARSET_ICONV, "WINDOWS-1253" },
	{ "windows1254", CHARSET_ICONV, "WINDOWS-1254" },
	{ "cp1254", CHARSET_ICONV, "WINDOWS-1254" },
	{ "windows1255", CHARSET_ICONV, "WINDOWS-1255" },
	{ "cp1255", CHARSET_ICONV, "WINDOWS-1255" },
	{ "windows1256", CHARSET_ICONV, "WINDOWS-1256" },
	{ "cp1256", CHARSET_ICONV, "WINDOWS-1256" },
	{ "windows1257", CHARSET_ICONV, "WINDOWS-1257" },
	{ "cp1257", CHARSET_ICONV, "WINDOWS-1257" },
	{ "windows1258", CHARSET_ICONV, "WINDOWS-1258" },
	{ "cp1258", CHARSET_ICONV, "WINDOWS-1258" },
	{ "koi8r", CHARSET_ICONV, "KOI8-R" },
	{ "koi8", CHARSET_ICONV, "KOI8-R" },
	{ "cskoi8r", CHARSET_ICONV, "KOI8-R" },
	{ "koi8u", CHARSET_ICONV, "KOI8-U" },
	{ "koi8ru", CHARSET_ICONV, "KOI8-U" },
	{ "ibm437", CHARSET_ICONV, "IBM437" },
	{ "cp437", CHARSET_ICONV, "IBM437" },
	{ "ibm850", CHARSET_ICONV, "IBM850" },
	{ "cp850", CHARSET_ICONV, "IBM850" },
	{ "ibm852", CHARSET_ICONV, "IBM852" },
	{ "cp852", CHARSET_ICONV, "IBM852" },
	{ "ibm866", CHARSET_ICONV, "IBM866" },
	{ "cp866", CHARSET_ICONV, "IBM866" },
	{ "macintosh", CHARSET_ICONV, "MACINTOSH" },
	{ "macroman", CHARSET_ICONV, "MACINTOSH" },
	{ "xmacroman", CHARSET_ICONV, "MACINTOSH" },
	{ "maccyrillic", CHARSET_ICONV, "MAC-CYRILLIC" },
	{ "xmaccyrillic", CHARSET_ICONV, "MAC-CYRILLIC" },
	{ "viscii", CHARSET_ICONV, "VISCII" },
	{ "gb2312", CHARSET_ICONV, "GB18030" },
	{ "csgb2312", CHARSET_ICONV, "GB18030" },
	{ "gb231280", CHARSET_ICONV, "GB18030" },
	{ "euccn", CHARSET_ICONV, "GB18030" },
	{ "gbk", CHARSET_ICONV, "GB18030" },
	{ "xgbk", CHARSET_ICONV, "GB18030" },
	{ "cp936", CHARSET_ICONV, "GB18030" },
	{ "windows936", CHARSET_ICONV, "GB18030" },
	{ "gb18030", CHARSET_ICONV, "GB18030" },
	{ "hz", CHARSET_HZ, "GB18030" },
	{ "hzgb2312", CHARSET_HZ, "GB18030" },
	{ "big5", CHARSET_ICONV, "BIG5-HKSCS" },
	{ "csbig5", CHARSET_ICONV, "BIG5-HKSCS" },
	{ "xxbig5", CHARSET_ICONV, "BIG5-HKSCS" },
	{ "cp950", CHARSET_ICONV, "BIG5-HKSCS" },
	{ "windows950", CHARSET_ICONV, "BIG5-HKSCS" },
	{ "big5hkscs", CHARSET_ICONV, "BIG5-HKSCS" },
	{ "euctw", CHARSET_ICONV, "EUC-TW" },
	{ "shiftjis", CHARSET_ICONV, "CP932" },
	{ "sjis", CHARSET_ICONV, "CP932" },
	{ "xsjis", CHARSET_ICONV, "CP932" },
	{ "mskanji", CHARSET_ICONV, "CP932" },
	{ "cp932", CHARSET_ICONV, "CP932" },
	{ "windows31j", CHARSET_ICONV, "CP932" },
	{ "cswindows31j", CHARSET_ICONV, "CP932" },
	{ "eucjp", CHARSET_ICONV, "EUC-JP-MS" },
	{ "xeucjp", CHARSET_ICONV, "EUC-JP-MS" },
	{ "iso2022jp", CHARSET_ICONV, "ISO-2022-JP-2" },
	{ "iso2022jp1", CHARSET_ICONV, "ISO-2022-JP-2" },
	{ "iso2022jp2", CHARSET_ICONV, "ISO-2022-JP-2" },
	{ "csiso2022jp", CHARSET_ICONV, "ISO-2022-JP-2" },
	{ "cp50220", CHARSET_ICONV, "ISO-2022-JP-2" },
	{ "cp50221", CHARSET_ICONV, "ISO-2022-JP-2" },
	{ "euckr", CHARSET_ICONV, "CP949" },
	{ "cseuckr", CHARSET_ICONV, "CP949" },
	{ "ksc5601", CHARSET_ICONV, "CP949" },
	{ "ksc56011987", CHARSET_ICONV, "CP949" },
	{ "cp949", CHARSET_ICONV, "CP949" },
	{ "windows949", CHARSET_ICONV, "CP949" },
	{ "uhc", CHARSET_ICONV, "CP949" },
	{ "iso2022kr", CHARSET_ICONV, "ISO-2022-KR" },
	{ "johab", CHARSET_ICONV, "JOHAB" },
	{ "utf7", CHARSET_ICONV, "UTF-7" },
	{ "unicode11utf7", CHARSET_ICONV, "UTF-7" },
	{ "utf16", CHARSET_ICONV, "UTF-16" },
	{ "utf16le", CHARSET_ICONV, "UTF-16LE" },
	{ "utf16be", CHARSET_ICONV, "UTF-16BE" },
	{ "utf32", CHARSET_ICONV, "UTF-32" },
	{ "utf32le", CHARSET_ICONV, "UTF-32LE" },
	{ "utf32be", CHARSET_ICONV, "UTF-32BE" },
};

/* windows-1252 from 0x80 to 0x9f (0: undefined, kept as the C1 control). */
static const uint16_t windows_1252[32] = { 0x20ac, 0, 0x201a, 0x0192, 0x201e,
	0x2026, 0x2020, 0x2021, 0x02c6, 0x2030, 0x0160, 0x2039, 0x0152, 0,
	0x017d, 0, 0, 0x2018, 0x2019, 0x201c, 0x201d, 0x2022, 0x2013, 0x2014,
	0x02dc, 0x2122, 0x0161, 0x203a, 0x0153, 0, 0x017e, 0x0178 };

static const struct charset_row *
find_row(struct str name)
{
	char key[MAX_NAME];
	size_t len = 0;
	for (size_t i = 0; i < name.len; i++) {
		char c = ascii_lower(name.ptr[i]);
		if (!ascii_is_alpha(c) && !ascii_is_digit(c))
			continue;
		if (len == sizeof key)
			return NULL;
		key[len++] = c;
	}
	if (len == 0)
		return NULL;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		if (rows[i].name[0] == key[0] &&
		    str_eq(str_of(key, len), str_c(rows[i].name)))
			return &rows[i];
	return NULL;
}

bool
charset_known(struct str name)
{
	return find_row(name) != NULL;
}

void
charset_init(struct charset *c, struct str name)
{
	const struct charset_row *row = find_row(name);
	*c = (struct charset){ .kind = CHARSET_GUESS };
	if (row == NULL)
		return;
	if (row->iconv != NULL) {
		iconv_t handle = iconv_open("UTF-8", row->iconv);
		if (handle == (iconv_t)-1)
			return;
		c->handle = handle;
	}
	c->kind = row->kind;
}

void
charset_done(struct charset *c)
{
	if (c->handle != NULL)
		iconv_close((iconv_t)c->handle);
	*c = (struct charset){ .kind = CHARSET_GUESS };
}

static void
put_1252(struct buf *out, unsigned char byte)
{
	uint32_t cp = byte;
	if (byte >= 0x80 && byte < 0xa0 && windows_1252[byte - 0x80] != 0)
		cp = windows_1252[byte - 0x80];
	utf8_encode(out, cp);
}

/* Whether `s`, no complete sequence, could become one with more bytes. */
static bool
utf8_incomplete(struct str s)
{
	unsigned char lead = (unsigned char)s.ptr[0];
	size_t want = lead >= 0xf0 && lead <= 0xf4 ? 4
	    : lead >= 0xe0 && lead < 0xf0	   ? 3
	    : lead >= 0xc2 && lead < 0xe0	   ? 2
						   : 0;
	if (s.len >= want)
		return false;
	for (size_t i = 1; i < s.len; i++)
		if (((unsigned char)s.ptr[i] & 0xc0) != 0x80)
			return false;
	if (s.len < 2)
		return true;
	/* the second byte decides on overlong forms and surrogates */
	unsigned char second = (unsigned char)s.ptr[1];
	return !((lead == 0xe0 && second < 0xa0) ||
	    (lead == 0xed && second > 0x9f) ||
	    (lead == 0xf0 && second < 0x90) ||
	    (lead == 0xf4 && second > 0x8f));
}

/* A run of bytes that needs no look: ASCII. */
static size_t
ascii_run(struct str s)
{
	size_t i = 0;
	while (i < s.len && (unsigned char)s.ptr[i] < 0x80)
		i++;
	return i;
}

/* Bytes used; the rest is an incomplete sequence (none when `last`). */
static size_t
decode_native(
    enum charset_kind kind, struct str s, bool last, struct buf *out)
{
	size_t at = 0;
	while (at < s.len) {
		struct str rest = str_skip(s, at);
		size_t n = ascii_run(rest);
		buf_add(out, rest.ptr, n);
		at += n;
		if (at == s.len)
			break;
		rest = str_skip(s, at);
		unsigned char byte = (unsigned char)rest.ptr[0];
		if (kind == CHARSET_WINDOWS_1252) {
			put_1252(out, byte);
			at++;
			continue;
		}
		uint32_t cp;
		n = utf8_decode(rest, &cp);
		if (n > 0) {
			buf_add(out, rest.ptr, n);
			at += n;
			continue;
		}
		if (!last && utf8_incomplete(rest))
			break;
		if (kind == CHARSET_UTF8)
			utf8_encode(out, REPLACEMENT);
		else
			put_1252(out, byte);
		at++;
	}
	return at;
}

static size_t
decode_iconv(struct charset *c, struct str s, bool last, struct buf *out)
{
	char *in = (char *)(uintptr_t)s.ptr;
	size_t in_len = s.len;
	while (in_len > 0 && out->error == RES_OK) {
		char chunk[OUT_CHUNK];
		char *o = chunk;
		size_t o_len = sizeof chunk;
		size_t r = iconv((iconv_t)c->handle, &in, &in_len, &o, &o_len);
		int saved = errno;
		buf_add(out, chunk, sizeof chunk - o_len);
		if (r != (size_t)-1)
			continue;
		if (saved == E2BIG)
			continue;
		if (saved == EINVAL && !last && in_len < CHARSET_MAX_PENDING)
			break;
		utf8_encode(out, REPLACEMENT);
		in++;
		in_len--;
	}
	return s.len - in_len;
}

/* RFC 1843: ~{ and ~} switch, GB codes are seven-bit pairs. Makes EUC of a
 * prefix of `s` and converts that. */
static size_t
decode_hz(struct charset *c, struct str s, bool last, struct buf *out)
{
	size_t at = 0;
	while (at < s.len) {
		char *p = (char *)(uintptr_t)s.ptr + at;
		if (at + 1 == s.len && !last && (*p == '~' || c->hz_gb))
			break;
		char next = at + 1 < s.len ? p[1] : '\0';
		char pair[2] = { *p, next };
		size_t used = 1, give = 1;
		if (*p == '~' && next == '{') {
			c->hz_gb = true, used = 2, give = 0;
		} else if (*p == '~' && next == '}') {
			c->hz_gb = false, used = 2, give = 0;
		} else if (*p == '~' && next == '~') {
			used = 2;
		} else if (*p == '~' && next == '\n') {
			used = 2, give = 0;
		} else if (c->hz_gb && *p > 0x20 && next > 0x20) {
			used = give = 2;
			pair[0] = (char)(*p | 0x80);
			pair[1] = (char)(next | 0x80);
		} else if (*p == '\n') {
			c->hz_gb = false; /* a line ends the mode */
		}
		if (give > 0)
			decode_iconv(c, str_of(pair, give), true, out);
		at += used;
	}
	return at;
}

static size_t
decode(struct charset *c, struct str s, bool last, struct buf *out)
{
	switch (c->kind) {
	case CHARSET_ICONV:
		return decode_iconv(c, s, last, out);
	case CHARSET_HZ:
		return decode_hz(c, s, last, out);
	case CHARSET_GUESS:
	case CHARSET_UTF8:
	case CHARSET_WINDOWS_1252:
		break;
	}
	return decode_native(c->kind, s, last, out);
}

/* Bytes held back are completed one by one from the new chunk, so that no
 * chunk is ever copied. */
static struct str
drain_pending(struct charset *c, struct str s, struct buf *out)
{
	while (c->pending_len > 0 && s.len > 0) {
		c->pending[c->pending_len++] = (unsigned char)s.ptr[0];
		s = str_skip(s, 1);
		struct str held = str_of(c->pending, c->pending_len);
		size_t used = decode(c, held,
		    c->pending_len == CHARSET_MAX_PENDING, out);
		c->pending_len -= used;
		memmove(c->pending, c->pending + used, c->pending_len);
	}
	return s;
}

void
charset_push(struct charset *c, const char *bytes, size_t len, struct buf *out)
{
	struct str s = drain_pending(c, str_of(bytes, len), out);
	if (s.len == 0)
		return;
	size_t used = decode(c, s, false, out);
	size_t left = s.len - used;
	if (left > CHARSET_MAX_PENDING - 1)
		left = 0; /* only after an output error */
	memcpy(c->pending, s.ptr + used, left);
	c->pending_len = left;
}

void
charset_finish(struct charset *c, struct buf *out)
{
	struct str held = str_of(c->pending, c->pending_len);
	if (held.len > 0)
		(void)decode(c, held, true, out);
	c->pending_len = 0;
	if (c->handle == NULL)
		return;
	/* some converters hold a character back for a combining mark */
	char chunk[64];
	char *o = chunk;
	size_t o_len = sizeof chunk;
	(void)iconv((iconv_t)c->handle, NULL, NULL, &o, &o_len);
	buf_add(out, chunk, sizeof chunk - o_len);
}

void
charset_decode(struct str name, struct str text, struct buf *out)
{
	struct charset c;
	charset_init(&c, name);
	charset_push(&c, text.ptr, text.len, out);
	charset_finish(&c, out);
	charset_done(&c);
}
