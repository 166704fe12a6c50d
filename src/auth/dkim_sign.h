/* DKIM signing (RFC 6376 §5, standards.md §2.7). The field made is tag order
 * v a c d s t x h bh b, folded with LF + HTAB below 78 columns, hashed as it
 * will be on the wire (CRLF). Names in h= are lower case. */
#ifndef AUTH_DKIM_SIGN_H
#define AUTH_DKIM_SIGN_H

#include <stdint.h>

#include "auth/bodyhash.h"
#include "base/arena.h"
#include "keys/signer.h"
#include "mail/canon.h"
#include "mail/header.h"

struct dkim_sign_options {
	enum canon header_canon, body_canon;
	int64_t now_s;        /* t= */
	int64_t lifetime_s;   /* x= now + lifetime; 0: no x= */
	struct str identity;  /* i=, empty: left out */
	const struct str *headers;  /* sign when present; NULL: DKIM_SIGN_HEADERS */
	size_t header_count;
	const struct str *oversign; /* list once more than present; NULL: default */
	size_t oversign_count;
};

/* The defaults (SIGN-02, SIGN-04), lower case, ending in an empty str. */
extern const struct str dkim_sign_default_headers[];
extern const struct str dkim_sign_default_oversign[];

/* Make the value of one DKIM-Signature field: " v=1; …" with a leading space
 * and LF folds. `body_index` is the bodyhash set's index for body_canon.
 * RES_AGAIN/RES_NOTFOUND from the signer; RES_INVALID when there is not exactly
 * one From (SIGN-01, SIGN-10); RES_LIMIT when so many fields would have to be
 * named that no verifier would look at it. */
HN_CHECK enum res dkim_sign_field(struct arena *a, const struct header *h,
    const struct dkim_sign_options *o, const struct bodyhash_set *hashes,
    size_t body_index, struct signer *signer, const struct signing_key *key,
    struct str *out_value);

#endif
