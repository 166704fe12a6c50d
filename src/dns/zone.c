#include "dns/zone.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/clock.h"
#include "dns/name.h"

#define ZONE_MAX_BYTES   ((size_t)64 << 20) /* of zone text */
#define ZONE_MAX_RECORDS ((size_t)1 << 20)
#define ZONE_MAX_CNAMES  8
#define ZONE_TTL         300
#define TYPE_ANY         ((enum dns_type)255) /* the zone file's "*" */
#define TYPE_SPF         ((enum dns_type)99)  /* read, but never asked for */

/* One line. `status` is DNS_OK for data; a name with several lines of one
 * type keeps their order by `line`. */
struct entry {
	struct str name;
	enum dns_type type;
	enum dns_status status;
	unsigned line;
	struct dns_record record;
};

struct zone {
	struct resolver resolver;
	struct arena *arena;
	bool timeout_waits;
	struct entry *entries; /* sorted by name, type, line */
	size_t count;
};

/* What a caller holds as its struct dns_query. */
struct zone_query {
	struct dns_answer *answer; /* NULL: never answers */
};

/* ---- reading ---------------------------------------------------------- */

struct reader {
	struct zone *zone;
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
	*out =
	    arena_lower(rd->zone->arena, dns_name_chop(buf_str(&rd->scratch)));
	return out->ptr != NULL ? RES_OK : RES_NOMEM;
}

static enum res
read_txt(struct reader *rd, struct entry *e)
{
	buf_reset(&rd->scratch);
	while (skip_blank(rd)) {
		enum res r = read_word(rd, &rd->scratch);
		if (r != RES_OK)
			return r;
	}
	e->record.data = arena_dup(rd->zone->arena, buf_str(&rd->scratch));
	return e->record.data.ptr != NULL ? RES_OK : RES_NOMEM;
}

static enum res
read_address(struct reader *rd, struct entry *e)
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
read_mx(struct reader *rd, struct entry *e)
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
read_status(struct reader *rd, struct entry *e)
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
read_data(struct reader *rd, struct entry *e)
{
	if (rd->text.len > 0 && rd->text.ptr[0] == '!')
		return read_status(rd, e);
	if (e->type == TYPE_ANY)
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
	e->record.data = arena_dup(rd->zone->arena, rd->text);
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
		*out = TYPE_ANY;
	else if (str_case_eq(word, STR("SPF")))
		*out = TYPE_SPF;
	else if (dns_type_parse(word, out) != RES_OK)
		return fail(rd,
		    word.len == 0 ? "the type is missing"
				  : "unknown record type");
	skip_blank(rd);
	return RES_OK;
}

static struct entry *
add_entry(struct reader *rd)
{
	struct zone *z = rd->zone;
	if (z->count == rd->cap) {
		size_t cap = rd->cap == 0 ? 64 : rd->cap * 2;
		struct entry *more = realloc(z->entries, cap * sizeof(*more));
		if (more == NULL)
			return NULL;
		z->entries = more;
		rd->cap = cap;
	}
	struct entry *e = &z->entries[z->count++];
	*e = (struct entry){ .line = rd->line, .status = DNS_OK };
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
	if (rd->zone->count >= ZONE_MAX_RECORDS)
		return fail(rd, "too many records");
	struct entry *e = add_entry(rd);
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

static int
entry_cmp(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;
	int c = str_cmp(x->name, y->name);
	if (c == 0)
		c = (x->type > y->type) - (x->type < y->type);
	if (c == 0)
		c = (x->line > y->line) - (x->line < y->line);
	return c;
}

/* ---- answering -------------------------------------------------------- */

/* The entries of one name and type: the first, their number in *out_count. */
static const struct entry *
find(const struct zone *z, struct str name, enum dns_type type,
    size_t *out_count)
{
	struct entry key = { .name = name, .type = type };
	size_t low = 0, high = z->count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (entry_cmp(&z->entries[middle], &key) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	size_t n = 0;
	while (low + n < z->count && z->entries[low + n].type == type &&
	    str_eq(z->entries[low + n].name, name))
		n++;
	*out_count = n;
	return n > 0 ? &z->entries[low] : NULL;
}

static bool
name_listed(const struct zone *z, struct str name)
{
	static const enum dns_type all[] = { DNS_A, DNS_NS, DNS_CNAME, DNS_SOA,
		DNS_PTR, DNS_MX, DNS_TXT, DNS_AAAA, DNS_DNSKEY, TYPE_SPF };
	size_t n;
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		if (find(z, name, all[i], &n) != NULL)
			return true;
	}
	return false;
}

/* `asked` is the question's name, `e` what the last CNAME led to. */
static struct dns_answer *
answer_entries(
    struct str asked, enum dns_type type, const struct entry *e, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (e[i].status == DNS_OK)
			continue;
		struct dns_answer *a =
		    dns_answer_new(asked, type, e[i].status, ZONE_TTL, NULL, 0);
		if (a != NULL && dns_status_temporary(a->status))
			a->detail = "the zone file says so";
		return a;
	}
	struct dns_record *records = calloc(count, sizeof(*records));
	if (records == NULL)
		return NULL;
	for (size_t i = 0; i < count; i++)
		records[i] = e[i].record;
	struct dns_answer *a =
	    dns_answer_new(asked, type, DNS_OK, ZONE_TTL, records, count);
	free(records);
	return a;
}

static struct dns_answer *
answer_status(struct str asked, enum dns_type type, enum dns_status status,
    const char *detail)
{
	struct dns_answer *a =
	    dns_answer_new(asked, type, status, ZONE_TTL, NULL, 0);
	if (a != NULL)
		a->detail = detail;
	return a;
}

static struct dns_answer *
lookup(const struct zone *z, struct str asked, enum dns_type type)
{
	struct str name = asked;
	for (unsigned hops = 0; hops <= ZONE_MAX_CNAMES; hops++) {
		size_t n;
		const struct entry *e = find(z, name, type, &n);
		if (e != NULL && n > DNS_MAX_RECORDS)
			return answer_status(
			    asked, type, DNS_SERVFAIL, "too many records");
		if (e != NULL)
			return answer_entries(asked, type, e, n);
		e = find(z, name, DNS_CNAME, &n);
		if (e == NULL || e->status != DNS_OK) {
			e = find(z, name, TYPE_ANY, &n);
			if (e != NULL)
				return answer_entries(asked, type, e, n);
			return answer_status(asked, type,
			    name_listed(z, name) ? DNS_NODATA : DNS_NXDOMAIN,
			    NULL);
		}
		name = e->record.data;
	}
	return answer_status(
	    asked, type, DNS_SERVFAIL, "CNAME loop or too many CNAMEs");
}

static enum res
zone_start(struct resolver *r, struct str name, enum dns_type type,
    struct dns_query **out)
{
	const struct zone *z = (const struct zone *)r;
	struct zone_query *q = calloc(1, sizeof(*q));
	if (q == NULL)
		return RES_NOMEM;
	q->answer = lookup(z, name, type);
	if (q->answer == NULL) {
		free(q);
		return RES_NOMEM;
	}
	if (z->timeout_waits && q->answer->status == DNS_TIMEOUT)
		dns_answer_unref(&q->answer);
	*out = (struct dns_query *)q;
	return RES_OK;
}

static struct dns_answer *
zone_wait(struct resolver *r, struct dns_query *query, int64_t deadline_us)
{
	struct zone_query *q = (struct zone_query *)query;
	if (q->answer != NULL)
		return dns_answer_ref(q->answer);
	struct timespec until = { .tv_sec = (time_t)(deadline_us / 1000000),
		.tv_nsec = (long)(deadline_us % 1000000) * 1000 };
	if (deadline_us > 0) {
		while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until,
			   NULL) == EINTR)
			;
	}
	return NULL;
}

static void
zone_release(struct resolver *r, struct dns_query **query)
{
	struct zone_query *q = (struct zone_query *)*query;
	if (q != NULL)
		dns_answer_unref(&q->answer);
	free(q);
	*query = NULL;
}

static void
zone_free(struct resolver *r)
{
	struct zone *z = (struct zone *)r;
	arena_free(&z->arena);
	free(z->entries);
	free(z);
}

/* ---- opening ---------------------------------------------------------- */

static struct zone *
zone_new(bool timeout_waits)
{
	struct zone *z = calloc(1, sizeof(*z));
	if (z == NULL)
		return NULL;
	z->resolver = (struct resolver){ .start = zone_start,
		.wait = zone_wait,
		.release = zone_release,
		.free = zone_free };
	z->timeout_waits = timeout_waits;
	z->arena = arena_new(4 * ZONE_MAX_BYTES);
	if (z->arena == NULL) {
		free(z);
		return NULL;
	}
	return z;
}

enum res
zone_from_text(struct str text, const char *label, bool timeout_waits,
    struct err *err, struct resolver **out)
{
	if (text.len > ZONE_MAX_BYTES) {
		err_set(
		    err, "%s: zone file over %zu bytes", label, ZONE_MAX_BYTES);
		return RES_LIMIT;
	}
	struct zone *z = zone_new(timeout_waits);
	if (z == NULL)
		return RES_NOMEM;
	struct reader rd = { .zone = z, .label = label, .err = err };
	buf_init(&rd.scratch, DNS_MAX_TXT);
	enum res r = RES_OK;
	struct str line;
	while (
	    r == RES_OK && text.ptr != NULL && str_split(&text, '\n', &line)) {
		rd.line++;
		r = read_line(&rd, line);
	}
	buf_done(&rd.scratch);
	if (r != RES_OK) {
		zone_free(&z->resolver);
		return r;
	}
	if (z->count > 0)
		qsort(z->entries, z->count, sizeof(*z->entries), entry_cmp);
	*out = &z->resolver;
	return RES_OK;
}

static enum res
read_file(int fd, struct buf *out)
{
	for (;;) {
		char *to = buf_reserve(out, 65536);
		if (to == NULL)
			return out->error;
		ssize_t n = read(fd, to, 65536);
		if (n == 0)
			return RES_OK;
		if (n < 0 && errno != EINTR)
			return RES_IO;
		if (n > 0)
			out->len += (size_t)n;
	}
}

enum res
zone_open(const char *path, bool timeout_waits, struct err *err,
    struct resolver **out)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0) {
		err_set(err, "%s: %s", path, strerror(errno));
		return RES_IO;
	}
	struct buf text;
	buf_init(&text, ZONE_MAX_BYTES + 65536);
	enum res r = read_file(fd, &text);
	if (r == RES_IO)
		err_set(err, "%s: %s", path, strerror(errno));
	else if (r == RES_LIMIT)
		err_set(
		    err, "%s: zone file over %zu bytes", path, ZONE_MAX_BYTES);
	if (r == RES_OK)
		r = zone_from_text(
		    buf_str(&text), path, timeout_waits, err, out);
	buf_done(&text);
	close(fd);
	return r;
}
