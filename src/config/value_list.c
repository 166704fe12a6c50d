#include "config/value.h"

int
value_word(const char *words, struct str word)
{
	struct str rest = str_c(words), item;
	for (int i = 0; str_split(&rest, ' ', &item); i++)
		if (str_eq(item, word))
			return i;
	return -1;
}

static bool
is_separator(char c)
{
	return ascii_is_wsp(c) || c == ',';
}

static size_t
count_items(struct str text)
{
	size_t n = 0;
	for (size_t i = 0; i < text.len; i++)
		if (!is_separator(text.ptr[i]) &&
		    (i == 0 || is_separator(text.ptr[i - 1])))
			n++;
	return n;
}

bool
value_next(struct str *rest, struct str *out)
{
	size_t from = 0, to;
	while (from < rest->len && is_separator(rest->ptr[from]))
		from++;
	to = from;
	while (to < rest->len && !is_separator(rest->ptr[to]))
		to++;
	*out = str_sub(*rest, from, to - from);
	*rest = str_skip(*rest, to);
	return out->len != 0;
}

enum res
value_split(struct arena *a, struct str text, struct strlist *out)
{
	size_t count = count_items(text);
	if (count > VALUE_MAX_ITEMS)
		return RES_LIMIT;
	struct str *items = arena_array(a, count, sizeof *items);
	if (items == NULL)
		return RES_NOMEM;
	for (size_t i = 0; i < count && value_next(&text, &items[i]); i++) {
		items[i] = arena_dup(a, items[i]);
		if (items[i].ptr == NULL)
			return RES_NOMEM;
	}
	*out = (struct strlist){ count, items };
	return RES_OK;
}

bool
value_is_domain(struct str d)
{
	if (d.len == 0 || d.len > 253)
		return false;
	struct str label;
	while (str_split(&d, '.', &label)) {
		if (label.len == 0 || label.len > 63 || label.ptr[0] == '-' ||
		    label.ptr[label.len - 1] == '-')
			return false;
		for (size_t i = 0; i < label.len; i++)
			if (!ascii_is_alpha(label.ptr[i]) &&
			    !ascii_is_digit(label.ptr[i]) &&
			    label.ptr[i] != '-' && label.ptr[i] != '_')
				return false;
	}
	return true;
}

/* `*` would be an atom of mail, but who writes `*@dom` means `dom`. */
bool
value_is_address(struct str s)
{
	size_t at = str_rchr(s, '@');
	if (at == SIZE_MAX || at == 0 || at > 64)
		return false;
	for (size_t i = 0; i < at; i++)
		if (s.ptr[i] <= ' ' || s.ptr[i] == 0x7f ||
		    str_chr(STR("<>()[]\\\";:@*"), s.ptr[i]) != SIZE_MAX)
			return false;
	return value_is_domain(str_skip(s, at + 1));
}

static bool
is_field_name(struct str s)
{
	for (size_t i = 0; i < s.len; i++)
		if (s.ptr[i] <= ' ' || s.ptr[i] > '~' || s.ptr[i] == ':')
			return false;
	return s.len != 0;
}

static bool
is_domain_pattern(struct str s)
{
	return value_is_domain(str_starts(s, STR(".")) ? str_skip(s, 1) : s);
}

static bool
is_server(struct str s)
{
	struct ip ip;
	uint64_t port;
	size_t at = str_chr(s, '@');
	if (at != SIZE_MAX &&
	    (str_to_u64(str_skip(s, at + 1), 65535, &port) != RES_OK ||
		port == 0))
		return false;
	return ip_parse(str_sub(s, 0, at), &ip) == RES_OK;
}

static bool
is_verdict(struct str s)
{
	size_t colon = str_chr(s, ':');
	return colon != SIZE_MAX &&
	    value_word("dkim spf spf.helo dmarc arc iprev", str_sub(s, 0, colon)) >= 0 &&
	    value_word("none pass fail softfail policy neutral temperror "
		       "permerror",
		str_skip(s, colon + 1)) >= 0;
}

/* What one item of a list must be, and how to call it. */
static bool
item_fits(const struct option *o, struct str s, const char **out_what)
{
	switch (o->type) {
	case OPT_WORDS:
		*out_what = o->words;
		return value_word(o->words, s) >= 0;
	case OPT_FIELDS:
		*out_what = "a header field name";
		return is_field_name(s);
	case OPT_HEADERS:
		/* "Subject: x" would be two items, one of them every Subject */
		*out_what = "NAME or NAME:TEXT (without blanks)";
		return is_field_name(str_sub(s, 0, str_chr(s, ':'))) &&
		    s.ptr[s.len - 1] != ':';
	case OPT_VERDICTS:
		*out_what = "METHOD:RESULT, such as dmarc:fail";
		return is_verdict(s);
	case OPT_DOMAINS:
		*out_what = "a domain (A-labels) or .domain";
		return is_domain_pattern(s);
	case OPT_PATTERNS:
		*out_what = "a domain, .domain, user@domain or *";
		return str_eq(s, STR("*")) || is_domain_pattern(s) ||
		    value_is_address(s);
	case OPT_SERVERS:
		*out_what = "an IP address or ADDRESS@PORT";
		return is_server(s);
	default:
		*out_what = "a word (comments stand on lines of their own)";
		return s.ptr[0] != '#';
	}
}

enum res
value_parse_list(const struct option *o, struct arena *a, struct str text,
    struct strlist *out, struct err *why)
{
	struct strlist list;
	enum res r = value_split(a, text, &list);
	if (r == RES_LIMIT)
		err_set(why, "more than %d items", VALUE_MAX_ITEMS);
	if (r != RES_OK)
		return r;
	bool fold = o->type == OPT_DOMAINS || o->type == OPT_PATTERNS ||
	    o->type == OPT_FIELDS;
	struct str *items = (struct str *)list.items;
	for (size_t i = 0; i < list.count; i++) {
		const char *what;
		if (!item_fits(o, items[i], &what)) {
			err_set(why, "'%.*s' is not %s%s", STR_ARG(items[i]),
			    o->type == OPT_WORDS ? "one of: " : "", what);
			return RES_SYNTAX;
		}
		if (fold)
			items[i] = arena_lower(a, items[i]);
		if (items[i].ptr == NULL)
			return RES_NOMEM;
	}
	if (list.count == 0) {
		err_set(why, "the list is empty");
		return RES_SYNTAX;
	}
	*out = list;
	return RES_OK;
}

/* 10.0.0.1/8 is a slip of the pen: say so, as Postfix does. */
static bool
has_host_bits(const struct ip_net *n)
{
	unsigned bits = n->ip.family == IP_V4 ? 32 : 128;
	for (unsigned i = n->prefix; i < bits; i++)
		if (n->ip.bytes[i / 8] & (0x80U >> (i % 8)))
			return true;
	return false;
}

enum res
value_parse_nets(
    struct arena *a, struct str text, struct netlist *out, struct err *why)
{
	size_t count = count_items(text);
	if (count == 0 || count > VALUE_MAX_ITEMS) {
		err_set(why,
		    count == 0 ? "the list is empty" : "too many networks");
		return count == 0 ? RES_SYNTAX : RES_LIMIT;
	}
	struct ip_net *nets = arena_array(a, count, sizeof *nets);
	if (nets == NULL)
		return RES_NOMEM;
	struct str item;
	for (size_t i = 0; i < count && value_next(&text, &item); i++) {
		if (ip_net_parse(item, &nets[i]) != RES_OK) {
			err_set(why,
			    "'%.*s' is not a network such as 192.0.2.0/24 or "
			    "2001:db8::/32",
			    STR_ARG(item));
			return RES_SYNTAX;
		}
		if (has_host_bits(&nets[i])) {
			err_set(why,
			    "'%.*s' has address bits set behind the prefix",
			    STR_ARG(item));
			return RES_SYNTAX;
		}
	}
	*out = (struct netlist){ count, nets };
	return RES_OK;
}
