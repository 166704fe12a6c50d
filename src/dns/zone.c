#include "dns/zone.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "dns/zone_read.h"

#define ZONE_MAX_CNAMES 8
#define ZONE_TTL        300

struct zone {
	struct resolver resolver;
	struct arena *arena;
	bool timeout_waits;
	struct zone_entry *entries; /* sorted by name, type, line */
	size_t count;
};

/* What a caller holds as its struct dns_query. */
struct zone_query {
	struct dns_answer *answer; /* NULL: never answers */
};

static int
entry_cmp(const void *a, const void *b)
{
	const struct zone_entry *x = a, *y = b;
	int c = str_cmp(x->name, y->name);
	if (c == 0)
		c = (x->type > y->type) - (x->type < y->type);
	if (c == 0)
		c = (x->line > y->line) - (x->line < y->line);
	return c;
}

/* ---- answering -------------------------------------------------------- */

/* The entries of one name and type: the first, their number in *out_count. */
static const struct zone_entry *
find(const struct zone *z, struct str name, enum dns_type type,
    size_t *out_count)
{
	struct zone_entry key = { .name = name, .type = type };
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
		DNS_PTR, DNS_MX, DNS_TXT, DNS_AAAA, DNS_DNSKEY, ZONE_TYPE_SPF };
	size_t n;
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		if (find(z, name, all[i], &n) != NULL)
			return true;
	}
	return false;
}

/* `asked` is the question's name, `e` what the last CNAME led to. */
static struct dns_answer *
answer_entries(struct str asked, enum dns_type type, const struct zone_entry *e,
    size_t count)
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
		const struct zone_entry *e = find(z, name, type, &n);
		if (e != NULL && n > DNS_MAX_RECORDS)
			return answer_status(
			    asked, type, DNS_SERVFAIL, "too many records");
		if (e != NULL)
			return answer_entries(asked, type, e, n);
		e = find(z, name, DNS_CNAME, &n);
		if (e == NULL || e->status != DNS_OK) {
			e = find(z, name, ZONE_TYPE_ANY, &n);
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
	struct zone *z = zone_new(timeout_waits);
	if (z == NULL)
		return RES_NOMEM;
	enum res r =
	    zone_read(z->arena, text, label, err, &z->entries, &z->count);
	if (r != RES_OK) {
		zone_free(&z->resolver);
		return r;
	}
	if (z->count > 0)
		qsort(z->entries, z->count, sizeof(*z->entries), entry_cmp);
	*out = &z->resolver;
	return RES_OK;
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
	buf_init(&text, ZONE_MAX_BYTES);
	enum res r = buf_read(&text, fd);
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
