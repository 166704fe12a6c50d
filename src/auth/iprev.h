/* iprev (RFC 8601 §3): does the name of the client's address lead back to it?
 * pass: it does; fail: it leads elsewhere or nowhere; permerror: the address
 * has no name; temperror: the DNS did not say. */
#ifndef AUTH_IPREV_H
#define AUTH_IPREV_H

#include "auth/result.h"
#include "base/arena.h"
#include "dns/session.h"

#define IPREV_MAX_NAMES 10 /* PTR names looked at */

struct iprev_result {
	enum auth_result result;
	const char *reason; /* static text, NULL for pass */
	struct str name;    /* the name that leads back, or the first one */
};

/* Ask for the PTR record early. */
void iprev_prefetch(
    struct arena *a, struct dns_session *dns, const struct ip *client);

/* `client` is an address, not IP_NONE. RES_NOMEM only. */
HN_CHECK enum res iprev_check(struct arena *a, struct dns_session *dns,
    const struct ip *client, struct iprev_result *out);

#endif
