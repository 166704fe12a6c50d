/* ARC sealing (RFC 8617 §5.1, standards.md §3.3). */
#ifndef AUTH_ARC_SEAL_H
#define AUTH_ARC_SEAL_H

#include "auth/arc_verify.h"
#include "auth/dkim_sign.h"

struct arc_seal_options {
	struct str authserv_id;
	struct str results; /* our resinfo list for the AAR, without id, without
	                       comments: "spf=pass …; dkim=pass …" */
	int64_t now_s;
	enum canon header_canon, body_canon;
	/* For the AMS, those present. NULL: DKIM's default and the
	 * DKIM-Signature fields. From is always covered; ARC-* and
	 * Authentication-Results are left out in any case (ARC-06). */
	const struct str *headers;
	size_t header_count;
};

/* The three values with leading space and LF folds, to be put on top so that
 * the order is AS, AMS, AAR. RES_INVALID when the chain must not be extended
 * (newest cv=fail, instance 51, temporary) or there is no From;
 * RES_UNSUPPORTED when the key is not RSA (ARC-08). */
HN_CHECK enum res arc_seal_fields(struct arena *a, const struct header *h,
    const struct arc_result *chain, const struct arc_seal_options *o,
    const struct bodyhash_set *hashes, size_t body_index,
    struct signer *signer, const struct signing_key *key,
    struct str *out_aar, struct str *out_ams, struct str *out_as);

#endif
