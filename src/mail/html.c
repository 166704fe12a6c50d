#include "mail/html.h"

#include "base/codec.h"
#include "mail/entity.h"

#define NBSP 0xa0u

/* Elements that do not break a word in two. */
static const char *const inline_elements[] = { "a", "abbr", "acronym", "b",
	"bdi", "bdo", "big", "cite", "code", "data", "del", "dfn", "em", "font",
	"i", "ins", "kbd", "label", "mark", "nobr", "o:p", "q", "s", "samp",
	"small", "span", "strike", "strong", "sub", "sup", "time", "tt", "u",
	"var", "wbr" };

/* Their content is dropped … */
static const char *const raw_elements[] = { "script", "style", "noembed",
	"noframes", "xmp" };
/* … or text without tags in it. */
static const char *const rcdata_elements[] = { "title", "textarea" };

static bool
listed(const char *const *list, size_t count, struct str name)
{
	if (name.len == 0)
		return false;
	/* for every tag: the first letters alone tell most of them apart */
	for (size_t i = 0; i < count; i++)
		if (list[i][0] == name.ptr[0] && str_eq(name, str_c(list[i])))
			return true;
	return false;
}
#define LISTED(list, name) listed((list), sizeof(list) / sizeof *(list), (name))

void
html_init(struct html *h, struct buf *out)
{
	*h = (struct html){ .state = HTML_TEXT, .out = out };
}

/* --- text out, the lines of a quotation marked --- */

static void
begin_line(struct html *h)
{
	unsigned n = h->quotes < HTML_MAX_MARKS ? h->quotes : HTML_MAX_MARKS;
	for (; h->line_start && n > 0; n--)
		buf_add(h->out, "> ", 2);
	h->line_start = false;
}

static void
put(struct html *h, const char *bytes, size_t len)
{
	while (h->quotes > 0 && len > 0) {
		const char *lf = memchr(bytes, '\n', len);
		size_t n = lf != NULL ? (size_t)(lf - bytes) : len;
		if (n > 0)
			begin_line(h);
		h->line_start = h->line_start || lf != NULL;
		n += lf != NULL;
		buf_add(h->out, bytes, n);
		bytes += n;
		len -= n;
	}
	buf_add(h->out, bytes, len);
}

static void
put_char(struct html *h, char c)
{
	put(h, &c, 1);
}

static void
put_str(struct html *h, struct str s)
{
	put(h, s.ptr, s.len);
}

static void
hold(struct html *h, char c)
{
	if (h->held_len < sizeof h->held)
		h->held[h->held_len++] = c;
}

static void
release(struct html *h)
{
	put(h, h->held, h->held_len);
	h->held_len = 0;
}

static bool
is_space(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f';
}

/* --- entities: held = "&" and what followed --- */

static void
put_cp(struct html *h, uint32_t cp)
{
	if (cp == 0 || cp > 0x10ffff || (cp >= 0xd800 && cp < 0xe000))
		cp = 0xfffd;
	if (cp == NBSP)
		cp = ' ';
	if (cp < 0x80) {
		put_char(h, (char)cp);
		return;
	}
	begin_line(h);
	utf8_encode(h->out, cp);
}

/* "#228", "#xE4" into a code point; false when there are no digits. */
static bool
number(struct str s, uint32_t *out)
{
	s = str_skip(s, 1);
	bool hex = s.len > 0 && ascii_lower(s.ptr[0]) == 'x';
	if (hex)
		s = str_skip(s, 1);
	uint32_t cp = 0;
	for (size_t i = 0; i < s.len; i++) {
		int digit = hex_digit(s.ptr[i]);
		if (digit < 0 || (!hex && digit > 9))
			return false;
		cp = cp * (hex ? 16u : 10u) + (uint32_t)digit;
		if (cp > 0x10ffff)
			cp = 0x110000;
	}
	*out = cp;
	return s.len > 0;
}

/* Names that old mail writes without a semicolon: "&nbsp;" and the rest of
 * Latin-1 may end anywhere, so the longest one that is a prefix counts. */
static size_t
legacy_prefix(struct str name, uint32_t *out)
{
	for (size_t n = name.len > 6 ? 6 : name.len; n >= 2; n--) {
		uint32_t cp = entity_find(str_sub(name, 0, n));
		if (cp != 0 && cp <= 0xff) {
			*out = cp;
			return n;
		}
	}
	return 0;
}

/* The reference in `held` ended; `semicolon`: by its ';'. */
static void
entity_end(struct html *h, bool semicolon)
{
	struct str name = str_sub(str_of(h->held, h->held_len), 1, SIZE_MAX);
	uint32_t cp = 0;
	size_t used = name.len;
	if (name.len > 0 && name.ptr[0] == '#') {
		if (number(name, &cp))
			put_cp(h, entity_number(cp));
		h->held_len = 0;
		return;
	}
	if (semicolon)
		cp = entity_find(name);
	if (cp == 0)
		used = legacy_prefix(name, &cp);
	if (cp == 0 || used == 0) {
		release(h);
		if (semicolon)
			put_char(h, ';');
		return;
	}
	h->held_len = 0;
	put_cp(h, cp);
	put_str(h, str_skip(name, used));
	if (semicolon && used < name.len)
		put_char(h, ';');
}

/* --- tags --- */

static void
name_char(struct html *h, char c)
{
	if (h->name_len < sizeof h->name)
		h->name[h->name_len++] = ascii_lower(c);
}

/* A <blockquote> or its end, on a line of its own. */
static void
quote(struct html *h)
{
	if (!h->end_tag)
		h->quotes++;
	else if (h->quotes > 0)
		h->quotes--;
	h->line_start = true;
}

static void
tag_end(struct html *h)
{
	struct str name = str_of(h->name, h->name_len);
	if (name.len > 0 && name.ptr[name.len - 1] == '/')
		name.len--; /* <br/> */
	h->state = HTML_TEXT;
	if (!LISTED(inline_elements, name))
		put_char(h, '\n');
	if (str_eq(name, STR("blockquote")))
		quote(h);
	if (h->end_tag)
		return;
	h->raw_shown = LISTED(rcdata_elements, name);
	if (h->raw_shown || LISTED(raw_elements, name)) {
		memcpy(h->raw, name.ptr, name.len);
		h->raw[name.len] = '\0';
		h->state = HTML_RAW;
	} else if (str_eq(name, STR("plaintext"))) {
		h->state = HTML_PLAIN;
	}
}

static void
tag_open(struct html *h, char c)
{
	h->held_len = 0;
	h->name_len = 0;
	h->end_tag = false;
	if (ascii_is_alpha(c)) {
		h->state = HTML_NAME;
		name_char(h, c);
	} else if (c == '/') {
		h->state = HTML_END_OPEN;
	} else if (c == '!') {
		h->state = HTML_MARKUP;
	} else if (c == '?') {
		h->state = HTML_BOGUS;
	} else if (c == '<') {
		put_char(h, '<'); /* and this one opens anew */
	} else {
		h->state = c == '&' ? HTML_ENTITY : HTML_TEXT;
		put_char(h, '<');
		if (c == '&')
			hold(h, c);
		else
			put_char(h, c);
	}
}

static void
end_open(struct html *h, char c)
{
	h->end_tag = true;
	if (ascii_is_alpha(c)) {
		h->state = HTML_NAME;
		name_char(h, c);
	} else {
		h->state = c == '>' ? HTML_TEXT : HTML_BOGUS;
	}
}

static void
attributes(struct html *h, char c)
{
	if (c == '>')
		tag_end(h);
	else if (c == '=')
		h->state = HTML_VALUE_START;
}

static void
value_start(struct html *h, char c)
{
	if (c == '"')
		h->state = HTML_DOUBLE_QUOTED;
	else if (c == '\'')
		h->state = HTML_SINGLE_QUOTED;
	else if (c == '>')
		tag_end(h);
	else if (!is_space(c))
		h->state = HTML_VALUE;
}

/* Behind "<!": held collects until it is known what this is. */
static void
markup(struct html *h, char c)
{
	hold(h, c);
	struct str s = str_of(h->held, h->held_len);
	if (str_eq(s, STR("--"))) {
		h->state = HTML_COMMENT;
		h->dashes = 2; /* "<!-->" is a whole comment */
		h->held_len = 0;
	} else if (str_eq(s, STR("[CDATA["))) {
		h->state = HTML_CDATA;
		h->held_len = 0;
	} else if (!str_starts(STR("--"), s) && !str_starts(STR("[CDATA["), s)) {
		h->state = c == '>' ? HTML_TEXT : HTML_BOGUS;
		h->held_len = 0;
	}
}

/* "-->", also "--!>"; dashes counts those just before this character, 3 means
 * "--!". */
static void
comment(struct html *h, char c)
{
	if (c == '>' && h->dashes >= 2)
		h->state = HTML_TEXT;
	else if (c == '-')
		h->dashes = h->dashes == 3 ? 1 : h->dashes < 2 ? h->dashes + 1 : 2;
	else
		h->dashes = c == '!' && h->dashes == 2 ? 3 : 0;
}

/* "]]>" ends it; what is inside is shown. */
static void
cdata(struct html *h, char c)
{
	if (c == ']') {
		if (h->held_len == 2)
			put_char(h, c);
		else
			hold(h, c);
		return;
	}
	if (c == '>' && h->held_len == 2) {
		h->held_len = 0;
		h->state = HTML_TEXT;
		return;
	}
	release(h);
	put_char(h, c);
}

/* --- raw text: held = "</scri", shown again if it is no end tag --- */

static void
raw_back(struct html *h, char c)
{
	if (h->raw_shown)
		release(h);
	h->held_len = 0;
	h->state = HTML_RAW;
	if (c == '<') {
		hold(h, c);
		h->state = HTML_RAW_LESS;
	} else if (h->raw_shown) {
		put_char(h, c);
	}
}

static void
raw_end_name(struct html *h, char c)
{
	struct str name = str_of(h->name, h->name_len);
	bool same = str_eq(name, str_c(h->raw));
	if (ascii_is_alpha(c) && h->name_len < strlen(h->raw)) {
		name_char(h, c);
		hold(h, c);
	} else if (same && (c == '>' || c == '/' || is_space(c))) {
		h->held_len = 0;
		h->end_tag = true;
		if (c == '>')
			tag_end(h);
		else
			h->state = HTML_ATTRIBUTES;
	} else {
		raw_back(h, c);
	}
}

static void
text(struct html *h, char c)
{
	if (c == '<') {
		h->state = HTML_TAG_OPEN;
	} else if (c == '&') {
		hold(h, c);
		h->state = HTML_ENTITY;
	} else if (c != '\0') {
		put_char(h, c);
	}
}

static void
entity(struct html *h, char c)
{
	bool alnum = ascii_is_alpha(c) || ascii_is_digit(c);
	if (alnum && h->held_len <= ENTITY_MAX_NAME) {
		hold(h, c);
		return;
	}
	if (c == '#' && h->held_len == 1) {
		hold(h, c);
		return;
	}
	h->state = HTML_TEXT;
	entity_end(h, c == ';');
	if (c != ';')
		text(h, c);
}

static void
step(struct html *h, char c)
{
	switch (h->state) {
	case HTML_TEXT:
		text(h, c);
		break;
	case HTML_ENTITY:
		entity(h, c);
		break;
	case HTML_TAG_OPEN:
		tag_open(h, c);
		break;
	case HTML_END_OPEN:
		end_open(h, c);
		break;
	case HTML_NAME:
		if (c == '>')
			tag_end(h);
		else if (is_space(c) || c == '/')
			h->state = HTML_ATTRIBUTES;
		else
			name_char(h, c);
		break;
	case HTML_ATTRIBUTES:
		attributes(h, c);
		break;
	case HTML_VALUE_START:
		value_start(h, c);
		break;
	case HTML_VALUE:
		if (c == '>')
			tag_end(h);
		else if (is_space(c))
			h->state = HTML_ATTRIBUTES;
		break;
	case HTML_DOUBLE_QUOTED:
		if (c == '"')
			h->state = HTML_ATTRIBUTES;
		break;
	case HTML_SINGLE_QUOTED:
		if (c == '\'')
			h->state = HTML_ATTRIBUTES;
		break;
	case HTML_MARKUP:
		markup(h, c);
		break;
	case HTML_COMMENT:
		comment(h, c);
		break;
	case HTML_BOGUS:
		if (c == '>')
			h->state = HTML_TEXT;
		break;
	case HTML_CDATA:
		cdata(h, c);
		break;
	case HTML_RAW:
		raw_back(h, c);
		break;
	case HTML_RAW_LESS:
		if (c == '/') {
			hold(h, c);
			h->name_len = 0;
			h->state = HTML_RAW_END_NAME;
		} else {
			raw_back(h, c);
		}
		break;
	case HTML_RAW_END_NAME:
		raw_end_name(h, c);
		break;
	case HTML_PLAIN:
		put_char(h, c);
		break;
	}
}

/* Text without a mark is most of it: one copy a run. */
static size_t
text_run(const char *bytes, size_t len)
{
	size_t n = 0;
	while (n < len && bytes[n] != '<' && bytes[n] != '&' &&
	    bytes[n] != '\0')
		n++;
	return n;
}

void
html_push(struct html *h, const char *bytes, size_t len)
{
	size_t i = 0;
	while (i < len) {
		if (h->state == HTML_TEXT) {
			size_t n = text_run(bytes + i, len - i);
			put(h, bytes + i, n);
			i += n;
			if (i == len)
				break;
		}
		step(h, bytes[i++]);
	}
}

void
html_finish(struct html *h)
{
	if (h->state == HTML_CDATA ||
	    (h->state != HTML_ENTITY && h->raw_shown && h->held_len > 0))
		release(h);
	else if (h->state == HTML_TAG_OPEN)
		put_char(h, '<');
	h->held_len = 0;
	h->state = HTML_TEXT;
}
