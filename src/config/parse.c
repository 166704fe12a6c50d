#include "config/parse.h"

#include "base/buf.h"

struct parser {
	struct arena *arena;
	const char *label;
	struct err *err;
	parse_fn *fn;
	void *arg;
	unsigned line;
	bool open; /* `event` waits for more of its value */
	struct parse_event event;
	struct buf joined; /* the value once it has several parts */
};

static bool
is_name_byte(char c)
{
	return ascii_is_alpha(c) || ascii_is_digit(c) || c == '_' || c == '-';
}

static size_t
name_length(struct str s)
{
	size_t n = 0;
	while (n < s.len && is_name_byte(s.ptr[n]))
		n++;
	return n;
}

static bool
has_control_byte(struct str s)
{
	for (size_t i = 0; i < s.len; i++)
		if (((unsigned char)s.ptr[i] < 0x20 && s.ptr[i] != '\t') ||
		    s.ptr[i] == 0x7f)
			return true;
	return false;
}

/* Hand the waiting event on. */
static enum res
flush(struct parser *p)
{
	if (!p->open)
		return RES_OK;
	p->open = false;
	if (p->joined.len != 0) {
		p->event.value = arena_dup(p->arena, buf_str(&p->joined));
		buf_reset(&p->joined);
		if (p->event.value.ptr == NULL)
			return RES_NOMEM;
	}
	return p->fn(p->arg, &p->event);
}

/* `name =` with a blank before the `=`: how an option begins, and hardly how
 * a value goes on. */
static bool
looks_like_option(struct str s)
{
	size_t n = name_length(s);
	struct str rest = str_skip(s, n);
	return n != 0 && rest.len > 1 && ascii_is_wsp(rest.ptr[0]) &&
	    str_starts(str_trim(rest), STR("="));
}

static enum res
continue_value(struct parser *p, struct str part)
{
	if (!p->open) {
		err_set(p->err,
		    "%s:%u: a line that begins with a blank continues an "
		    "option, but none stands before it",
		    p->label, p->line);
		return RES_SYNTAX;
	}
	if (looks_like_option(part)) {
		err_set(p->err,
		    "%s:%u: an option must begin in the first column (a line "
		    "that begins with a blank continues '%.*s')",
		    p->label, p->line, STR_ARG(p->event.name));
		return RES_SYNTAX;
	}
	if (p->event.value.len == 0) {
		p->event.value = part;
		return RES_OK;
	}
	if (p->joined.len == 0)
		buf_add_str(&p->joined, p->event.value);
	buf_add_char(&p->joined, ' ');
	buf_add_str(&p->joined, part);
	if (p->joined.error == RES_LIMIT)
		err_set(p->err,
		    "%s:%u: the value of '%.*s' is longer than %zu bytes",
		    p->label, p->line, STR_ARG(p->event.name), PARSE_MAX_VALUE);
	return p->joined.error;
}

static enum res
begin_section(struct parser *p, struct str line)
{
	struct str inner = str_trim(str_sub(line, 1, line.len - 2));
	size_t n = name_length(inner);
	struct str rest = str_skip(inner, n);
	if (!str_ends(line, STR("]")) || line.len < 3 || n == 0 ||
	    (rest.len != 0 && !ascii_is_wsp(rest.ptr[0])) ||
	    str_chr(rest, ']') != SIZE_MAX) {
		err_set(p->err, "%s:%u: a section is written [KIND NAME]",
		    p->label, p->line);
		return RES_SYNTAX;
	}
	struct parse_event e = { .section = true,
		.name = str_sub(inner, 0, n),
		.value = str_trim(rest),
		.line = p->line };
	return p->fn(p->arg, &e);
}

static enum res
begin_option(struct parser *p, struct str line)
{
	size_t n = name_length(line);
	struct str rest = str_trim(str_skip(line, n));
	if (n == 0 || !str_starts(rest, STR("="))) {
		err_set(p->err, "%s:%u: expected 'name = value', got '%.*s'",
		    p->label, p->line, STR_ARG(str_sub(line, 0, 60)));
		return RES_SYNTAX;
	}
	if (rest.len > PARSE_MAX_VALUE) {
		err_set(p->err,
		    "%s:%u: the value of '%.*s' is longer than %zu bytes",
		    p->label, p->line, STR_ARG(str_sub(line, 0, n)),
		    PARSE_MAX_VALUE);
		return RES_LIMIT;
	}
	p->open = true;
	p->event = (struct parse_event){ .name = str_sub(line, 0, n),
		.value = str_trim(str_skip(rest, 1)),
		.line = p->line };
	return RES_OK;
}

static enum res
read_line(struct parser *p, struct str line)
{
	if (str_ends(line, STR("\r")))
		line.len--;
	struct str text = str_trim(line);
	if (text.len == 0 || text.ptr[0] == '#')
		return RES_OK;
	if (has_control_byte(line)) {
		err_set(p->err, "%s:%u: the line holds a control byte",
		    p->label, p->line);
		return RES_SYNTAX;
	}
	if (ascii_is_wsp(line.ptr[0]))
		return continue_value(p, text);
	enum res r = flush(p);
	if (r != RES_OK)
		return r;
	return text.ptr[0] == '[' ? begin_section(p, text)
				  : begin_option(p, text);
}

enum res
parse_text(struct arena *a, struct str text, const char *label, struct err *err,
    parse_fn *fn, void *arg)
{
	struct parser p = {
		.arena = a, .label = label, .err = err, .fn = fn, .arg = arg
	};
	buf_init(&p.joined, PARSE_MAX_VALUE);
	if (str_starts(text, STR("\xef\xbb\xbf")))
		text = str_skip(text, 3);
	enum res r = RES_OK;
	struct str line;
	while (r == RES_OK && text.len != 0 && str_split(&text, '\n', &line)) {
		if (p.line == PARSE_MAX_LINES) {
			err_set(err, "%s:%u: too many lines", label, p.line);
			r = RES_LIMIT;
			break;
		}
		p.line++;
		r = read_line(&p, line);
	}
	if (r == RES_OK)
		r = flush(&p);
	buf_done(&p.joined);
	return r;
}
