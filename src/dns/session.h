/* The look-ups of one message: a budget, each question asked once, and every
 * answer kept as evidence of what the verdicts rest on. Lives in the
 * message's arena; used by one thread at a time. */
#ifndef DNS_SESSION_H
#define DNS_SESSION_H

#include "base/arena.h"
#include "dns/dns.h"

struct dns_limits {
	int64_t lookup_us;    /* one look-up, from when it was begun */
	int64_t budget_us;    /* all waiting of this message together */
	unsigned max_queries; /* per message; 0 = DNS_SESSION_MAX_QUERIES */
};
#define DNS_SESSION_MAX_QUERIES 400

struct dns_session;

/* The resolver must outlive the arena. NULL without memory. */
struct dns_session *dns_session_new(
    struct arena *a, struct resolver *r, const struct dns_limits *limits);

/* Ask now, look later; errors show when it is looked up. */
void dns_session_prefetch(
    struct dns_session *s, struct str name, enum dns_type type);

/* The answer, waited for within limits; never NULL, never an error code:
 * running out of time, memory or queries is a DNS_TIMEOUT answer, a name that
 * cannot be asked for (over 253 bytes, a label empty or over 63, bytes that
 * no name has) is DNS_BADNAME. Lives as long as the session's arena. The same
 * question gives the same answer within a session. */
const struct dns_answer *dns_session_get(
    struct dns_session *s, struct str name, enum dns_type type);

/* The answers handed out so far, in order of first use. */
size_t dns_session_count(const struct dns_session *s);
const struct dns_answer *dns_session_at(const struct dns_session *s, size_t i);

/* The name to ask for PTR: "1.2.0.192.in-addr.arpa" and the like. */
struct str dns_reverse_name(struct arena *a, const struct ip *ip);

#endif
