/* Answers of the DNS and who gives them.
 *
 * A resolver starts a query, lets a thread wait for it until a deadline, and
 * cancels it; a query is reference-counted and may outlive its message. Two
 * implementations: libunbound's event API in a thread of its own
 * (dns/unbound.h), and a fixed zone file (dns/zone.h).
 *
 * Verdict code does not use resolvers but a `struct dns_session`
 * (dns/session.h), which has the message's budget and keeps the evidence. */
#ifndef DNS_DNS_H
#define DNS_DNS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/ip.h"
#include "base/res.h"
#include "base/str.h"

enum dns_type {
	DNS_A = 1,
	DNS_NS = 2,
	DNS_CNAME = 5,
	DNS_SOA = 6,
	DNS_PTR = 12,
	DNS_MX = 15,
	DNS_TXT = 16,
	DNS_AAAA = 28,
	DNS_DNSKEY = 48,
};

enum dns_status {
	DNS_OK,       /* at least one record of the type asked for */
	DNS_NODATA,   /* the name exists, the type does not (DNS-02) */
	DNS_NXDOMAIN, /* the name does not exist */
	DNS_SERVFAIL, /* SERVFAIL, REFUSED, any other rcode, malformed answer */
	DNS_TIMEOUT,  /* no answer before the deadline or within the budget */
	DNS_BOGUS,    /* DNSSEC says no: never used, counts as temporary */
	DNS_BADNAME,  /* not a name that can be asked for: nothing was asked */
};

/* Nothing may be concluded from it: verdicts become temperror. */
bool dns_status_temporary(enum dns_status s);
const char *dns_status_text(enum dns_status s); /* "NXDOMAIN", … */
const char *dns_type_text(enum dns_type t);     /* "TXT", … */
HN_CHECK enum res dns_type_parse(struct str text, enum dns_type *out);

struct dns_record {
	struct str data;     /* TXT: strings joined; PTR, MX, NS: the name,
	                        lower case without final dot ("." = "") */
	unsigned preference; /* MX */
	struct ip ip;        /* A, AAAA */
};

#define DNS_MAX_RECORDS 1024
#define DNS_MAX_TXT     65535

/* Immutable and shared once it is handed out. */
struct dns_answer {
	atomic_uint refs;
	struct str name; /* as asked, lower case */
	enum dns_type type;
	enum dns_status status;
	bool secure;        /* DNSSEC-validated */
	uint32_t ttl;       /* seconds left when it was answered */
	int64_t time_us;    /* wall clock of the answer */
	const char *detail; /* static text: why not DNS_OK; may be NULL */
	size_t count;
	struct dns_record *records; /* in the order answered */
};

/* One allocation for all; `records` and their data are copied. NULL without
 * memory. */
struct dns_answer *dns_answer_new(struct str name, enum dns_type type,
    enum dns_status status, uint32_t ttl, const struct dns_record *records,
    size_t count);
struct dns_answer *dns_answer_ref(struct dns_answer *a);
void dns_answer_unref(struct dns_answer **a);

struct dns_query; /* opaque, owned by its resolver's implementation */

struct resolver {
	/* Begin. `name` is a checked name in lower case without final dot.
	 * The query is owned by the caller until `release`. RES_NOMEM,
	 * RES_AGAIN when too many are under way. */
	enum res (*start)(struct resolver *r, struct str name,
	    enum dns_type type, struct dns_query **out);
	/* Block until answered or until `deadline_us` (clock_mono_us). A new
	 * reference, or NULL at the deadline (or without memory). */
	struct dns_answer *(*wait)(
	    struct resolver *r, struct dns_query *q, int64_t deadline_us);
	/* Give the query up: cancels it if nobody else waits. Clears. */
	void (*release)(struct resolver *r, struct dns_query **q);
	/* Stop threads and free; no query may be held any more. */
	void (*free)(struct resolver *r);
};

void resolver_free(struct resolver **r);

#endif
