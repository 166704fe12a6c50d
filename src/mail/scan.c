#include "mail/scan.h"

int
scan_peek(const struct scan *s)
{
	return s->at < s->text.len ? (unsigned char)s->text.ptr[s->at] : -1;
}

bool
scan_byte(struct scan *s, char c)
{
	if (scan_peek(s) != (unsigned char)c)
		return false;
	s->at++;
	return true;
}

/* CRLF with a blank behind it. */
static bool
at_fold(const struct scan *s)
{
	struct str rest = str_skip(s->text, s->at);
	return rest.len >= 3 && rest.ptr[0] == '\r' && rest.ptr[1] == '\n' &&
	    ascii_is_wsp(rest.ptr[2]);
}

/* A byte that may stand in comments, quoted strings and literals, or behind
 * a backslash there: all but NUL and line ends (obs-NO-WS-CTL included). */
static bool
is_text(int c)
{
	return c > 0 && c != '\r' && c != '\n';
}

/* One element inside comment, quoted-string or literal: a fold, an escaped
 * byte or a plain one. */
static enum res
scan_inner(struct scan *s)
{
	if (at_fold(s)) {
		s->at += 3;
		return RES_OK;
	}
	if (scan_byte(s, '\\') && !is_text(scan_peek(s)))
		return RES_SYNTAX;
	if (!is_text(scan_peek(s)))
		return RES_SYNTAX;
	s->at++;
	return RES_OK;
}

static enum res
scan_comment(struct scan *s)
{
	size_t from = s->at, depth = 0;
	do {
		if (scan_byte(s, '(')) {
			if (++depth > SCAN_MAX_NESTING)
				return RES_LIMIT;
		} else if (scan_byte(s, ')')) {
			depth--;
		} else {
			enum res r = scan_inner(s);
			if (r != RES_OK)
				return r;
		}
	} while (depth > 0);
	if (s->comment.len == 0)
		s->comment = str_sub(s->text, from, s->at - from);
	return RES_OK;
}

enum res
scan_cfws(struct scan *s)
{
	for (;;) {
		int c = scan_peek(s);
		if (c == ' ' || c == '\t') {
			s->at++;
		} else if (at_fold(s)) {
			s->at += 3;
		} else if (c == '(') {
			enum res r = scan_comment(s);
			if (r != RES_OK)
				return r;
		} else {
			return RES_OK;
		}
	}
}

/* atext of RFC 5322 §3.2.3, and all of 8 bits: RFC 6532 §3.2. */
static bool
is_atext(int c)
{
	return c >= 0x80 ||
	    (c > 0 &&
		(ascii_is_alpha((char)c) || ascii_is_digit((char)c) ||
		    strchr("!#$%&'*+-/=?^_`{|}~", c)));
}

enum res
scan_atom(struct scan *s, struct str *out)
{
	size_t from = s->at;
	while (is_atext(scan_peek(s)))
		s->at++;
	if (s->at == from)
		return RES_NOTFOUND;
	*out = str_sub(s->text, from, s->at - from);
	return RES_OK;
}

static enum res
scan_until(struct scan *s, char end, char never, struct str *out)
{
	size_t from = s->at++;
	while (!scan_byte(s, end)) {
		enum res r = scan_peek(s) == never ? RES_SYNTAX : scan_inner(s);
		if (r != RES_OK)
			return r;
	}
	*out = str_sub(s->text, from, s->at - from);
	return RES_OK;
}

enum res
scan_quoted(struct scan *s, struct str *out)
{
	return scan_until(s, '"', '\0', out);
}

enum res
scan_literal(struct scan *s, struct str *out)
{
	return scan_until(s, ']', '[', out);
}

/* Bytes of `s` without escapes and without the CRLF of folds, to `p`. */
static size_t
copy_inner(struct str s, char *p)
{
	size_t n = 0;
	for (size_t i = 0; i < s.len; i++) {
		if (s.ptr[i] == '\r' || s.ptr[i] == '\n')
			continue;
		if (s.ptr[i] == '\\' && i + 1 < s.len)
			i++;
		p[n++] = s.ptr[i];
	}
	return n;
}

size_t
scan_unquote(struct str quoted, char *p)
{
	return copy_inner(str_sub(quoted, 1, quoted.len - 2), p);
}

struct str
scan_comment_text(struct arena *a, struct str comment)
{
	char *p = arena_alloc(a, comment.len);
	if (p == NULL)
		return STR_EMPTY;
	size_t n = copy_inner(str_sub(comment, 1, comment.len - 2), p);
	return str_trim(str_of(p, n));
}
