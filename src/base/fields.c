#include "base/fields.h"

static void
add_name(struct buf *out, const char *name, char kind)
{
	buf_add_c(out, name);
	buf_add_char(out, kind);
}

static bool
is_plain(char c)
{
	unsigned char u = (unsigned char)c;
	return u >= 0x20 && u != 0x7f && u != '%';
}

void
fields_text(struct buf *out, const char *name, struct str text)
{
	add_name(out, name, '=');
	while (text.len > 0) {
		size_t n = 0;
		while (n < text.len && is_plain(text.ptr[n]))
			n++;
		buf_add(out, text.ptr, n);
		if (n < text.len)
			buf_addf(out, "%%%02X", (unsigned char)text.ptr[n++]);
		text = str_skip(text, n);
	}
	buf_add_char(out, '\n');
}

void
fields_number(struct buf *out, const char *name, uint64_t number)
{
	add_name(out, name, '#');
	buf_addf(out, "%llu\n", (unsigned long long)number);
}

void
fields_end(struct buf *out)
{
	buf_add_char(out, '\n');
}

/* --- reading --- */

static bool
is_name(struct str s)
{
	for (size_t i = 0; i < s.len; i++) {
		char c = s.ptr[i];
		if (!(c >= 'a' && c <= 'z') && !ascii_is_digit(c) && c != '_' &&
		    c != '.')
			return false;
	}
	return s.len > 0;
}

static int
hex_digit(char c)
{
	if (ascii_is_digit(c))
		return c - '0';
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

static enum res
decode(struct arena *a, struct str s, struct str *out)
{
	char *p = arena_alloc_raw(a, s.len + 1);
	size_t n = 0;
	if (p == NULL)
		return RES_NOMEM;
	for (size_t i = 0; i < s.len; i++) {
		if (s.ptr[i] != '%') {
			p[n++] = s.ptr[i];
			continue;
		}
		if (i + 2 >= s.len)
			return RES_SYNTAX;
		int high = hex_digit(s.ptr[i + 1]),
		    low = hex_digit(s.ptr[i + 2]);
		if (high < 0 || low < 0)
			return RES_SYNTAX;
		p[n++] = (char)(high << 4 | low);
		i += 2;
	}
	p[n] = '\0';
	*out = str_of(p, n);
	return RES_OK;
}

static enum res
read_line(struct str line, struct arena *a, struct field_value *out)
{
	size_t at = 0;
	while (at < line.len && line.ptr[at] != '=' && line.ptr[at] != '#')
		at++;
	*out =
	    (struct field_value){ .name = arena_dup(a, str_sub(line, 0, at)) };
	if (at == line.len || !is_name(str_sub(line, 0, at)))
		return RES_SYNTAX;
	if (out->name.ptr == NULL)
		return RES_NOMEM;
	enum res r = decode(a, str_skip(line, at + 1), &out->text);
	out->is_number = line.ptr[at] == '#';
	if (r == RES_OK && out->is_number &&
	    str_to_u64(out->text, UINT64_MAX, &out->number) != RES_OK)
		r = RES_SYNTAX;
	return r;
}

/* Lines up to the empty one; 0 when it never comes. */
static size_t
count_lines(struct str s)
{
	struct str line;
	size_t count = 0;
	while (str_split(&s, '\n', &line)) {
		count++;
		if (line.len == 0)
			return s.ptr != NULL ? count : 0;
	}
	return 0;
}

enum res
fields_read(struct str *rest, struct arena *a, struct fields *out)
{
	struct str s = *rest, line;
	struct fields f = { .count = 0 };
	if (s.len == 0)
		return RES_NOTFOUND;
	size_t lines = count_lines(s);
	if (lines == 0)
		return RES_SYNTAX;
	if (lines > FIELDS_MAX)
		return RES_LIMIT;
	f.items = arena_array(a, lines, sizeof *f.items);
	if (f.items == NULL)
		return RES_NOMEM;
	while (str_split(&s, '\n', &line) && line.len > 0) {
		enum res r = read_line(line, a, &f.items[f.count++]);
		if (r == RES_SYNTAX)
			*rest = str_skip(
			    *rest, (size_t)(line.ptr - rest->ptr));
		if (r != RES_OK)
			return r;
	}
	*rest = s;
	*out = f;
	return RES_OK;
}

static const struct field_value *
find(const struct fields *f, const char *name)
{
	for (size_t i = 0; i < f->count; i++)
		if (str_eq(f->items[i].name, str_c(name)))
			return &f->items[i];
	return NULL;
}

struct str
fields_get(const struct fields *f, const char *name)
{
	const struct field_value *v = find(f, name);
	return v != NULL ? v->text : STR_EMPTY;
}

uint64_t
fields_get_number(const struct fields *f, const char *name)
{
	const struct field_value *v = find(f, name);
	return v != NULL && v->is_number ? v->number : 0;
}

enum res
fields_file_end(const char *path, struct str text, struct str last,
    struct str rest, enum res r, struct err *err)
{
	if (r == RES_SYNTAX)
		last = rest;
	if ((r == RES_OK && rest.len > 0) || r == RES_NOTFOUND ||
	    r == RES_SYNTAX)
		r = RES_CORRUPT;
	if (r != RES_OK)
		err_set(err, "%s:%zu: %s", path, str_line_at(text, last.ptr),
		    res_text(r));
	return r;
}
