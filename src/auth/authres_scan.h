/* Words and values of Authentication-Results (RFC 8601 §2.2): inside of
 * auth/authres alone. Scanners are like those of mail/scan.h: they take what
 * they are named after at the cursor. */
#ifndef AUTH_AUTHRES_SCAN_H
#define AUTH_AUTHRES_SCAN_H

#include <stdbool.h>

#include "base/arena.h"
#include "mail/scan.h"

/* RFC 2045 §5.1: what may stand in a value without quotes. */
static inline bool
authres_is_token_byte(char c)
{
	return c > ' ' && c < 0x7f && strchr("()<>@,;:\\\"/[]?=", c) == NULL;
}

/* Words with single dots between; "/", "?" and "=" are atext, but no token. */
static inline bool
authres_is_dot_atom(struct str s)
{
	bool dot = true;
	for (size_t i = 0; i < s.len; i++) {
		char c = s.ptr[i];
		if (c == '.' && dot)
			return false;
		dot = c == '.';
		if (!dot && !authres_is_token_byte(c) && c != '/' && c != '?' &&
		    c != '=')
			return false;
	}
	return !dot;
}

struct authres_scan {
	struct arena *arena;
	struct scan s;
	bool strict; /* else as the world writes */
};

/* Letters, digits and inner hyphens; not strict: a run without "=" "." "/",
 * or a quoted-string. */
HN_CHECK enum res authres_word(struct authres_scan *w, struct str *out);
HN_CHECK enum res authres_keyword(struct authres_scan *w, struct str *out);
/* token / quoted-string */
HN_CHECK enum res authres_strict_value(struct authres_scan *w, struct str *out);
/* value / [ [ local-part ] "@" ] domain-name; a quoted local-part is given as
 * written. */
HN_CHECK enum res authres_pvalue(struct authres_scan *w, struct str *out);
/* Anything up to a blank, comment or ";", with quoted parts in it; may be
 * empty, but is no second "=". */
HN_CHECK enum res authres_loose_value(struct authres_scan *w, struct str *out);
/* A quoted-string, or a run up to a blank, comment, ";" or "=". */
HN_CHECK enum res authres_loose_id(struct authres_scan *w, struct str *out);
/* Digits; a number too large comes out as UINT_MAX. */
HN_CHECK enum res authres_version(struct authres_scan *w, unsigned *out);

/* Fields of the world may have line ends anywhere: a copy without them, a
 * blank in place of those that no blank follows. */
HN_CHECK enum res authres_join_lines(struct arena *a, struct str *value);

#endif
