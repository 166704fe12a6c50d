#include "auth/spf_macro.h"

#include "base/buf.h"

#define MAX_PARTS 128 /* of %{dN}; more than any name has */

struct macro {
	char letter;    /* lower case */
	bool escape;    /* was upper case */
	unsigned parts; /* 0: all */
	bool reverse;
	struct str delimiters;
	size_t len; /* from "%" to "}" */
};

static bool
is_delimiter(char c)
{
	return c != '\0' && strchr(".-+,/_=", c) != NULL;
}

/* "%{" letter *DIGIT ["r"] *delimiter "}" at the start of `s`. */
static bool
read_macro(struct str s, struct macro *out)
{
	size_t i = 2;
	if (s.len < 4 || !ascii_is_alpha(s.ptr[i]))
		return false;
	out->letter = ascii_lower(s.ptr[i]);
	out->escape = s.ptr[i] != out->letter;
	if (strchr("slodiphcrtv", out->letter) == NULL)
		return false;
	size_t digits = ++i;
	out->parts = 0;
	for (; i < s.len && ascii_is_digit(s.ptr[i]); i++) {
		out->parts = out->parts * 10 + (unsigned)(s.ptr[i] - '0');
		if (out->parts > MAX_PARTS)
			out->parts = MAX_PARTS;
	}
	if (i > digits && out->parts == 0)
		return false;
	out->reverse = i < s.len && ascii_lower(s.ptr[i]) == 'r';
	if (out->reverse)
		i++;
	size_t from = i;
	while (i < s.len && is_delimiter(s.ptr[i]))
		i++;
	out->delimiters = str_sub(s, from, i - from);
	out->len = i + 1;
	return i < s.len && s.ptr[i] == '}';
}

/* Length of the macro-expand or macro-literal at the start, 0 when it is
 * neither. */
static size_t
element(struct str s, enum spf_macro_use use, bool *out_is_macro)
{
	char c = s.ptr[0];
	*out_is_macro = c == '%';
	if (c == ' ')
		return use == SPF_IN_EXPLANATION ? 1 : 0;
	if (c < 0x21 || c > 0x7e)
		return 0;
	if (c != '%')
		return 1;
	if (s.len < 2)
		return 0;
	if (s.ptr[1] == '%' || s.ptr[1] == '_' || s.ptr[1] == '-')
		return 2;
	struct macro m;
	if (s.ptr[1] != '{' || !read_macro(s, &m))
		return 0;
	if (use == SPF_IN_TERM && strchr("crt", m.letter) != NULL)
		return 0;
	return m.len;
}

bool
spf_macro_valid(struct str s, enum spf_macro_use use)
{
	bool is_macro;
	while (s.len > 0) {
		size_t n = element(s, use, &is_macro);
		if (n == 0)
			return false;
		s = str_skip(s, n);
	}
	return true;
}

/* ( *alphanum ALPHA *alphanum ) / ( 1*alphanum "-" *( alphanum / "-" )
 * alphanum ) */
static bool
is_toplabel(struct str s)
{
	bool letter = false, hyphen = false;
	for (size_t i = 0; i < s.len; i++) {
		char c = s.ptr[i];
		letter = letter || ascii_is_alpha(c);
		if (c == '-' && (i == 0 || i + 1 == s.len))
			return false;
		hyphen = hyphen || c == '-';
		if (c != '-' && !ascii_is_alpha(c) && !ascii_is_digit(c))
			return false;
	}
	return letter || hyphen;
}

bool
spf_domain_spec_valid(struct str s)
{
	bool is_macro = false;
	size_t literal = 0; /* where the literal text at the end begins */
	for (size_t i = 0; i < s.len;) {
		size_t n = element(str_skip(s, i), SPF_IN_TERM, &is_macro);
		if (n == 0)
			return false;
		i += n;
		if (is_macro)
			literal = i;
	}
	if (s.len == 0 || is_macro)
		return is_macro;
	struct str end = str_skip(s, literal);
	if (end.ptr[end.len - 1] == '.')
		end.len--;
	size_t dot = str_rchr(end, '.');
	return dot != SIZE_MAX && is_toplabel(str_skip(end, dot + 1));
}

/* ---- expansion -------------------------------------------------------- */

static void
add_nibbles(struct buf *b, const struct ip *ip)
{
	if (ip->family == IP_V4) {
		ip_format(b, ip);
		return;
	}
	for (size_t i = 0; i < 16; i++)
		buf_addf(b, "%s%x.%x", i > 0 ? "." : "", ip->bytes[i] >> 4,
		    ip->bytes[i] & 15);
}

static void
add_value(struct buf *b, const struct macro *m, struct spf_macro_env *env)
{
	switch (m->letter) {
	case 's':
		buf_add_str(b, env->local);
		buf_add_char(b, '@');
		buf_add_str(b, env->sender_domain);
		env->local_used = true;
		break;
	case 'l':
		buf_add_str(b, env->local);
		env->local_used = true;
		break;
	case 'o':
		buf_add_str(b, env->sender_domain);
		break;
	case 'd':
		buf_add_str(b, env->domain);
		break;
	case 'i':
		add_nibbles(b, &env->client);
		break;
	case 'p':
		buf_add_str(b, env->validated(env->arg));
		break;
	case 'v':
		buf_add_c(b, env->client.family == IP_V6 ? "ip6" : "in-addr");
		break;
	case 'h':
		buf_add_str(b, env->helo);
		break;
	case 'c':
		ip_format(b, &env->client);
		break;
	case 'r':
		if (env->receiver.len > 0)
			buf_add_str(b, env->receiver);
		else
			buf_add_c(b, "unknown");
		break;
	case 't':
		buf_addf(b, "%lld", (long long)env->now_s);
		break;
	}
}

static bool
splits(const struct macro *m, char c)
{
	struct str d = m->delimiters.len > 0 ? m->delimiters : STR(".");
	return str_chr(d, c) != SIZE_MAX;
}

static void
add_part(struct buf *out, struct str part, bool escape)
{
	for (size_t i = 0; i < part.len; i++) {
		char c = part.ptr[i];
		if (!escape || ascii_is_alpha(c) || ascii_is_digit(c) ||
		    c == '-' || c == '.' || c == '_' || c == '~')
			buf_add_char(out, c);
		else
			buf_addf(out, "%%%02X", (unsigned char)c);
	}
}

/* Split at delimiters, reverse, keep the right-most parts, join with dots
 * (SPF-29). Those parts are the end of the value or, reversed, its beginning,
 * so no list of them is needed. */
static void
add_forward(struct buf *out, const struct macro *m, struct str value)
{
	size_t from = value.len;
	unsigned n = 0;
	while (from > 0) {
		if (splits(m, value.ptr[from - 1]) && ++n == m->parts)
			break;
		from--;
	}
	for (; from < value.len; from++) {
		if (splits(m, value.ptr[from]))
			buf_add_char(out, '.');
		else
			add_part(out, str_sub(value, from, 1), m->escape);
	}
}

static void
add_reversed(struct buf *out, const struct macro *m, struct str value)
{
	size_t end = 0;
	unsigned n = 0;
	while (end < value.len) {
		if (splits(m, value.ptr[end]) && ++n == m->parts)
			break;
		end++;
	}
	for (;;) {
		size_t from = end;
		while (from > 0 && !splits(m, value.ptr[from - 1]))
			from--;
		add_part(out, str_sub(value, from, end - from), m->escape);
		if (from == 0)
			return;
		buf_add_char(out, '.');
		end = from - 1;
	}
}

static void
add_macro(struct buf *out, const struct macro *m, struct spf_macro_env *env)
{
	struct buf value;
	buf_init(&value, SPF_MAX_EXPANSION);
	add_value(&value, m, env);
	if (value.error != RES_OK)
		out->error = value.error;
	else if (m->reverse)
		add_reversed(out, m, buf_str(&value));
	else
		add_forward(out, m, buf_str(&value));
	buf_done(&value);
}

enum res
spf_macro_expand(struct arena *a, struct str s, struct spf_macro_env *env,
    size_t max_bytes, struct str *out)
{
	struct buf b;
	buf_init(&b, max_bytes);
	while (s.len > 0) {
		struct macro m;
		size_t n = 1;
		if (s.ptr[0] != '%' || s.len < 2) {
			buf_add_char(&b, s.ptr[0]);
		} else if (s.ptr[1] == '{' && read_macro(s, &m)) {
			add_macro(&b, &m, env);
			n = m.len;
		} else {
			buf_add_c(&b,
			    s.ptr[1] == '_'       ? " "
				: s.ptr[1] == '-' ? "%20"
						  : "%");
			n = 2;
		}
		s = str_skip(s, n);
	}
	enum res r = b.error;
	if (r == RES_OK) {
		struct str copy = arena_dup(a, buf_str(&b));
		r = copy.ptr != NULL ? RES_OK : RES_NOMEM;
		if (r == RES_OK)
			*out = copy;
	}
	buf_done(&b);
	return r;
}
