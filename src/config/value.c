#include "config/value.h"

#include <errno.h>
#include <sys/un.h>
#include <unistd.h>

/* The word is there in a "one two three" table entry: its position. */
static int
word_index(const char *words, struct str word)
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

/* Cut the next item off. */
static bool
next_item(struct str *rest, struct str *out)
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
	for (size_t i = 0; i < count && next_item(&text, &items[i]); i++) {
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
	    word_index("dkim spf dmarc arc", str_sub(s, 0, colon)) >= 0 &&
	    word_index("none pass fail softfail policy neutral temperror "
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
		return word_index(o->words, s) >= 0;
	case OPT_FIELDS:
		*out_what = "a header field name";
		return is_field_name(s);
	case OPT_HEADERS:
		*out_what = "NAME or NAME:TEXT";
		return is_field_name(str_sub(s, 0, str_chr(s, ':')));
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

static enum res
parse_list(const struct option *o, struct arena *a, struct str text,
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

static enum res
parse_nets(
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
	for (size_t i = 0; i < count && next_item(&text, &item); i++) {
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

/* Digits, then a unit of the table; "" is the last unit's name. */
struct unit {
	const char *name;
	uint64_t factor;
};

static enum res
parse_quantity(
    const struct unit *units, size_t count, struct str text, uint64_t *out)
{
	size_t digits = 0;
	uint64_t n;
	while (digits < text.len && ascii_is_digit(text.ptr[digits]))
		digits++;
	enum res r = str_to_u64(str_sub(text, 0, digits), UINT64_MAX, &n);
	if (r != RES_OK)
		return r;
	for (size_t i = 0; i < count; i++)
		if (str_case_eq(str_skip(text, digits), str_c(units[i].name)))
			return __builtin_mul_overflow(n, units[i].factor, out)
			    ? RES_LIMIT
			    : RES_OK;
	return RES_SYNTAX;
}

static enum res
parse_number(
    const struct option *o, struct str text, uint64_t *out, struct err *why)
{
	static const struct unit sizes[] = { { "k", 1ULL << 10 },
		{ "m", 1ULL << 20 }, { "g", 1ULL << 30 }, { "t", 1ULL << 40 },
		{ "", 1 } };
	static const struct unit seconds[] = { { "s", 1 }, { "m", 60 },
		{ "h", 3600 }, { "d", 86400 }, { "w", 7 * 86400 },
		{ "y", 365 * 86400 } };
	static const struct unit micros[] = { { "ms", 1000 }, { "s", 1000000 },
		{ "m", 60000000 } };
	static const struct unit plain[] = { { "", 1 } };
	const char *what;
	uint64_t n = 0;
	enum res r;
	if (o->type == OPT_SIZE) {
		what = "a size such as 50M (units K, M, G, T)";
		r = parse_quantity(sizes, 5, text, &n);
	} else if (o->type == OPT_SECONDS) {
		what = "a time such as 5m (units s, m, h, d, w, y)";
		r = parse_quantity(seconds, 6, text, &n);
	} else if (o->type == OPT_MICROS) {
		what = "a time such as 5s (units ms, s, m)";
		r = parse_quantity(micros, 3, text, &n);
	} else {
		what = "a number";
		r = parse_quantity(plain, 1, text, &n);
	}
	if (r == RES_SYNTAX) {
		err_set(why, "'%.*s' is not %s", STR_ARG(text), what);
		return r;
	}
	if (r != RES_OK || n < o->min || (o->max != 0 && n > o->max)) {
		struct option low = *o, high = *o;
		struct buf b;
		low.offset = high.offset = 0;
		buf_init(&b, 200);
		value_format(&low, &o->min, &b);
		buf_add_c(&b, " to ");
		value_format(&high, &o->max, &b);
		err_set(
		    why, "'%.*s' is outside %s", STR_ARG(text), buf_cstr(&b));
		buf_done(&b);
		return RES_LIMIT;
	}
	*out = n;
	return RES_OK;
}

static enum res
parse_bool(struct str text, bool *out, struct err *why)
{
	int i = word_index("no off yes on", text);
	if (i < 0) {
		err_set(why, "'%.*s' is not yes or no", STR_ARG(text));
		return RES_SYNTAX;
	}
	*out = i >= 2;
	return RES_OK;
}

static enum res
parse_word(const struct option *o, struct str text, int *out, struct err *why)
{
	int i = word_index(o->words, text);
	if (i < 0) {
		err_set(
		    why, "'%.*s' is not one of: %s", STR_ARG(text), o->words);
		return RES_SYNTAX;
	}
	*out = i;
	return RES_OK;
}

static enum res
parse_canon(struct str text, bool *out_pair, struct err *why)
{
	int i = word_index("simple/simple simple/relaxed relaxed/simple "
			   "relaxed/relaxed",
	    text);
	if (i < 0) {
		err_set(why,
		    "'%.*s' is not HEADER/BODY, each relaxed or simple",
		    STR_ARG(text));
		return RES_SYNTAX;
	}
	out_pair[0] = i >= 2;
	out_pair[1] = i % 2 == 1;
	return RES_OK;
}

/* PORT@HOST; an IPv6 address may stand in brackets. */
static bool
parse_port_host(struct str s, uint16_t *out_port, struct str *out_host)
{
	uint64_t port;
	size_t at = str_chr(s, '@');
	struct str host = at != SIZE_MAX ? str_skip(s, at + 1) : STR_EMPTY;
	if (at == SIZE_MAX ||
	    str_to_u64(str_sub(s, 0, at), 65535, &port) != RES_OK)
		return false;
	if (str_starts(host, STR("[")) && str_ends(host, STR("]")))
		host = str_sub(host, 1, host.len - 2);
	struct ip ip;
	if (ip_parse(host, &ip) != RES_OK && !value_is_domain(host))
		return false;
	*out_port = (uint16_t)port;
	*out_host = host;
	return true;
}

static bool
parse_mode(struct str s, mode_t *out)
{
	mode_t mode = 0;
	if (s.len < 3 || s.len > 4)
		return false;
	for (size_t i = 0; i < s.len; i++) {
		if (s.ptr[i] < '0' || s.ptr[i] > '7')
			return false;
		mode = mode * 8 + (mode_t)(s.ptr[i] - '0');
	}
	if (mode > 0777)
		return false;
	*out = mode;
	return true;
}

static bool
parse_unix(
    struct str rest, struct str path, struct listen_address *l, struct err *why)
{
	struct str item;
	*l = (struct listen_address){ .is_unix = true,
		.path = path,
		.mode = 0660,
		.group = STR("postfix") };
	if (!str_starts(path, STR("/")) ||
	    path.len >= sizeof(((struct sockaddr_un *)0)->sun_path)) {
		err_set(why,
		    "'%.*s' is not an absolute path of less than %zu bytes",
		    STR_ARG(path), sizeof(((struct sockaddr_un *)0)->sun_path));
		return false;
	}
	while (next_item(&rest, &item)) {
		if (str_starts(item, STR("mode=")) &&
		    parse_mode(str_skip(item, 5), &l->mode))
			continue;
		if (str_starts(item, STR("group=")) && item.len > 6) {
			l->group = str_skip(item, 6);
			continue;
		}
		err_set(why, "'%.*s' is not mode=0660 or group=NAME",
		    STR_ARG(item));
		return false;
	}
	return true;
}

static enum res
parse_listen(struct arena *a, struct str text, struct listen_address *out,
    struct err *why)
{
	struct str copy = arena_dup(a, text), first;
	if (copy.ptr == NULL)
		return RES_NOMEM;
	struct listen_address l = { .mode = 0 };
	bool ok = false;
	(void)next_item(&copy, &first);
	size_t colon = str_chr(first, ':');
	struct str scheme = str_sub(first, 0, colon);
	struct str rest =
	    colon != SIZE_MAX ? str_skip(first, colon + 1) : STR_EMPTY;
	if (word_index("unix local", scheme) >= 0) {
		if (!parse_unix(copy, rest, &l, why))
			return RES_SYNTAX;
		ok = true;
	} else if (word_index("inet inet6", scheme) >= 0 && copy.len == 0) {
		ok = parse_port_host(rest, &l.port, &l.host);
	}
	if (!ok) {
		err_set(why,
		    "'%.*s' is not unix:PATH [mode=0660] [group=NAME] or "
		    "inet:PORT@HOST",
		    STR_ARG(text));
		return RES_SYNTAX;
	}
	*out = l;
	return RES_OK;
}

/* {name} marks of reject_text must be known ones, and braces pair. */
static bool
marks_fit(struct str s, struct str *out_bad)
{
	while (s.len != 0) {
		size_t open = str_chr(s, '{');
		if (open == SIZE_MAX)
			return true;
		s = str_skip(s, open + 1);
		size_t close = str_chr(s, '}');
		*out_bad = str_sub(s, 0, close);
		if (close == SIZE_MAX ||
		    word_index("from spf dkim id", *out_bad) < 0)
			return false;
		s = str_skip(s, close + 1);
	}
	return true;
}

static bool
is_family(struct str s)
{
	for (size_t i = 0; i < s.len; i++)
		if (!(s.ptr[i] >= 'a' && s.ptr[i] <= 'z') &&
		    !ascii_is_digit(s.ptr[i]) && s.ptr[i] != '-')
			return false;
	return s.len != 0 && s.len <= 31 && s.ptr[0] != '-';
}

static bool
is_word(struct str s)
{
	for (size_t i = 0; i < s.len; i++)
		if (s.ptr[i] <= ' ' || s.ptr[i] > '~' ||
		    str_chr(STR("\"#;=,[]"), s.ptr[i]) != SIZE_MAX)
			return false;
	return s.len != 0 && s.len <= 255;
}

/* Types that are one text: is `s` a good one? */
static bool
text_fits(const struct option *o, struct str s, struct err *why)
{
	struct str bad = STR_EMPTY, host;
	uint16_t port;
	switch (o->type) {
	case OPT_REPLY:
		if (!marks_fit(s, &bad)) {
			err_set(why,
			    "'{%.*s}' is not one of: {from} {spf} {dkim} {id}",
			    STR_ARG(bad));
			return false;
		}
		for (size_t i = 0; i < s.len; i++)
			if (s.ptr[i] < ' ' || s.ptr[i] > '~') {
				err_set(why, "only plain ASCII can be sent");
				return false;
			}
		/* fall through */
	case OPT_TEXT:
		if (s.len > o->max)
			err_set(why, "longer than %u bytes", (unsigned)o->max);
		return s.len <= o->max;
	case OPT_PATH:
	case OPT_FILE:
		err_set(why, "'%.*s' is not an absolute path", STR_ARG(s));
		return str_starts(s, STR("/")) && s.len < 4096;
	case OPT_DOMAIN:
		err_set(
		    why, "'%.*s' is not a domain name (A-labels)", STR_ARG(s));
		return value_is_domain(s);
	case OPT_ADDRESS:
		err_set(why, "'%.*s' is not user@domain", STR_ARG(s));
		return value_is_address(s);
	case OPT_METRICS:
		err_set(why, "'%.*s' is not off or inet:PORT@HOST", STR_ARG(s));
		return str_starts(s, STR("inet:")) &&
		    parse_port_host(str_skip(s, 5), &port, &host);
	case OPT_FAMILY:
		err_set(why,
		    "'%.*s' is not a family name (a-z, 0-9, '-', at most 31)",
		    STR_ARG(s));
		return is_family(s);
	case OPT_CHOICE:
		err_set(why, "'%.*s' is not one of: %s", STR_ARG(s), o->words);
		return word_index(o->words, s) >= 0;
	default:
		err_set(why, "'%.*s' is not a single plain word", STR_ARG(s));
		return is_word(s);
	}
}

static enum res
parse_text_value(const struct option *o, struct arena *a, struct str text,
    struct str *out, struct err *why)
{
	/* some rows say what is wrong before they know that it is */
	struct err wrong = { "" };
	if (!text_fits(o, text, &wrong)) {
		err_set(why, "%s", wrong.text);
		return RES_SYNTAX;
	}
	struct str copy =
	    o->type == OPT_DOMAIN ? arena_lower(a, text) : arena_dup(a, text);
	if (copy.ptr == NULL)
		return RES_NOMEM;
	if (o->type == OPT_FILE && access(copy.ptr, R_OK) != 0) {
		err_set(why, "%s: %s", copy.ptr, strerror(errno));
		return RES_IO;
	}
	*out = copy;
	return RES_OK;
}

static enum res
parse_typed(const struct option *o, struct arena *a, struct str text, void *at,
    struct err *why)
{
	struct err ignored = { "" };
	bool pair[2];
	switch (o->type) {
	case OPT_BOOL:
		return parse_bool(text, at, why);
	case OPT_WORD:
		return parse_word(o, text, at, why);
	case OPT_COUNT:
	case OPT_SIZE:
		return parse_number(o, text, at, why);
	case OPT_SECONDS:
	case OPT_MICROS: {
		uint64_t n;
		enum res r = parse_number(o, text, &n, why);
		if (r == RES_OK)
			*(int64_t *)at = (int64_t)n;
		return r;
	}
	case OPT_CANON:
		return parse_canon(text, at, why);
	case OPT_CANON_TEXT:
		if (parse_canon(text, pair, why) != RES_OK)
			return RES_SYNTAX;
		return parse_text_value(
		    &(struct option){ .type = OPT_TEXT, .max = 20 }, a, text,
		    at, &ignored);
	case OPT_LISTEN:
		return parse_listen(a, text, at, why);
	case OPT_NETS:
		return parse_nets(a, text, at, why);
	case OPT_WORDS:
	case OPT_NAMES:
	case OPT_FIELDS:
	case OPT_HEADERS:
	case OPT_VERDICTS:
	case OPT_DOMAINS:
	case OPT_PATTERNS:
	case OPT_SERVERS:
		return parse_list(o, a, text, at, why);
	case OPT_CHOICE:
	case OPT_TEXT:
	case OPT_REPLY:
	case OPT_NAME:
	case OPT_FAMILY:
	case OPT_PATH:
	case OPT_FILE:
	case OPT_DOMAIN:
	case OPT_ADDRESS:
	case OPT_METRICS:
		return parse_text_value(o, a, text, at, why);
	}
	return RES_INVALID;
}

static bool
is_too_early(const struct option *o, struct str text)
{
	return o->later &&
	    !str_eq(text, str_c(o->fallback != NULL ? o->fallback : o->empty));
}

enum res
value_parse(const struct option *o, struct arena *a, struct str text,
    void *base, struct err *why)
{
	char *at = (char *)base + o->offset;
	bool shadow = false;
	if (o->shadow != 0 && str_starts(text, STR("shadow "))) {
		shadow = true;
		text = str_trim(str_skip(text, 7));
	}
	if (text.len == 0) {
		err_set(why, "the value is empty");
		return RES_SYNTAX;
	}
	if (is_too_early(o, text)) {
		err_set(why, "this version knows only '%s'",
		    o->fallback != NULL ? o->fallback : o->empty);
		return RES_SYNTAX;
	}
	enum res r = RES_OK;
	if (o->empty != NULL && str_eq(text, str_c(o->empty))) {
		/* unset is what the memory was cleared to, save for times */
		if (o->type == OPT_SECONDS)
			*(int64_t *)at = INT64_MAX;
	} else {
		r = parse_typed(o, a, text, at, why);
	}
	if (r == RES_OK && o->shadow != 0)
		*((bool *)base + o->shadow) = shadow;
	if (r == RES_OK && o->given != 0)
		*((bool *)base + o->given) = true;
	return r;
}
