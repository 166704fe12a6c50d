#include "auth/authres_scan.h"

#include <limits.h>

#include "mail/domain.h"

/* --- lines ----------------------------------------------------------------- */
static bool
is_line_end(char c)
{
	return c == '\r' || c == '\n';
}

enum res
authres_join_lines(struct arena *a, struct str *value)
{
	char *p = arena_alloc(a, value->len);
	size_t n = 0;
	if (p == NULL)
		return RES_NOMEM;
	for (size_t i = 0; i < value->len; i++) {
		char c = value->ptr[i];
		char next = i + 1 < value->len ? value->ptr[i + 1] : '\0';
		if (!is_line_end(c))
			p[n++] = c;
		else if (!is_line_end(next) && !ascii_is_wsp(next))
			p[n++] = ' ';
	}
	*value = str_of(p, n);
	return RES_OK;
}

/* --- words and values of RFC 8601 ------------------------------------------ */
/* Keyword: letters, digits and inner hyphens. */
enum res
authres_keyword(struct authres_scan *w, struct str *out)
{
	size_t from = w->s.at;
	int c = scan_peek(&w->s);
	while (c > 0 &&
	    (ascii_is_alpha((char)c) || ascii_is_digit((char)c) || c == '-')) {
		w->s.at++;
		c = scan_peek(&w->s);
	}
	*out = str_sub(w->s.text, from, w->s.at - from);
	return out->len > 0 && !str_ends(*out, STR("-")) ? RES_OK : RES_SYNTAX;
}

static enum res
unquoted(struct authres_scan *w, struct str quoted, struct str *out)
{
	char *copy = arena_alloc(w->arena, quoted.len);
	if (copy == NULL)
		return RES_NOMEM;
	*out = str_of(copy, scan_unquote(quoted, copy));
	return RES_OK;
}

static bool
is_token(struct str s)
{
	for (size_t i = 0; i < s.len; i++)
		if (!authres_is_token_byte(s.ptr[i]))
			return false;
	return s.len != 0;
}

static bool
is_address_byte(int c)
{
	return c > 0 && c < 0x80 &&
	    (authres_is_token_byte((char)c) || c == '/' || c == '?' ||
		c == '=' || c == '@');
}

/* value = token / quoted-string */
enum res
authres_strict_value(struct authres_scan *w, struct str *out)
{
	size_t from = w->s.at;
	if (scan_peek(&w->s) == '"') {
		struct str quoted;
		enum res r = scan_quoted(&w->s, &quoted);
		return r == RES_OK ? unquoted(w, quoted, out) : r;
	}
	while (scan_peek(&w->s) > 0 &&
	    authres_is_token_byte((char)scan_peek(&w->s)))
		w->s.at++;
	*out = str_sub(w->s.text, from, w->s.at - from);
	return out->len != 0 ? RES_OK : RES_SYNTAX;
}

/* pvalue = value / [ [ local-part ] "@" ] domain-name, where a quoted
 * local-part is kept as written. */
enum res
authres_pvalue(struct authres_scan *w, struct str *out)
{
	size_t from = w->s.at;
	struct str quoted;
	if (scan_peek(&w->s) == '"') {
		enum res r = scan_quoted(&w->s, &quoted);
		if (r != RES_OK)
			return r;
		if (scan_peek(&w->s) != '@')
			return unquoted(w, quoted, out);
	}
	size_t run = w->s.at;
	while (is_address_byte(scan_peek(&w->s)))
		w->s.at++;
	struct str bare = str_sub(w->s.text, run, w->s.at - run);
	*out = str_sub(w->s.text, from, w->s.at - from);
	if (is_token(bare) && run == from)
		return RES_OK;
	size_t at = str_rchr(bare, '@');
	if (at == SIZE_MAX || !domain_valid(str_skip(bare, at + 1)))
		return RES_SYNTAX;
	return at == 0 || authres_is_dot_atom(str_sub(bare, 0, at))
	    ? RES_OK
	    : RES_SYNTAX;
}

/* --- words and values of the world ----------------------------------------- */
static bool
is_lenient_byte(int c)
{
	return c > ' ' && c != 0x7f && c != ';' && c != '(' && c != ')' &&
	    c != '"';
}

/* A word without "=", "." and "/", or a quoted one. */
static enum res
loose_word(struct authres_scan *w, struct str *out)
{
	size_t from = w->s.at;
	if (scan_peek(&w->s) == '"')
		return authres_strict_value(w, out);
	for (;; w->s.at++) {
		int c = scan_peek(&w->s);
		if (!is_lenient_byte(c) || c == '=' || c == '.' || c == '/')
			break;
	}
	*out = str_sub(w->s.text, from, w->s.at - from);
	return out->len != 0 ? RES_OK : RES_SYNTAX;
}

/* Anything up to a blank, comment or ";", with quoted parts in it; may be
 * empty, but is no second "=". */
enum res
authres_loose_value(struct authres_scan *w, struct str *out)
{
	size_t from = w->s.at;
	struct str quoted;
	bool quotes = false;
	for (;;) {
		if (scan_peek(&w->s) == '"') {
			enum res r = scan_quoted(&w->s, &quoted);
			if (r != RES_OK)
				return r;
			quotes = true;
		} else if (is_lenient_byte(scan_peek(&w->s))) {
			w->s.at++;
		} else {
			break;
		}
	}
	*out = str_sub(w->s.text, from, w->s.at - from);
	if (str_eq(*out, STR("=")))
		return RES_SYNTAX;
	/* user parts in quotes stay as written: "a b"@example.org */
	return quotes && quoted.len == out->len ? unquoted(w, quoted, out)
						: RES_OK;
}

enum res
authres_word(struct authres_scan *w, struct str *out)
{
	return w->strict ? authres_keyword(w, out) : loose_word(w, out);
}

/* --- versions -------------------------------------------------------------- */
enum res
authres_version(struct authres_scan *w, unsigned *out)
{
	size_t from = w->s.at;
	uint64_t n = UINT_MAX;
	while (scan_peek(&w->s) >= '0' && scan_peek(&w->s) <= '9')
		w->s.at++;
	struct str digits = str_sub(w->s.text, from, w->s.at - from);
	enum res r = str_to_u64(digits, UINT_MAX - 1, &n);
	if (r == RES_SYNTAX)
		return r;
	*out = (unsigned)n; /* too large: as unknown as any other */
	return RES_OK;
}

enum res
authres_loose_id(struct authres_scan *w, struct str *out)
{
	size_t from = w->s.at;
	if (scan_peek(&w->s) == '"')
		return authres_strict_value(w, out);
	while (is_lenient_byte(scan_peek(&w->s)) && scan_peek(&w->s) != '=')
		w->s.at++;
	*out = str_sub(w->s.text, from, w->s.at - from);
	return out->len != 0 ? RES_OK : RES_SYNTAX;
}
