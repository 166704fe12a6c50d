/* DNS messages as bytes (RFC 1035 §4), read with bounds on everything. */
#ifndef DNS_WIRE_H
#define DNS_WIRE_H

#include <stdint.h>

#include "dns/dns.h"

#define WIRE_MAX_CNAMES 16 /* followed within one answer */
#define WIRE_MAX_TTL    86400u
/* A negative answer without SOA, as resolvers with fixed data give it, should
 * not be cached (RFC 2308 §5), but libunbound behind us keeps it that long. */
#define WIRE_BARE_TTL   5u

/* What the message `packet` says to the question (name, type, IN). `name` is
 * a checked name (dns/name.h). Not the answer to this very question, a
 * malformed message, an rcode other than NOERROR and NXDOMAIN, a CNAME loop,
 * more than DNS_MAX_RECORDS records: DNS_SERVFAIL with a detail. The TTL is
 * the smallest that took part, of negative answers by RFC 2308 §5 (without SOA
 * WIRE_BARE_TTL), WIRE_MAX_TTL at most. NULL without memory. */
struct dns_answer *wire_answer(
    const void *packet, size_t len, struct str name, enum dns_type type);

#endif
