/* Do a rule's match lists hold for this message? One form for `[override]`
 * and `[archive]` sections: all named lists must match, one item of each is
 * enough; what the message does not have matches nothing. Pure. */
#ifndef FLOW_MATCH_H
#define FLOW_MATCH_H

#include "config/config.h"

struct match_facts {
	const struct str *from_domains; /* author domains, normal form */
	size_t from_count;
	struct ip client;
	struct str ptr;        /* verified client name; may be empty */
	struct str list_id;    /* between the brackets of List-Id; or empty */
	struct str sealer;     /* d= of the newest seal of a passing chain */
	bool outbound;
};

/* The lists save `recipient`. */
bool match_message(const struct match_lists *m, const struct match_facts *f);
/* `recipient` is an address without brackets; an empty list of recipients
 * holds for every one. */
bool match_recipient(const struct match_lists *m, struct str recipient);

/* One pattern: `dom`, `.dom` (any name below), any case. */
bool match_domain(struct str pattern, struct str domain);
/* The same, `user@dom`, or `*` for any address. */
bool match_address(struct str pattern, struct str address);

#endif
