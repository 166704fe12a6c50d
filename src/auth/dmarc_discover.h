/* Where the policy of an author domain stands and what its organizational
 * domain is: the tree walk of RFC 9989 §4.10, or the public suffix list (RFC
 * 7489 §3.2). Names are in normal form. Inside auth only. */
#ifndef AUTH_DMARC_DISCOVER_H
#define AUTH_DMARC_DISCOVER_H

#include "auth/dmarc.h"

enum dmarc_look { DMARC_LOOK_FOUND, DMARC_LOOK_ABSENT, DMARC_LOOK_SEVERAL,
	DMARC_LOOK_TEMPORARY };

/* The one record at `_dmarc.` + domain. Several valid ones count as none in
 * the walk, and end the search in PSL mode. RES_NOMEM only. */
HN_CHECK enum res dmarc_look_up(struct arena *a, struct dns_session *dns,
    struct str domain, enum dmarc_look *out, struct dmarc_record *out_record);

struct dmarc_discovery {
	enum dmarc_look look;    /* FOUND, ABSENT or TEMPORARY */
	struct dmarc_record record;
	struct str record_domain;
	struct str org_domain;   /* empty when it was not needed to know */
};

/* DMARC-D-01, D-02, D-05, PSL-02. RES_NOMEM only. */
HN_CHECK enum res dmarc_discover(struct arena *a, struct dns_session *dns,
    enum org_method method, struct str domain, struct dmarc_discovery *out);

#endif
