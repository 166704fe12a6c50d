#include "config/value.h"

#include <errno.h>
#include <unistd.h>

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
	int i = value_word("no off yes on", text);
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
	int i = value_word(o->words, text);
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
	int i = value_word("simple/simple simple/relaxed relaxed/simple "
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
		    value_word("from spf dkim id", *out_bad) < 0)
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
		    value_parse_port_host(str_skip(s, 5), &port, &host);
	case OPT_FAMILY:
		err_set(why,
		    "'%.*s' is not a family name (a-z, 0-9, '-', at most 31)",
		    STR_ARG(s));
		return is_family(s);
	case OPT_CHOICE:
		err_set(why, "'%.*s' is not one of: %s", STR_ARG(s), o->words);
		return value_word(o->words, s) >= 0;
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
		return value_parse_listen(a, text, at, why);
	case OPT_NETS:
		return value_parse_nets(a, text, at, why);
	case OPT_WORDS:
	case OPT_NAMES:
	case OPT_FIELDS:
	case OPT_HEADERS:
	case OPT_VERDICTS:
	case OPT_DOMAINS:
	case OPT_PATTERNS:
	case OPT_SERVERS:
		return value_parse_list(o, a, text, at, why);
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
