#include "base/str.h"

struct str
str_c(const char *c)
{
	return (struct str){ c, c != NULL ? strlen(c) : 0 };
}

bool
str_case_eq(struct str a, struct str b)
{
	return a.len == b.len && str_case_starts(a, b);
}

int
str_cmp(struct str a, struct str b)
{
	size_t n = a.len < b.len ? a.len : b.len;
	int d = n != 0 ? memcmp(a.ptr, b.ptr, n) : 0;
	if (d != 0)
		return d;
	return a.len < b.len ? -1 : a.len > b.len;
}

int
str_case_cmp(struct str a, struct str b)
{
	size_t n = a.len < b.len ? a.len : b.len;
	for (size_t i = 0; i < n; i++) {
		unsigned char x = (unsigned char)ascii_lower(a.ptr[i]);
		unsigned char y = (unsigned char)ascii_lower(b.ptr[i]);
		if (x != y)
			return x < y ? -1 : 1;
	}
	return a.len < b.len ? -1 : a.len > b.len;
}

bool
str_starts(struct str s, struct str prefix)
{
	return s.len >= prefix.len &&
	    str_eq(str_sub(s, 0, prefix.len), prefix);
}

bool
str_case_starts(struct str s, struct str prefix)
{
	if (s.len < prefix.len)
		return false;
	for (size_t i = 0; i < prefix.len; i++)
		if (ascii_lower(s.ptr[i]) != ascii_lower(prefix.ptr[i]))
			return false;
	return true;
}

bool
str_ends(struct str s, struct str suffix)
{
	return s.len >= suffix.len &&
	    str_eq(str_skip(s, s.len - suffix.len), suffix);
}

bool
str_case_ends(struct str s, struct str suffix)
{
	return s.len >= suffix.len &&
	    str_case_eq(str_skip(s, s.len - suffix.len), suffix);
}

size_t
str_chr(struct str s, char c)
{
	const char *p = s.len != 0 ? memchr(s.ptr, c, s.len) : NULL;
	return p != NULL ? (size_t)(p - s.ptr) : SIZE_MAX;
}

size_t
str_rchr(struct str s, char c)
{
	for (size_t i = s.len; i > 0; i--)
		if (s.ptr[i - 1] == c)
			return i - 1;
	return SIZE_MAX;
}

size_t
str_find(struct str s, struct str needle)
{
	if (needle.len == 0)
		return 0;
	const char *p =
	    s.len != 0 ? memmem(s.ptr, s.len, needle.ptr, needle.len) : NULL;
	return p != NULL ? (size_t)(p - s.ptr) : SIZE_MAX;
}

size_t
str_case_find(struct str s, struct str needle)
{
	for (size_t i = 0; i + needle.len <= s.len; i++)
		if (str_case_starts(str_skip(s, i), needle))
			return i;
	return SIZE_MAX;
}

static bool
is_trimmed(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

struct str
str_trim(struct str s)
{
	while (s.len > 0 && is_trimmed(s.ptr[0])) {
		s.ptr++;
		s.len--;
	}
	while (s.len > 0 && is_trimmed(s.ptr[s.len - 1]))
		s.len--;
	return s;
}

bool
str_split(struct str *rest, char sep, struct str *out)
{
	if (rest->ptr == NULL)
		return false;
	size_t at = str_chr(*rest, sep);
	if (at == SIZE_MAX) {
		*out = *rest;
		*rest = STR_EMPTY;
	} else {
		*out = str_sub(*rest, 0, at);
		*rest = str_skip(*rest, at + 1);
	}
	return true;
}

size_t
str_line_at(struct str text, const char *at)
{
	size_t line = 1;
	for (size_t i = 0; i < text.len; i++) {
		if (text.ptr + i == at)
			break;
		line += text.ptr[i] == '\n' &&
		    (i + 1 < text.len || at != NULL);
	}
	return line;
}

enum res
str_to_u64(struct str s, uint64_t max, uint64_t *out)
{
	uint64_t n = 0;
	if (s.len == 0)
		return RES_SYNTAX;
	for (size_t i = 0; i < s.len; i++)
		if (!ascii_is_digit(s.ptr[i]))
			return RES_SYNTAX;
	for (size_t i = 0; i < s.len; i++) {
		uint64_t digit = (uint64_t)(s.ptr[i] - '0');
		if (n > (UINT64_MAX - digit) / 10)
			return RES_LIMIT;
		n = n * 10 + digit;
	}
	if (n > max)
		return RES_LIMIT;
	*out = n;
	return RES_OK;
}

bool
str_take_digits(struct str *s, size_t n, int *out)
{
	int v = 0;
	if (s->len < n)
		return false;
	for (size_t i = 0; i < n; i++) {
		if (!ascii_is_digit(s->ptr[i]))
			return false;
		v = v * 10 + (s->ptr[i] - '0');
	}
	*s = str_skip(*s, n);
	*out = v;
	return true;
}

bool
str_take_char(struct str *s, char c)
{
	if (s->len == 0 || s->ptr[0] != c)
		return false;
	*s = str_skip(*s, 1);
	return true;
}
