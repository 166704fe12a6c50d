#include "mail/taglist.h"

#include "base/codec.h"
#include "base/word.h"

/* Scanners of RFC 6376 §3.2; FWS of §2.8, with the obsolete form of several
 * folds in a row (RFC 5322 §4.2), which senders do produce. */

struct scan {
	struct str text;
	size_t at;
};

static bool
at_end(const struct scan *s)
{
	return s->at >= s->text.len;
}

/* Length of the WSP or of the CRLF with WSP behind it at `i`, 0 for none. */
static size_t
fws_at(struct str t, size_t i)
{
	if (i < t.len && ascii_is_wsp(t.ptr[i]))
		return 1;
	if (i + 2 < t.len && t.ptr[i] == '\r' && t.ptr[i + 1] == '\n' &&
	    ascii_is_wsp(t.ptr[i + 2]))
		return 3;
	return 0;
}

static void
skip_fws(struct scan *s)
{
	size_t n;
	while ((n = fws_at(s->text, s->at)) != 0)
		s->at += n;
}

static bool
is_name_byte(char c, bool first)
{
	return ascii_is_alpha(c) || (!first && (ascii_is_digit(c) || c == '_'));
}

static enum res
scan_name(struct scan *s, struct str *out)
{
	size_t from = s->at;
	while (!at_end(s) && is_name_byte(s->text.ptr[s->at], s->at == from))
		s->at++;
	*out = str_sub(s->text, from, s->at - from);
	return out->len != 0 ? RES_OK : RES_SYNTAX;
}

/* VALCHAR of RFC 6376 §3.2. */
static bool
is_value_byte(char c)
{
	return c >= 0x21 && c <= 0x7e && c != ';';
}

/* Behind the value bytes that begin at `at`: most of a list is base64, so
 * eight at a time. */
static size_t
skip_value(struct str t, size_t at)
{
	while (t.len - at >= 8) {
		uint64_t w = get_le64((const uint8_t *)t.ptr + at);
		uint64_t good = word_at_least(w, 0x21) &
		    ~(word_at_least(w, 0x7f) | word_equal(w, ';'));
		if (good != WORD_HIGH)
			return at +
			    (size_t)__builtin_ctzll(~good & WORD_HIGH) / 8;
		at += 8;
	}
	while (at < t.len && is_value_byte(t.ptr[at]))
		at++;
	return at;
}

/* Up to the ";" or the end. The value ends behind its last byte that is not
 * FWS; a fold without a blank behind it is no FWS and so an error. */
static enum res
scan_value(struct scan *s, bool allow_utf8, struct tag *tag)
{
	const char *p = s->text.ptr;
	size_t at = s->at, end = s->text.len;
	bool ascii = true;
	tag->from = at;
	for (size_t n; (n = fws_at(s->text, at)) != 0;)
		at += n;
	size_t from = at, to = at;
	for (;;) {
		size_t word = at;
		at = skip_value(s->text, at);
		if (at > word)
			to = at;
		if (at == end || p[at] == ';')
			break;
		size_t n = fws_at(s->text, at);
		if (n == 0) { /* no blank: RFC 8616 §5, or an error */
			if ((unsigned char)p[at] < 0x80)
				return RES_SYNTAX;
			ascii = false;
			to = at + 1;
			n = 1;
		}
		at += n;
	}
	s->at = tag->to = at;
	tag->value = str_sub(s->text, from, to - from);
	if (ascii)
		return RES_OK;
	return allow_utf8 && utf8_valid(tag->value) ? RES_OK : RES_SYNTAX;
}

static bool
has_name(const struct taglist *t, struct str name)
{
	for (size_t i = 0; i < t->count; i++)
		if (str_eq(t->tags[i].name, name))
			return true;
	return false;
}

static enum res
scan_tag(struct scan *s, bool allow_utf8, struct taglist *out)
{
	struct tag tag;
	enum res r = scan_name(s, &tag.name);
	if (r != RES_OK)
		return r;
	skip_fws(s);
	if (at_end(s) || s->text.ptr[s->at] != '=')
		return RES_SYNTAX;
	s->at++;
	r = scan_value(s, allow_utf8, &tag);
	if (r != RES_OK)
		return r;
	if (has_name(out, tag.name))
		return RES_SYNTAX;
	if (out->count == TAGLIST_MAX)
		return RES_LIMIT;
	out->tags[out->count++] = tag;
	return RES_OK;
}

enum res
taglist_parse(struct str text, bool allow_utf8, struct taglist *out)
{
	/* An empty value is told from an absent one by its ptr. */
	struct scan s = { text.ptr != NULL ? text : str_c(""), 0 };
	out->count = 0;
	for (;;) {
		skip_fws(&s);
		enum res r = scan_tag(&s, allow_utf8, out);
		if (r != RES_OK)
			return r;
		if (at_end(&s))
			return RES_OK;
		s.at++; /* the ";" */
		skip_fws(&s);
		if (at_end(&s))
			return RES_OK;
	}
}

const struct tag *
taglist_find(const struct taglist *t, const char *name)
{
	struct str wanted = str_c(name);
	for (size_t i = 0; i < t->count; i++)
		if (str_eq(t->tags[i].name, wanted))
			return &t->tags[i];
	return NULL;
}

struct str
taglist_get(const struct taglist *t, const char *name)
{
	const struct tag *tag = taglist_find(t, name);
	return tag != NULL ? tag->value : STR_EMPTY;
}

static bool
is_fws_byte(char c)
{
	return ascii_is_wsp(c) || c == '\r' || c == '\n';
}

struct str
taglist_strip(struct arena *a, struct str value)
{
	char *p = arena_alloc_raw(a, value.len);
	if (p == NULL)
		return STR_EMPTY;
	size_t n = 0;
	for (size_t i = 0; i < value.len;) {
		size_t from = i;
		i = skip_value(value, i);
		memcpy(p + n, value.ptr + from, i - from);
		n += i - from;
		for (; i < value.len && !is_value_byte(value.ptr[i]); i++)
			if (!is_fws_byte(value.ptr[i]))
				p[n++] = value.ptr[i];
	}
	return str_of(p, n);
}

enum res
taglist_unquote(struct arena *a, struct str value, struct str *out)
{
	struct str v = taglist_strip(a, value);
	if (v.ptr == NULL)
		return RES_NOMEM;
	char *p = (char *)v.ptr;
	size_t n = 0;
	for (size_t i = 0; i < v.len; i++) {
		unsigned char c = (unsigned char)v.ptr[i];
		if (c == '=') {
			if (v.len - i < 3 || hex_digit(v.ptr[i + 1]) < 0 ||
			    hex_digit(v.ptr[i + 2]) < 0)
				return RES_SYNTAX;
			c = (unsigned char)(hex_digit(v.ptr[i + 1]) << 4 |
			    hex_digit(v.ptr[i + 2]));
			i += 2;
		} else if (c < 0x21 || c == ';' || c == 0x7f) {
			return RES_SYNTAX;
		}
		p[n++] = (char)c;
	}
	*out = str_of(p, n);
	return RES_OK;
}
