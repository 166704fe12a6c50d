/* SPF (RFC 7208) by libspf2 behind our own record linter, DNS layer, budget
 * and counters; libspf2 never sees an exp= (it can be crashed by one). */
#ifndef AUTH_SPF_H
#define AUTH_SPF_H

#include <stdbool.h>

#include "auth/result.h"
#include "base/arena.h"
#include "base/ip.h"
#include "dns/session.h"

enum spf_identity {
	SPF_MAILFROM,
	SPF_HELO
};

struct spf_request {
	struct ip client;
	struct str helo;
	struct str
	    mail_from; /* without <>; empty: null sender, postmaster@HELO */
	struct str receiver; /* %{r}: our host name; empty: "unknown" */
	int64_t now_s;       /* %{t} */
	unsigned void_limit; /* 2 by RFC */
};

struct spf_result {
	enum auth_result result;
	enum spf_identity identity;
	struct str domain;  /* normal form; empty when there was none */
	const char *reason; /* static text for none, temperror, permerror */
	struct str
	    explanation; /* of a fail by exp=, printable ASCII; may be empty */
	struct str mechanism; /* the term that decided, when known */
	bool local_part_used; /* the record's macros used the local part */
};

/* Check one identity. RES_NOMEM only. */
HN_CHECK enum res spf_check(struct arena *a, struct dns_session *dns,
    const struct spf_request *rq, enum spf_identity identity,
    struct spf_result *out);

/* Ask for the record early. */
void spf_prefetch(struct arena *a, struct dns_session *dns,
    const struct spf_request *rq, enum spf_identity identity);

#endif
