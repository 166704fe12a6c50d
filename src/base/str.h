/* A view of bytes: never owns, not NUL-terminated, may contain NUL. The empty
 * view has len 0; its ptr may be NULL. Case folding here is ASCII only, as
 * mail's grammars want (RFC 5234 §2.3). */
#ifndef BASE_STR_H
#define BASE_STR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/res.h"

struct str {
	const char *ptr;
	size_t len;
};

#define STR(literal) ((struct str){ "" literal, sizeof(literal) - 1 })
#define STR_EMPTY ((struct str){ NULL, 0 })
/* printf("%.*s", STR_ARG(s)) for text known to hold no hostile bytes. */
#define STR_ARG(s) (int)((s).len > 4096 ? 4096 : (s).len), \
	((s).ptr != NULL ? (s).ptr : "")

/* A view of a C string; NULL gives the empty view. */
struct str str_c(const char *c);
static inline struct str
str_of(const void *ptr, size_t len)
{
	return (struct str){ (const char *)ptr, len };
}

static inline bool
str_eq(struct str a, struct str b)
{
	return a.len == b.len &&
	    (a.len == 0 ||
		(a.ptr[0] == b.ptr[0] && memcmp(a.ptr, b.ptr, a.len) == 0));
}
bool str_case_eq(struct str a, struct str b);
/* Like strcmp and strcasecmp, by unsigned bytes; a prefix sorts first. */
int str_cmp(struct str a, struct str b);
int str_case_cmp(struct str a, struct str b);
bool str_starts(struct str s, struct str prefix);
bool str_case_starts(struct str s, struct str prefix);
bool str_ends(struct str s, struct str suffix);
bool str_case_ends(struct str s, struct str suffix);

/* Position of the first `c` or needle, or SIZE_MAX when absent. */
size_t str_chr(struct str s, char c);
size_t str_rchr(struct str s, char c);
size_t str_find(struct str s, struct str needle);
size_t str_case_find(struct str s, struct str needle);

/* The part from `from` on, at most `len` bytes; out of range gives less. */
static inline struct str
str_sub(struct str s, size_t from, size_t len)
{
	if (from > s.len)
		from = s.len;
	if (len > s.len - from)
		len = s.len - from;
	return (struct str){ s.ptr != NULL ? s.ptr + from : NULL, len };
}
static inline struct str
str_skip(struct str s, size_t n)
{
	return str_sub(s, n, s.len);
}

/* Without SP, HTAB, CR and LF at both ends. */
struct str str_trim(struct str s);

/* Cut `rest` at the first `sep`: the part before it goes to `out`, `rest`
 * becomes what follows. False when `rest` is used up (ptr NULL). "a,,b" gives
 * "a", "", "b"; "" gives one empty part. */
bool str_split(struct str *rest, char sep, struct str *out);

/* Which line of `text`, from 1, the byte at `at` stands in; NULL: the last. */
size_t str_line_at(struct str text, const char *at);

/* Decimal digits only, no sign or blank, at least one; RES_LIMIT above max. */
HN_CHECK enum res str_to_u64(struct str s, uint64_t max, uint64_t *out);

/* Cut `n` decimal digits, or `c`, from the beginning of *s; false, and *s as
 * it was, when something else stands there. `n` is at most 9. */
bool str_take_digits(struct str *s, size_t n, int *out);
bool str_take_char(struct str *s, char c);

static inline char
ascii_lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c + 32) : c;
}
static inline bool
ascii_is_alpha(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
static inline bool
ascii_is_digit(char c)
{
	return c >= '0' && c <= '9';
}
static inline bool
ascii_is_wsp(char c)
{
	return c == ' ' || c == '\t';
}

#endif
