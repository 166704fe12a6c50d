/* The words of a query's text: where reading has come to, what stands there.
 * The first error sticks, with its place. */
#ifndef ARCHIVE_QUERY_LEXER_H
#define ARCHIVE_QUERY_LEXER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/res.h"
#include "base/str.h"

struct lexer {
	struct str text;
	size_t at;
	struct err *err;
	enum res res;
	/* of the value read last: where it begins, how it was written */
	size_t token;
	bool quoted, star;
};

/* "at 7: WHATMORE", for the byte before which `at` others stand. */
void lexer_fail(struct lexer *l, size_t at, enum res r, const char *what,
    struct str more);
bool lexer_is_blank(char c);
void lexer_skip_blanks(struct lexer *l);
/* All from here on. */
struct str lexer_rest(const struct lexer *l);
/* Past this character, if it is the next. */
bool lexer_take(struct lexer *l, char c);
/* The same for a keyword in capitals that stands alone, and blanks behind. */
bool lexer_keyword(struct lexer *l, const char *word);
/* A "phrase" or a word up to a blank, a parenthesis or a quotation mark; a '*'
 * right behind it is not part of it. May be empty. */
struct str lexer_value(struct lexer *l);
/* "name:" at this place, letters and dots only, as name. */
bool lexer_field_name(const struct lexer *l, struct str *out);

#endif
