/* The lexical part of RFC 5322 §3.2 with the obsolete forms of §4.1, for
 * addresses and Authentication-Results. Scanners take what they are named
 * after at the cursor; where they fail the cursor means nothing. */
#ifndef MAIL_SCAN_H
#define MAIL_SCAN_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/res.h"
#include "base/str.h"

#define SCAN_MAX_NESTING 64 /* of comments; more is RES_LIMIT */

struct scan {
	struct str text;
	size_t at;
	struct str comment; /* the first one since this was emptied, with
	                       its parentheses */
};

/* The byte at the cursor, or -1 at the end. */
int scan_peek(const struct scan *s);
/* Step over `c` if it is next. */
bool scan_byte(struct scan *s, char c);

/* [CFWS]. RES_SYNTAX: a comment does not end, or holds a NUL or a line end
 * that is no fold; RES_LIMIT: nested too deep. */
HN_CHECK enum res scan_cfws(struct scan *s);
/* 1*atext, RES_NOTFOUND when the next byte is none. */
HN_CHECK enum res scan_atom(struct scan *s, struct str *out);
/* A quoted-string with its quotes; the cursor stands on the first one. */
HN_CHECK enum res scan_quoted(struct scan *s, struct str *out);
/* A domain-literal with its brackets; the cursor stands on "[". */
HN_CHECK enum res scan_literal(struct scan *s, struct str *out);

/* Append to `p`, which has room for quoted.len, what the quoted-string means;
 * gives the number of bytes. */
size_t scan_unquote(struct str quoted, char *p);
/* The text of a comment: without outer parentheses, escapes and folds. */
struct str scan_comment_text(struct arena *a, struct str comment);

#endif
