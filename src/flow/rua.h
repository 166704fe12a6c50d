/* Where aggregate reports go (RFC 9990 §3.5, §4): from the URIs of a policy
 * record to mail addresses that agreed to get them. */
#ifndef FLOW_RUA_H
#define FLOW_RUA_H

#include "auth/dmarc.h"

enum rua_state {
	RUA_ACCEPTED,
	RUA_REFUSED, /* for good: not an address, or it did not agree */
	RUA_LATER,   /* the DNS does not answer now */
};

struct rua_target {
	struct str uri;     /* as in the record */
	struct str address; /* local@domain, domain in normal form; may be empty
	                       when refused */
	enum rua_state state;
	const char *why;    /* static text, NULL when accepted */
};
#define RUA_MAX_TARGETS 32 /* of one domain, replacements counted; the rest is
                              not looked at */

/* The address of a mailto URI: percent-decoded, without what follows a "?".
 * Only plain addresses are taken, as they go into a header field: a local part
 * of atoms and dots (RFC 5322 §3.2.3), at most 64 bytes, and a domain.
 * RES_UNSUPPORTED: another scheme. RES_SYNTAX: no such address. */
HN_CHECK enum res rua_address(
    struct arena *a, struct str uri, struct str *out_address);

/* Decide about each URI of the record at `domain`, each address once. An
 * address of another organization must have agreed (RUA-05), and may name
 * others at the same host in its place. RES_NOMEM only. */
HN_CHECK enum res rua_targets(struct arena *a, struct dns_session *dns,
    enum org_method method, struct str domain, const struct str *uris,
    size_t count, struct rua_target out[RUA_MAX_TARGETS], size_t *out_count);

#endif
