#include "base/json.h"

#include "base/codec.h"

void
json_init(struct json *j, struct buf *out)
{
	*j = (struct json){ .out = out };
}

/* A comma unless this is the first value at this depth. */
static void
separate(struct json *j)
{
	uint32_t bit = 1u << (j->depth & 31);
	if (j->filled & bit)
		buf_add_char(j->out, ',');
	j->filled |= bit;
}

void
json_open(struct json *j, char bracket)
{
	separate(j);
	buf_add_char(j->out, bracket);
	j->depth++;
	j->filled &= ~(1u << (j->depth & 31));
}

void
json_close(struct json *j, char bracket)
{
	j->depth--;
	buf_add_char(j->out, bracket);
}

static void
quote(struct buf *out, struct str s)
{
	buf_add_char(out, '"');
	while (s.len > 0) {
		uint32_t cp;
		size_t n = utf8_decode(s, &cp);
		if (n == 0) {
			buf_add_c(out, "\xef\xbf\xbd");
			n = 1;
		} else if (cp == '"' || cp == '\\') {
			buf_add_char(out, '\\');
			buf_add_char(out, (char)cp);
		} else if (cp == '\n') {
			buf_add_c(out, "\\n");
		} else if (cp < 0x20 || cp == 0x7f) {
			buf_addf(out, "\\u%04x", cp);
		} else {
			buf_add(out, s.ptr, n);
		}
		s = str_skip(s, n);
	}
	buf_add_char(out, '"');
}

void
json_key(struct json *j, const char *key)
{
	separate(j);
	quote(j->out, str_c(key));
	buf_add_char(j->out, ':');
	/* the value that follows is not separated from its key */
	j->filled &= ~(1u << (j->depth & 31));
}

void
json_str(struct json *j, struct str s)
{
	separate(j);
	quote(j->out, s);
}

void
json_int(struct json *j, int64_t n)
{
	separate(j);
	buf_addf(j->out, "%lld", (long long)n);
}

void
json_bool(struct json *j, bool b)
{
	separate(j);
	buf_add_c(j->out, b ? "true" : "false");
}

void
json_null(struct json *j)
{
	separate(j);
	buf_add_c(j->out, "null");
}

void
json_key_str(struct json *j, const char *key, struct str s)
{
	json_key(j, key);
	json_str(j, s);
}

void
json_key_c(struct json *j, const char *key, const char *s)
{
	json_key(j, key);
	if (s != NULL)
		json_str(j, str_c(s));
	else
		json_null(j);
}

void
json_key_int(struct json *j, const char *key, int64_t n)
{
	json_key(j, key);
	json_int(j, n);
}

void
json_key_bool(struct json *j, const char *key, bool b)
{
	json_key(j, key);
	json_bool(j, b);
}
