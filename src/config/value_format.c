#include <inttypes.h>

#include "config/value.h"

static void
format_word(const char *words, int index, struct buf *out)
{
	struct str rest = str_c(words), item;
	for (int i = 0; str_split(&rest, ' ', &item); i++)
		if (i == index)
			buf_add_str(out, item);
}

/* In the largest unit that divides it. */
static void
format_quantity(uint64_t n, const char *const *names, const uint64_t *factors,
    size_t count, struct buf *out)
{
	for (size_t i = 0; i < count; i++)
		if (factors[i] == 1 || (n != 0 && n % factors[i] == 0)) {
			buf_addf(
			    out, "%" PRIu64 "%s", n / factors[i], names[i]);
			return;
		}
}

static void
format_size(uint64_t n, struct buf *out)
{
	static const char *const names[] = { "T", "G", "M", "K", "" };
	static const uint64_t factors[] = { 1ULL << 40, 1ULL << 30, 1ULL << 20,
		1ULL << 10, 1 };
	format_quantity(n, names, factors, 5, out);
}

static void
format_seconds(uint64_t n, struct buf *out)
{
	static const char *const names[] = { "y", "d", "h", "m", "s" };
	static const uint64_t factors[] = { 365 * 86400, 86400, 3600, 60, 1 };
	format_quantity(n, names, factors, 5, out);
}

static void
format_micros(uint64_t n, struct buf *out)
{
	static const char *const names[] = { "m", "s", "ms", "us" };
	static const uint64_t factors[] = { 60000000, 1000000, 1000, 1 };
	format_quantity(n, names, factors, 4, out);
}

static void
format_list(const struct strlist *l, struct buf *out)
{
	for (size_t i = 0; i < l->count; i++) {
		if (i != 0)
			buf_add_char(out, ' ');
		buf_add_str(out, l->items[i]);
	}
}

static void
format_nets(const struct netlist *l, struct buf *out)
{
	for (size_t i = 0; i < l->count; i++) {
		const struct ip_net *n = &l->items[i];
		if (i != 0)
			buf_add_char(out, ' ');
		ip_format(out, &n->ip);
		if (n->prefix != (n->ip.family == IP_V4 ? 32 : 128))
			buf_addf(out, "/%u", n->prefix);
	}
}

static void
format_listen(const struct listen_address *l, struct buf *out)
{
	if (l->is_unix) {
		buf_add_c(out, "unix:");
		buf_add_str(out, l->path);
		buf_addf(out, " mode=%04o group=", (unsigned)l->mode);
		buf_add_str(out, l->group);
		return;
	}
	bool v6 = str_chr(l->host, ':') != SIZE_MAX;
	buf_addf(out, "inet:%u@%s", l->port, v6 ? "[" : "");
	buf_add_str(out, l->host);
	if (v6)
		buf_add_char(out, ']');
}

bool
value_is_set(const struct option *o, const void *base)
{
	const char *at = (const char *)base + o->offset;
	if (o->given != 0)
		return *((const bool *)base + o->given);
	switch (o->type) {
	case OPT_BOOL:
	case OPT_CANON:
	case OPT_LISTEN:
		return true;
	case OPT_WORD:
		return *(const int *)at >= 0;
	case OPT_COUNT:
	case OPT_SIZE:
		return o->fallback != NULL || *(const uint64_t *)at != 0;
	case OPT_SECONDS:
	case OPT_MICROS:
		return *(const int64_t *)at >= 0;
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
	case OPT_CANON_TEXT:
		return ((const struct str *)at)->len != 0;
	case OPT_WORDS:
	case OPT_NAMES:
	case OPT_FIELDS:
	case OPT_HEADERS:
	case OPT_VERDICTS:
	case OPT_DOMAINS:
	case OPT_PATTERNS:
	case OPT_SERVERS:
		return ((const struct strlist *)at)->count != 0;
	case OPT_NETS:
		return ((const struct netlist *)at)->count != 0;
	}
	return false;
}

static bool
written_as_switch(const struct option *o)
{
	struct str fallback = str_c(o->fallback);
	return str_eq(fallback, STR("on")) || str_eq(fallback, STR("off"));
}

static void
format_typed(const struct option *o, const void *at, struct buf *out)
{
	const bool *b = at;
	switch (o->type) {
	case OPT_BOOL:
		format_word(
		    written_as_switch(o) ? "off on" : "no yes", *b, out);
		break;
	case OPT_WORD:
		format_word(o->words, *(const int *)at, out);
		break;
	case OPT_COUNT:
		buf_addf(out, "%" PRIu64, *(const uint64_t *)at);
		break;
	case OPT_SIZE:
		format_size(*(const uint64_t *)at, out);
		break;
	case OPT_SECONDS:
		if (*(const int64_t *)at == INT64_MAX && o->empty != NULL)
			buf_add_c(out, o->empty);
		else
			format_seconds(*(const uint64_t *)at, out);
		break;
	case OPT_MICROS:
		format_micros(*(const uint64_t *)at, out);
		break;
	case OPT_CANON:
		buf_addf(out, "%s/%s", b[0] ? "relaxed" : "simple",
		    b[1] ? "relaxed" : "simple");
		break;
	case OPT_LISTEN:
		format_listen(at, out);
		break;
	case OPT_NETS:
		format_nets(at, out);
		break;
	case OPT_WORDS:
	case OPT_NAMES:
	case OPT_FIELDS:
	case OPT_HEADERS:
	case OPT_VERDICTS:
	case OPT_DOMAINS:
	case OPT_PATTERNS:
	case OPT_SERVERS:
		format_list(at, out);
		break;
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
	case OPT_CANON_TEXT:
		buf_add_str(out, *(const struct str *)at);
		break;
	}
}

void
value_format(const struct option *o, const void *base, struct buf *out)
{
	const char *at = (const char *)base + o->offset;
	if (o->shadow != 0 && *((const bool *)base + o->shadow))
		buf_add_c(out, "shadow ");
	struct buf text;
	buf_init(&text, out->max);
	format_typed(o, at, &text);
	if (text.len == 0 && o->empty != NULL)
		buf_add_c(out, o->empty);
	else
		buf_add_str(out, buf_str(&text));
	buf_done(&text);
}
