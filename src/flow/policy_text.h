/* What the sender of refused mail is told: code, enhanced status code (RFC
 * 3463, RFC 7372) and one line. Inside policy only. */
#ifndef FLOW_POLICY_TEXT_H
#define FLOW_POLICY_TEXT_H

#include "flow/policy.h"

/* Fill in code, enhanced and text for a tempfail or reject; nothing for other
 * actions. RES_NOMEM only. */
HN_CHECK enum res policy_reply(struct arena *a, const struct config *c,
    const struct policy_facts *f, struct policy_decision *d);

#endif
