#include "flow/evidence.h"

#include <stdlib.h>

#include "archive/format/record.h"
#include "base/arena.h"
#include "base/codec.h"

#define MAX_ANSWERS 1024
#define EVIDENCE_TTL 300

static const char not_kept[] = "not among the evidence";

struct evidence {
	struct resolver resolver;
	struct arena *arena;
	evidence_edit edit;
	void *context;
	size_t count;
	struct dns_answer *answers[MAX_ANSWERS];
	size_t missing;
	struct str first_missing;
};

static bool
parse_status(struct str text, enum dns_status *out)
{
	for (int s = DNS_OK; s <= DNS_BADNAME; s++)
		if (str_eq(text, str_c(dns_status_text((enum dns_status)s)))) {
			*out = (enum dns_status)s;
			return true;
		}
	return false;
}

static uint64_t
number(struct str value)
{
	uint64_t n = 0;
	for (size_t i = value.len < 8 ? value.len : 8; i > 0; i--)
		n = n << 8 | (uint8_t)value.ptr[i - 1];
	return n;
}

/* As trace_evidence wrote it. */
static bool
parse_record(struct evidence *e, enum dns_type type, struct str name,
    struct str value, struct dns_record *out)
{
	struct str preference;
	uint64_t n;
	*out = (struct dns_record){ .data = value };
	if (type == DNS_A || type == DNS_AAAA)
		return ip_parse(value, &out->ip) == RES_OK;
	if (type == DNS_MX) {
		if (!str_split(&value, ' ', &preference) ||
		    str_to_u64(preference, 65535, &n) != RES_OK)
			return false;
		out->preference = (unsigned)n;
		out->data = value;
	}
	if (type != DNS_TXT || e->edit == NULL)
		return true;
	struct buf changed;
	buf_init(&changed, DNS_MAX_TXT);
	bool good = true;
	if (e->edit(e->context, name, value, &changed)) {
		out->data = arena_dup(e->arena, buf_str(&changed));
		good = changed.error == RES_OK && out->data.ptr != NULL;
	}
	buf_done(&changed);
	return good;
}

static enum res
add_answer(struct evidence *e, struct str record)
{
	struct record_reader r;
	struct str value, name = record_find(record, EVIDENCE_NAME);
	enum dns_type type =
	    (enum dns_type)number(record_find(record, EVIDENCE_TYPE));
	enum dns_status status;
	unsigned tag;
	size_t count = 0, cap = 0;
	struct dns_record *records = NULL;
	if (!parse_status(record_find(record, EVIDENCE_STATUS), &status) ||
	    e->count == MAX_ANSWERS || record_open(record, &r) != RES_OK)
		return RES_CORRUPT;
	while (record_next(&r, &tag, &value)) {
		if (tag != EVIDENCE_RECORD)
			continue;
		if (count == cap) {
			cap = cap == 0 ? 16 : cap * 2;
			struct dns_record *more =
			    arena_array(e->arena, cap, sizeof *more);
			if (more == NULL || cap > DNS_MAX_RECORDS)
				return RES_NOMEM;
			if (count > 0)
				memcpy(more, records, count * sizeof *more);
			records = more;
		}
		if (!parse_record(e, type, name, value, &records[count++]))
			return RES_CORRUPT;
	}
	if (r.error != RES_OK)
		return RES_CORRUPT;
	struct dns_answer *a = dns_answer_new(
	    name, type, status, EVIDENCE_TTL, records, count);
	if (a == NULL)
		return RES_NOMEM;
	struct str secure = record_find(record, EVIDENCE_SECURE);
	a->secure = secure.len == 1 && secure.ptr[0] != 0;
	a->time_us = (int64_t)number(record_find(record, EVIDENCE_TIME));
	e->answers[e->count++] = a;
	return RES_OK;
}

static struct dns_answer *
find(struct evidence *e, struct str name, enum dns_type type)
{
	for (size_t i = 0; i < e->count; i++)
		if (e->answers[i]->type == type &&
		    str_case_eq(e->answers[i]->name, name))
			return dns_answer_ref(e->answers[i]);
	struct dns_answer *a =
	    dns_answer_new(name, type, DNS_TIMEOUT, 0, NULL, 0);
	if (a != NULL)
		a->detail = not_kept;
	return a;
}

/* --- as a resolver --- */

static enum res
evidence_start(struct resolver *r, struct str name, enum dns_type type,
    struct dns_query **out)
{
	struct dns_answer *a = find((struct evidence *)r, name, type);
	if (a == NULL)
		return RES_NOMEM;
	*out = (struct dns_query *)a; /* the query is its answer */
	return RES_OK;
}

static struct dns_answer *
evidence_wait(struct resolver *r, struct dns_query *q, int64_t deadline_us)
{
	struct evidence *e = (struct evidence *)r;
	struct dns_answer *a = (struct dns_answer *)q;
	(void)deadline_us;
	/* counted here: what is asked in advance is not always needed */
	if (a->detail == not_kept && e->missing++ == 0)
		e->first_missing = arena_printf(e->arena, "%.*s %s",
		    STR_ARG(a->name), dns_type_text(a->type));
	return dns_answer_ref(a);
}

static void
evidence_release(struct resolver *r, struct dns_query **q)
{
	struct dns_answer *a = (struct dns_answer *)*q;
	(void)r;
	dns_answer_unref(&a);
	*q = NULL;
}

static void
evidence_free(struct resolver *r)
{
	struct evidence *e = (struct evidence *)r;
	for (size_t i = 0; i < e->count; i++)
		dns_answer_unref(&e->answers[i]);
	arena_free(&e->arena);
	free(e);
}

enum res
evidence_open(const struct evidence_options *o, struct resolver **out)
{
	struct record_reader r = { .error = RES_OK };
	struct str value;
	unsigned tag;
	struct evidence *e = calloc(1, sizeof *e);
	if (e == NULL)
		return RES_NOMEM;
	e->resolver = (struct resolver){ evidence_start, evidence_wait,
		evidence_release, evidence_free };
	e->edit = o->edit;
	e->context = o->context;
	e->arena = arena_new(0);
	enum res res = e->arena != NULL ? RES_OK : RES_NOMEM;
	if (res == RES_OK)
		res = record_open(o->record, &r);
	while (res == RES_OK && record_next(&r, &tag, &value))
		if (tag == EVIDENCE_DNS_ANSWER)
			res = add_answer(e, value);
	if (res == RES_OK)
		res = r.error;
	if (res == RES_OK)
		*out = &e->resolver;
	else
		evidence_free(&e->resolver);
	return res;
}

size_t
evidence_missing(const struct resolver *r)
{
	return ((const struct evidence *)r)->missing;
}

struct str
evidence_first_missing(const struct resolver *r)
{
	return ((const struct evidence *)r)->first_missing;
}
