#include "archive/search/query.h"
#include "archive/search/reader.h"

#define BEFORE 50
#define LENGTH 160

static bool
is_blank(char c)
{
	return (unsigned char)c <= ' ' || c == 0x7f;
}

/* One line: blanks and control bytes become single blanks. */
static struct str
one_line(struct arena *a, struct str text)
{
	char *p = arena_alloc(a, text.len + 1);
	size_t n = 0;
	if (p == NULL)
		return STR_EMPTY;
	for (size_t i = 0; i < text.len; i++) {
		bool blank = is_blank(text.ptr[i]);
		if (blank && (n == 0 || p[n - 1] == ' '))
			continue;
		p[n++] = blank ? ' ' : text.ptr[i];
	}
	return str_of(p, n);
}

static bool
is_word_byte(char c)
{
	return ascii_is_alpha(c) || ascii_is_digit(c) || (unsigned char)c >= 0x80;
}

/* The next place a word stands at: where a word may begin, and for ASCII
 * words that are no prefix, end. */
static size_t
find_word(struct str text, size_t from, const struct node *n)
{
	while (from < text.len) {
		size_t at = str_case_find(str_skip(text, from), n->text);
		if (at == SIZE_MAX)
			return SIZE_MAX;
		at += from;
		size_t end = at + n->text.len;
		bool ascii = (unsigned char)n->text.ptr[0] < 0x80;
		bool begins = !ascii || at == 0 || !is_word_byte(text.ptr[at - 1]);
		bool ends = !ascii || n->prefix || end == text.len ||
		    !is_word_byte(text.ptr[end]);
		if (begins && ends)
			return at;
		from = at + 1;
	}
	return SIZE_MAX;
}

static size_t
first_word(struct str text, const struct query *q)
{
	size_t best = SIZE_MAX;
	for (size_t i = 0; i < q->word_count; i++) {
		size_t at = find_word(text, 0, q->words[i]);
		if (at < best)
			best = at;
	}
	return best;
}

static size_t
char_start(struct str text, size_t at)
{
	while (at > 0 && at < text.len &&
	    ((unsigned char)text.ptr[at] & 0xc0) == 0x80)
		at--;
	return at;
}

/* The word of the query that stands at `at`; NULL: none does. */
static const struct node *
word_at(struct str text, size_t at, const struct query *q)
{
	for (size_t i = 0; i < q->word_count; i++)
		if (str_case_starts(str_skip(text, at), q->words[i]->text) &&
		    find_word(text, at, q->words[i]) == at)
			return q->words[i];
	return NULL;
}

struct str
snippet_make(struct arena *a, struct str text, const struct query *q)
{
	text = one_line(a, text);
	size_t found = first_word(text, q);
	size_t from = found != SIZE_MAX && found > BEFORE ? found - BEFORE : 0;
	from = char_start(text, from);
	size_t to = from + LENGTH < text.len ? char_start(text, from + LENGTH)
					     : text.len;
	struct buf b;
	buf_init(&b, 4 * LENGTH + 64);
	if (from > 0)
		buf_add_c(&b, "…");
	for (size_t at = from; at < to;) {
		const struct node *n = word_at(text, at, q);
		if (n == NULL || at + n->text.len > to) {
			buf_add_char(&b, text.ptr[at++]);
			continue;
		}
		buf_add_char(&b, SNIPPET_BEGIN);
		buf_add_str(&b, str_sub(text, at, n->text.len));
		buf_add_char(&b, SNIPPET_END);
		at += n->text.len;
	}
	if (to < text.len)
		buf_add_c(&b, "…");
	struct str out = arena_dup(a, buf_str(&b));
	buf_done(&b);
	return out;
}
