#include "mail/param.h"

#include "base/codec.h"
#include "mail/charset.h"
#include "mail/encoded.h"

struct str
param_main(struct str value)
{
	value = str_trim(value);
	size_t n = 0;
	while (n < value.len && value.ptr[n] != ';' && value.ptr[n] != '(' &&
	    !ascii_is_wsp(value.ptr[n]) && value.ptr[n] != '\r' &&
	    value.ptr[n] != '\n')
		n++;
	return str_sub(value, 0, n);
}

struct param {
	struct str name, value; /* value: between the quotes, if any */
	bool quoted;
};

static struct str
quoted_part(struct str s, size_t *out_used)
{
	size_t i = 1;
	while (i < s.len && s.ptr[i] != '"')
		i += s.ptr[i] == '\\' ? 2 : 1;
	if (i > s.len)
		i = s.len;
	*out_used = i < s.len ? i + 1 : i;
	return str_sub(s, 1, i - 1);
}

/* The next parameter behind a ';'. False at the end. */
static bool
param_next(struct str *rest, struct param *out)
{
	while (rest->ptr != NULL && rest->len > 0) {
		struct str s = str_trim(*rest);
		size_t n = 0;
		while (n < s.len && s.ptr[n] != '=' && s.ptr[n] != ';')
			n++;
		out->name = str_trim(str_sub(s, 0, n));
		if (n == s.len || s.ptr[n] == ';') {
			*rest = str_skip(s, n < s.len ? n + 1 : n);
			continue;
		}
		s = str_trim(str_skip(s, n + 1));
		out->quoted = s.len > 0 && s.ptr[0] == '"';
		size_t used = 0;
		if (out->quoted)
			out->value = quoted_part(s, &used);
		size_t end = str_chr(str_skip(s, used), ';');
		end = end == SIZE_MAX ? s.len : used + end;
		if (!out->quoted) {
			out->value = str_trim(str_sub(s, 0, end));
			/* charset=us-ascii (a comment) */
			size_t open = str_find(out->value, STR(" ("));
			if (open != SIZE_MAX && str_ends(out->value, STR(")")))
				out->value = str_trim(
				    str_sub(out->value, 0, open));
		}
		*rest = str_skip(s, end < s.len ? end + 1 : end);
		return true;
	}
	return false;
}

/* Quoted pairs: only \" and \\ are escapes, so that C:\path survives. */
static void
add_value(const struct param *p, struct buf *out)
{
	for (size_t i = 0; i < p->value.len; i++) {
		char c = p->value.ptr[i];
		char next = i + 1 < p->value.len ? p->value.ptr[i + 1] : '\0';
		if (p->quoted && c == '\\' && (next == '"' || next == '\\'))
			c = p->value.ptr[++i];
		if (c != '\r' && c != '\n')
			buf_add_char(out, c);
	}
}

static void
add_percent(struct str s, struct buf *out)
{
	for (size_t i = 0; i < s.len; i++) {
		char c = s.ptr[i];
		bool escape = c == '%' && i + 2 < s.len;
		int high = escape ? hex_digit(s.ptr[i + 1]) : -1;
		int low = escape ? hex_digit(s.ptr[i + 2]) : -1;
		if (high >= 0 && low >= 0) {
			c = (char)(high << 4 | low);
			i += 2;
		}
		buf_add_char(out, c);
	}
}

struct section {
	struct param param;
	bool present, extended;
};

struct found {
	struct param plain;
	bool has_plain;
	size_t sections; /* highest number + 1; those above are not set */
	struct section section[PARAM_MAX_SECTIONS];
};

/* "name", "name*", "name*3", "name*3*" (RFC 2231 §3, §4). */
static void
collect(struct found *f, const struct param *p, struct str name)
{
	if (!str_case_starts(p->name, name))
		return;
	struct str tail = str_skip(p->name, name.len);
	if (tail.len == 0) {
		if (!f->has_plain)
			f->plain = *p;
		f->has_plain = true;
		return;
	}
	if (tail.ptr[0] != '*')
		return;
	tail = str_skip(tail, 1);
	bool extended = tail.len == 0 || str_ends(tail, STR("*"));
	uint64_t number = 0;
	if (tail.len > 0) {
		tail.len -= extended;
		if (str_to_u64(tail, PARAM_MAX_SECTIONS - 1, &number) != RES_OK)
			return;
	}
	while (f->sections <= number)
		f->section[f->sections++].present = false;
	struct section *s = &f->section[number];
	if (!s->present)
		*s = (struct section){ *p, true, extended };
}

/* charset'language'text of the first section; text alone when malformed. */
static struct str
take_charset(struct str *value)
{
	size_t first = str_chr(*value, '\'');
	if (first == SIZE_MAX)
		return STR_EMPTY;
	size_t second = str_chr(str_skip(*value, first + 1), '\'');
	if (second == SIZE_MAX)
		return STR_EMPTY;
	struct str charset = str_sub(*value, 0, first);
	*value = str_skip(*value, first + second + 2);
	return charset;
}

static void
join_sections(struct found *f, struct buf *out)
{
	struct buf bytes;
	buf_init(&bytes, PARAM_MAX_VALUE);
	struct str charset = STR_EMPTY;
	for (size_t i = 0; i < f->sections; i++) {
		struct section *s = &f->section[i];
		if (!s->present)
			break; /* a gap ends the value */
		if (i == 0 && s->extended)
			charset = take_charset(&s->param.value);
		if (s->extended)
			add_percent(s->param.value, &bytes);
		else
			add_value(&s->param, &bytes);
	}
	charset_decode(charset, buf_str(&bytes), out);
	buf_done(&bytes);
}

bool
param_find(struct str value, struct str name, struct buf *out)
{
	struct str main = param_main(value);
	if (main.ptr == NULL)
		return false;
	/* the first ';' is forgotten by some */
	struct str rest = str_trim(
	    str_skip(value, (size_t)(main.ptr - value.ptr) + main.len));
	if (str_starts(rest, STR(";")))
		rest = str_skip(rest, 1);
	struct found f;
	struct param p;
	f.has_plain = false;
	f.sections = 0;
	while (param_next(&rest, &p))
		collect(&f, &p, name);
	if (f.sections > 0 && f.section[0].present) {
		join_sections(&f, out);
		return true;
	}
	if (!f.has_plain)
		return false;
	struct buf raw;
	buf_init(&raw, PARAM_MAX_VALUE);
	add_value(&f.plain, &raw);
	encoded_decode(buf_str(&raw), out);
	buf_done(&raw);
	return true;
}
