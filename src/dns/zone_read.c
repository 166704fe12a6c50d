#include "dns/zone_read.h"

#include <stdlib.h>

#include "base/buf.h"
#include "dns/name.h"

struct reader {
	struct arena *arena;
	struct zone_entry *entries;
	size_t count;
	const char *label;
	struct err *err;
	struct str text; /* the rest of the line */
	unsigned line;
	size_t cap;
	struct buf scratch;
};

static enum res
fail(struct reader *rd, const char *what)
{
	err_set(rd->err, "%s:%u: %s", rd->label, rd->line, what);
	return RES_SYNTAX;
}

static bool
skip_blank(struct reader *rd)
{
	size_t n = 0;
	while (n < rd->text.len && ascii_is_wsp(rd->text.ptr[n]))
		n++;
	rd->text = str_skip(rd->text, n);
	return rd->text.len > 0;
}

/* "\DDD" or "\x" at `s`, which begins with the backslash; returns its length
 * or 0 when it is none. */
static size_t
unescape(struct str s, char *out)
{
	if (s.len >= 4 && ascii_is_digit(s.ptr[1]) &&
	    ascii_is_digit(s.ptr[2]) && ascii_is_digit(s.ptr[3])) {
		int v = (s.ptr[1] - '0') * 100 + (s.ptr[2] - '0') * 10 +
		    (s.ptr[3] - '0');
		*out = (char)(unsigned char)v;
		return v > 255 ? 0 : 4;
	}
	if (s.len < 2 || ascii_is_digit(s.ptr[1]))
		return 0;
	*out = s.ptr[1];
	return 2;
}

/* Append one word, quoted or not, to `out`. */
static enum res
read_word(struct reader *rd, struct buf *out)
{
	bool quoted = rd->text.len > 0 && rd->text.ptr[0] == '"';
	size_t i = quoted ? 1 : 0;
	for (;; i++) {
		if (i >= rd->text.len) {
			if (quoted)
				return fail(rd, "the closing quote is missing");
			break;
		}
		char c = rd->text.ptr[i];
		if (quoted ? c == '"' : ascii_is_wsp(c))
			break;
		if (c == '\\') {
			size_t n = unescape(str_skip(rd->text, i), &c);
			if (n == 0)
				return fail(rd, "bad escape after \"\\\"");
			i += n - 1;
		}
		buf_add_char(out, c);
	}
	rd->text = str_skip(rd->text, quoted ? i + 1 : i);
	if (out->error == RES_LIMIT)
		return fail(rd, "too long for a DNS record");
	return out->error;
}

/* One word into the arena, as a name. */
static enum res
read_name(struct reader *rd, struct str *out)
{
	buf_reset(&rd->scratch);
	enum res r = read_word(rd, &rd->scratch);
	if (r != RES_OK)
		return r;
	*out = arena_lower(rd->arena, dns_name_chop(buf_str(&rd->scratch)));
	return out->ptr != NULL ? RES_OK : RES_NOMEM;
}

static enum res
read_txt(struct reader *rd, struct zone_entry *e)
{
	buf_reset(&rd->scratch);
	while (skip_blank(rd)) {
		enum res r = read_word(rd, &rd->scratch);
		if (r != RES_OK)
			return r;
	}
	e->record.data = arena_dup(rd->arena, buf_str(&rd->scratch));
	return e->record.data.ptr != NULL ? RES_OK : RES_NOMEM;
}

static enum res
read_address(struct reader *rd, struct zone_entry *e)
{
	enum ip_family want = e->type == DNS_A ? IP_V4 : IP_V6;
	struct str word = rd->text;
	if (ip_parse(str_trim(word), &e->record.ip) != RES_OK)
		return fail(rd, "not an IP address");
	/* "::ffff:1.2.3.4" is an IPv4 address to us, never an AAAA match. */
	if (e->record.ip.family != want &&
	    (want == IP_V4 || str_chr(word, ':') == SIZE_MAX))
		return fail(rd, "address of the wrong family for its type");
	rd->text = STR_EMPTY;
	return RES_OK;
}

static enum res
read_mx(struct reader *rd, struct zone_entry *e)
{
	size_t n = 0;
	while (n < rd->text.len && !ascii_is_wsp(rd->text.ptr[n]))
		n++;
	uint64_t preference;
	if (str_to_u64(str_sub(rd->text, 0, n), 65535, &preference) != RES_OK)
		return fail(rd, "MX needs a preference (0-65535) and a host");
	e->record.preference = (unsigned)preference;
	rd->text = str_skip(rd->text, n);
	skip_blank(rd);
	return read_name(rd, &e->record.data);
}

static enum res
read_status(struct reader *rd, struct zone_entry *e)
{
	static const enum dns_status words[] = { DNS_SERVFAIL, DNS_NXDOMAIN,
		DNS_NODATA, DNS_TIMEOUT };
	struct str word = str_trim(str_skip(rd->text, 1));
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (str_case_eq(word, str_c(dns_status_text(words[i])))) {
			e->status = words[i];
			rd->text = STR_EMPTY;
			return RES_OK;
		}
	}
	return fail(
	    rd, "after \"!\" comes SERVFAIL, NXDOMAIN, NODATA or TIMEOUT");
}

static enum res
read_data(struct reader *rd, struct zone_entry *e)
{
	if (rd->text.len > 0 && rd->text.ptr[0] == '!')
		return read_status(rd, e);
	if (e->type == ZONE_TYPE_ANY)
		return fail(rd, "type * takes only !SERVFAIL and the like");
	switch (e->type) {
	case DNS_A:
	case DNS_AAAA:
		return read_address(rd, e);
	case DNS_MX:
		return read_mx(rd, e);
	case DNS_PTR:
	case DNS_NS:
	case DNS_CNAME:
		if (rd->text.len == 0)
			return fail(rd, "the name it points to is missing");
		return read_name(rd, &e->record.data);
	case DNS_TXT:
		return read_txt(rd, e);
	case DNS_SOA:
	case DNS_DNSKEY:
		break;
	}
	/* Nothing looks inside the others. */
	e->record.data = arena_dup(rd->arena, rd->text);
	rd->text = STR_EMPTY;
	return e->record.data.ptr != NULL ? RES_OK : RES_NOMEM;
}

/* A TTL and the class may stand before the type, as in a master file. */
static void
skip_ttl_and_class(struct reader *rd)
{
	for (;;) {
		size_t n = 0;
		while (n < rd->text.len && !ascii_is_wsp(rd->text.ptr[n]))
			n++;
		struct str word = str_sub(rd->text, 0, n);
		uint64_t ttl;
		if (!str_case_eq(word, STR("IN")) &&
		    str_to_u64(word, INT32_MAX, &ttl) != RES_OK)
			return;
		rd->text = str_skip(rd->text, n);
		skip_blank(rd);
	}
}

static enum res
read_type(struct reader *rd, enum dns_type *out)
{
	size_t n = 0;
	skip_ttl_and_class(rd);
	while (n < rd->text.len && !ascii_is_wsp(rd->text.ptr[n]))
		n++;
	struct str word = str_sub(rd->text, 0, n);
	rd->text = str_skip(rd->text, n);
	if (str_eq(word, STR("*")))
		*out = ZONE_TYPE_ANY;
	else if (str_case_eq(word, STR("SPF")))
		*out = ZONE_TYPE_SPF;
	else if (dns_type_parse(word, out) != RES_OK)
		return fail(rd,
		    word.len == 0 ? "the type is missing"
				  : "unknown record type");
	skip_blank(rd);
	return RES_OK;
}

static struct zone_entry *
add_entry(struct reader *rd)
{
	if (rd->count == rd->cap) {
		size_t cap = rd->cap == 0 ? 64 : rd->cap * 2;
		struct zone_entry *more =
		    realloc(rd->entries, cap * sizeof(*more));
		if (more == NULL)
			return NULL;
		rd->entries = more;
		rd->cap = cap;
	}
	struct zone_entry *e = &rd->entries[rd->count++];
	*e = (struct zone_entry){ .line = rd->line, .status = DNS_OK };
	return e;
}

/* The line without its comment: "#" or ";" at the start or after a blank. */
static struct str
without_comment(struct str line)
{
	bool quoted = false, blank = true;
	for (size_t i = 0; i < line.len; i++) {
		char c = line.ptr[i];
		if (!quoted && blank && (c == '#' || c == ';'))
			return str_sub(line, 0, i);
		if (c == '\\')
			i++;
		else if (c == '"' && (quoted || blank))
			quoted = !quoted;
		blank = ascii_is_wsp(c);
	}
	return line;
}

static enum res
read_line(struct reader *rd, struct str line)
{
	rd->text = str_trim(without_comment(line));
	if (rd->text.len == 0)
		return RES_OK;
	if (rd->count >= ZONE_MAX_RECORDS)
		return fail(rd, "too many records");
	struct zone_entry *e = add_entry(rd);
	if (e == NULL)
		return RES_NOMEM;
	enum res r = read_name(rd, &e->name);
	if (r == RES_OK) {
		skip_blank(rd);
		r = read_type(rd, &e->type);
	}
	if (r == RES_OK)
		r = read_data(rd, e);
	if (r == RES_OK && skip_blank(rd))
		r = fail(rd, "there is something behind the data");
	return r;
}

enum res
zone_read(struct arena *a, struct str text, const char *label, struct err *err,
    struct zone_entry **out_entries, size_t *out_count)
{
	struct reader rd = { .arena = a, .label = label, .err = err };
	enum res r = RES_OK;
	struct str line;
	if (text.len > ZONE_MAX_BYTES) {
		err_set(
		    err, "%s: zone file over %zu bytes", label, ZONE_MAX_BYTES);
		return RES_LIMIT;
	}
	buf_init(&rd.scratch, DNS_MAX_TXT);
	while (r == RES_OK && str_split(&text, '\n', &line)) {
		rd.line++;
		r = read_line(&rd, line);
	}
	buf_done(&rd.scratch);
	*out_entries = rd.entries;
	*out_count = rd.count;
	return r;
}
