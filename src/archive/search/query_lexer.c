#include "archive/search/query_lexer.h"

#include "base/codec.h"

void
lexer_fail(
    struct lexer *l, size_t at, enum res r, const char *what, struct str more)
{
	if (l->res != RES_OK)
		return;
	l->res = r;
	err_set(l->err, "at %zu: %s%.*s", at + 1, what, STR_ARG(more));
}

bool
lexer_is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

void
lexer_skip_blanks(struct lexer *l)
{
	while (l->at < l->text.len && lexer_is_blank(l->text.ptr[l->at]))
		l->at++;
}

struct str
lexer_rest(const struct lexer *l)
{
	return str_skip(l->text, l->at);
}

bool
lexer_take(struct lexer *l, char c)
{
	if (l->at >= l->text.len || l->text.ptr[l->at] != c)
		return false;
	l->at++;
	return true;
}

bool
lexer_keyword(struct lexer *l, const char *word)
{
	struct str r = lexer_rest(l), w = str_c(word);
	if (!str_starts(r, w))
		return false;
	if (r.len > w.len && !lexer_is_blank(r.ptr[w.len]) &&
	    r.ptr[w.len] != '(' && r.ptr[w.len] != ')')
		return false;
	l->at += w.len;
	lexer_skip_blanks(l);
	return true;
}

struct str
lexer_value(struct lexer *l)
{
	l->token = l->at;
	l->quoted = l->star = false;
	struct str value;
	if (lexer_take(l, '"')) {
		l->quoted = true;
		size_t from = l->at, end = str_chr(lexer_rest(l), '"');
		if (end == SIZE_MAX) {
			lexer_fail(l, l->token, RES_SYNTAX,
			    "this quotation mark is never closed", STR_EMPTY);
			return STR_EMPTY;
		}
		value = str_sub(l->text, from, end);
		l->at = from + end + 1;
		l->star = lexer_take(l, '*');
		return value;
	}
	size_t from = l->at;
	while (l->at < l->text.len && !lexer_is_blank(l->text.ptr[l->at]) &&
	    l->text.ptr[l->at] != '(' && l->text.ptr[l->at] != ')' &&
	    l->text.ptr[l->at] != '"')
		l->at++;
	value = str_sub(l->text, from, l->at - from);
	if (str_ends(value, STR("*"))) {
		value.len--;
		l->star = true;
	}
	return value;
}

bool
lexer_field_name(const struct lexer *l, struct str *out)
{
	struct str r = lexer_rest(l);
	size_t n = 0;
	while (n < r.len && (ascii_is_alpha(r.ptr[n]) || r.ptr[n] == '.'))
		n++;
	if (n == 0 || n == r.len || r.ptr[n] != ':')
		return false;
	*out = str_sub(r, 0, n);
	return true;
}
