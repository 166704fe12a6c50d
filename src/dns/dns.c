#include "dns/dns.h"

#include <stdlib.h>

#include "base/clock.h"

bool
dns_status_temporary(enum dns_status s)
{
	switch (s) {
	case DNS_SERVFAIL:
	case DNS_TIMEOUT:
	case DNS_BOGUS:
		return true;
	case DNS_OK:
	case DNS_NODATA:
	case DNS_NXDOMAIN:
	case DNS_BADNAME:
		return false;
	}
	return true;
}

const char *
dns_status_text(enum dns_status s)
{
	switch (s) {
	case DNS_OK:
		return "OK";
	case DNS_NODATA:
		return "NODATA";
	case DNS_NXDOMAIN:
		return "NXDOMAIN";
	case DNS_SERVFAIL:
		return "SERVFAIL";
	case DNS_TIMEOUT:
		return "TIMEOUT";
	case DNS_BOGUS:
		return "BOGUS";
	case DNS_BADNAME:
		return "BADNAME";
	}
	return "?";
}

static const struct {
	enum dns_type type;
	const char *text;
} types[] = {
	{ DNS_A, "A" },
	{ DNS_NS, "NS" },
	{ DNS_CNAME, "CNAME" },
	{ DNS_SOA, "SOA" },
	{ DNS_PTR, "PTR" },
	{ DNS_MX, "MX" },
	{ DNS_TXT, "TXT" },
	{ DNS_AAAA, "AAAA" },
	{ DNS_DNSKEY, "DNSKEY" },
};
#define TYPE_COUNT (sizeof(types) / sizeof(types[0]))

const char *
dns_type_text(enum dns_type t)
{
	for (size_t i = 0; i < TYPE_COUNT; i++) {
		if (types[i].type == t)
			return types[i].text;
	}
	return "?";
}

enum res
dns_type_parse(struct str text, enum dns_type *out)
{
	for (size_t i = 0; i < TYPE_COUNT; i++) {
		if (str_case_eq(text, str_c(types[i].text))) {
			*out = types[i].type;
			return RES_OK;
		}
	}
	return RES_NOTFOUND;
}

static struct str
put(char **at, struct str s)
{
	struct str copy = str_of(*at, s.len);
	if (s.len > 0)
		memcpy(*at, s.ptr, s.len);
	*at += s.len;
	return copy;
}

struct dns_answer *
dns_answer_new(struct str name, enum dns_type type, enum dns_status status,
    uint32_t ttl, const struct dns_record *records, size_t count)
{
	if (count > DNS_MAX_RECORDS)
		return NULL;
	size_t bytes = name.len;
	for (size_t i = 0; i < count; i++)
		bytes += records[i].data.len;
	struct dns_answer *a =
	    calloc(1, sizeof(*a) + count * sizeof(*records) + bytes);
	if (a == NULL)
		return NULL;
	a->records = (struct dns_record *)(void *)(a + 1);
	char *at = (char *)(a->records + count);
	atomic_init(&a->refs, 1);
	a->name = put(&at, name);
	for (size_t i = 0; i < a->name.len; i++) {
		char *c = (char *)a->name.ptr + i;
		*c = ascii_lower(*c);
	}
	a->type = type;
	a->status = status;
	a->ttl = ttl;
	a->time_us = clock_now_us(&CLOCK_SYSTEM);
	a->count = count;
	for (size_t i = 0; i < count; i++) {
		a->records[i] = records[i];
		a->records[i].data = put(&at, records[i].data);
	}
	return a;
}

struct dns_answer *
dns_answer_ref(struct dns_answer *a)
{
	if (a != NULL)
		atomic_fetch_add_explicit(&a->refs, 1, memory_order_relaxed);
	return a;
}

void
dns_answer_unref(struct dns_answer **a)
{
	if (*a != NULL &&
	    atomic_fetch_sub_explicit(&(*a)->refs, 1, memory_order_acq_rel) ==
		1)
		free(*a);
	*a = NULL;
}

void
resolver_free(struct resolver **r)
{
	if (*r != NULL)
		(*r)->free(*r);
	*r = NULL;
}
