#include "mail/address.h"

#include "base/codec.h"
#include "mail/scan.h"

/* No backtracking: an address begins with words and dots in any case, and the
 * byte behind them tells what they were.
 *
 *     words "@"  a local part          words "<"  a display name
 *     words ":"  a group's name        anything else: no address */
struct parse {
	struct arena *arena;
	struct scan scan;
	struct address_list *list;
	size_t capacity;
};

/* Words and dots from the cursor on, with the CFWS between and behind. */
struct words {
	struct str span;
	size_t count;
	bool dotted; /* words alternate with single dots: a local part */
};

static enum res
scan_word(struct scan *s, struct str *out)
{
	return scan_peek(s) == '"' ? scan_quoted(s, out) : scan_atom(s, out);
}

static enum res
scan_words(struct scan *s, struct words *out)
{
	size_t from = s->at;
	bool after_word = false;
	*out = (struct words){ .dotted = true };
	for (;;) {
		struct str word;
		if (scan_byte(s, '.')) {
			out->dotted &= after_word;
			after_word = false;
		} else {
			enum res r = scan_word(s, &word);
			if (r == RES_NOTFOUND)
				break;
			if (r != RES_OK)
				return r;
			out->dotted &= !after_word;
			after_word = true;
			out->count++;
		}
		enum res r = scan_cfws(s);
		if (r != RES_OK)
			return r;
	}
	out->dotted &= after_word;
	out->span = str_sub(s->text, from, s->at - from);
	return RES_OK;
}

/* The meaning of scanned words: quotes and comments gone, and what was blank
 * between two words one SP (`spaced`) or nothing. */
static struct str
words_text(struct arena *a, struct str span, bool spaced)
{
	struct scan s = { span, 0, STR_EMPTY };
	char *p = arena_alloc(a, span.len * 2);
	size_t n = 0, before = 0;
	if (p == NULL)
		return STR_EMPTY;
	while (s.at < span.len) {
		struct str word = STR_EMPTY;
		if (spaced && n > 0 && s.at > before)
			p[n++] = ' ';
		if (scan_byte(&s, '.')) {
			p[n++] = '.';
		} else if (scan_peek(&s) == '"') {
			if (scan_quoted(&s, &word) != RES_OK)
				break;
			n += scan_unquote(word, p + n);
		} else {
			if (scan_atom(&s, &word) != RES_OK)
				break;
			memcpy(p + n, word.ptr, word.len);
			n += word.len;
		}
		before = s.at;
		if (scan_cfws(&s) != RES_OK)
			break;
	}
	return str_of(p, n);
}

/* domain = dot-atom / domain-literal / obs-domain, and CFWS behind it. */
static enum res
scan_domain(struct parse *p, struct str *out)
{
	struct scan *s = &p->scan;
	enum res r = scan_cfws(s);
	if (r != RES_OK)
		return r;
	if (scan_peek(s) == '[') {
		r = scan_literal(s, out);
		return r == RES_OK ? scan_cfws(s) : r;
	}
	size_t from = s->at;
	for (;;) {
		struct str atom;
		r = scan_atom(s, &atom);
		if (r == RES_NOTFOUND && s->at > from)
			break; /* the dot at the end */
		if (r != RES_OK)
			return RES_SYNTAX;
		if ((r = scan_cfws(s)) != RES_OK)
			return r;
		if (!scan_byte(s, '.'))
			break;
		if ((r = scan_cfws(s)) != RES_OK)
			return r;
	}
	struct str span = str_sub(s->text, from, s->at - from);
	*out = words_text(p->arena, span, false);
	return out->ptr != NULL ? RES_OK : RES_NOMEM;
}

static enum res
add_address(struct parse *p, struct address item)
{
	struct address_list *l = p->list;
	if (l->count == ADDRESS_MAX)
		return RES_LIMIT;
	if (l->count == p->capacity) {
		size_t capacity = p->capacity != 0 ? p->capacity * 4 : 4;
		struct address *items =
		    arena_array(p->arena, capacity, sizeof *items);
		if (items == NULL)
			return RES_NOMEM;
		if (l->count != 0)
			memcpy(items, l->items, l->count * sizeof *items);
		l->items = items;
		p->capacity = capacity;
	}
	l->items[l->count++] = item;
	return RES_OK;
}

/* Words were a local part; the cursor stands behind the "@". */
static enum res
parse_addr_spec(struct parse *p, const struct words *w, struct address *out)
{
	if (!w->dotted)
		return RES_SYNTAX;
	out->local = words_text(p->arena, w->span, false);
	if (out->local.ptr == NULL)
		return RES_NOMEM;
	if (!utf8_valid(out->local))
		return RES_SYNTAX;
	return scan_domain(p, &out->domain);
}

/* obs-route = *(CFWS / ",") "@" domain *("," [CFWS] ["@" domain]) ":" */
static enum res
skip_route(struct parse *p)
{
	struct scan *s = &p->scan;
	struct str domain;
	while (!scan_byte(s, ':')) {
		enum res r = RES_OK;
		if (scan_byte(s, '@'))
			r = scan_domain(p, &domain);
		else if (!scan_byte(s, ','))
			r = RES_SYNTAX;
		if (r == RES_OK)
			r = scan_cfws(s);
		if (r != RES_OK)
			return r;
	}
	return RES_OK;
}

/* The cursor stands behind the "<". */
static enum res
parse_angle(struct parse *p, struct address *out)
{
	struct scan *s = &p->scan;
	struct words w;
	enum res r = scan_cfws(s);
	if (r != RES_OK)
		return r;
	if (scan_peek(s) == '@' || scan_peek(s) == ',') {
		if ((r = skip_route(p)) != RES_OK ||
		    (r = scan_cfws(s)) != RES_OK)
			return r;
	}
	if ((r = scan_words(s, &w)) != RES_OK)
		return r;
	if (!scan_byte(s, '@'))
		return RES_SYNTAX;
	if ((r = parse_addr_spec(p, &w, out)) != RES_OK)
		return r;
	if (!scan_byte(s, '>'))
		return RES_SYNTAX;
	return scan_cfws(s);
}

static enum res parse_group(struct parse *p);

/* A phrase begins with a word (obs-phrase), not with a dot. */
static bool
is_phrase(const struct words *w)
{
	return w->count > 0 && w->span.ptr[0] != '.';
}

/* One mailbox, or a group where `group_allowed`. */
static enum res
parse_address(struct parse *p, bool group_allowed)
{
	struct scan *s = &p->scan;
	struct address item = { STR_EMPTY, STR_EMPTY, STR_EMPTY };
	struct words w;
	enum res r = scan_words(s, &w);
	if (r != RES_OK)
		return r;
	bool phrase = false;
	if (scan_byte(s, '@')) {
		r = parse_addr_spec(p, &w, &item);
	} else if (scan_byte(s, '<')) {
		phrase = is_phrase(&w);
		if (!phrase && w.span.len != 0)
			return RES_SYNTAX;
		r = parse_angle(p, &item);
	} else if (scan_byte(s, ':')) {
		return group_allowed && is_phrase(&w) ? parse_group(p)
						      : RES_SYNTAX;
	} else {
		return RES_SYNTAX;
	}
	if (r != RES_OK)
		return r;
	if (phrase)
		item.display = words_text(p->arena, w.span, true);
	else if (s->comment.len != 0)
		item.display = scan_comment_text(p->arena, s->comment);
	if ((phrase || s->comment.len != 0) && item.display.ptr == NULL)
		return RES_NOMEM;
	return add_address(p, item);
}

/* Elements between commas up to `end` (-1: the end of the text); elements of
 * nothing or comments alone are obs-addr-list and obs-group-list. */
static enum res
parse_elements(struct parse *p, int end)
{
	struct scan *s = &p->scan;
	for (;;) {
		s->comment = STR_EMPTY;
		enum res r = scan_cfws(s);
		if (r != RES_OK)
			return r;
		if (scan_peek(s) != ',' && scan_peek(s) != end) {
			r = parse_address(p, end == -1);
			if (r != RES_OK)
				return r;
		}
		if (scan_peek(s) == end)
			return RES_OK;
		if (!scan_byte(s, ','))
			return RES_SYNTAX;
	}
}

/* The cursor stands behind the ":". */
static enum res
parse_group(struct parse *p)
{
	p->list->groups = true;
	enum res r = parse_elements(p, ';');
	if (r != RES_OK)
		return r;
	p->scan.at++;
	return scan_cfws(&p->scan);
}

enum res
address_parse_list(struct arena *a, struct str value, struct address_list *out)
{
	struct address_list list = { 0, NULL, false };
	struct parse p = {
		.arena = a, .scan.text = str_trim(value), .list = &list
	};
	enum res r = parse_elements(&p, -1);
	if (r != RES_OK)
		return r;
	if (list.count == 0 && !list.groups)
		return RES_SYNTAX;
	*out = list;
	return RES_OK;
}
