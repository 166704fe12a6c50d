/* ARC chain validation (RFC 8617 §5.2, standards.md §3). Results are none,
 * pass and fail only; a DNS failure is a fail with `temporary` set, so that
 * nothing is sealed and policy can wait (design §3). */
#ifndef AUTH_ARC_VERIFY_H
#define AUTH_ARC_VERIFY_H

#include <stdbool.h>

#include "auth/bodyhash.h"
#include "auth/dkim_verify.h"
#include "auth/result.h"

#define ARC_MAX_INSTANCES 50

struct arc_set {
	const struct field *aar, *ams, *as;
	struct str d, s;      /* of the ARC-Seal, normalized */
	struct str ams_d;     /* of the ARC-Message-Signature */
};

struct arc_result {
	enum auth_result result; /* AUTH_NONE, AUTH_PASS, AUTH_FAIL */
	const char *reason;      /* for fail: which field, and why; lives as
	                            long as the arena */
	bool temporary;          /* it failed for want of a DNS answer */
	bool sealed_fail;        /* the newest seal says cv=fail: never extend */
	unsigned instances;      /* highest instance seen, 0 = none */
	unsigned oldest_pass;    /* header.oldest-pass: 0 = all verify */
	const struct arc_set *sets; /* [0] is instance 1; `instances` of them
	                               when the structure holds, else NULL */
};

struct arc_verify;

HN_CHECK enum res arc_verify_begin(struct arena *a, const struct header *h,
    const struct dkim_verify_options *o, struct dns_session *dns,
    struct bodyhash_set *hashes, struct arc_verify **out);
HN_CHECK enum res arc_verify_finish(
    struct arc_verify *v, struct arc_result *out);

#endif
