/* DKIM verification (RFC 6376 §6, standards.md §2), streaming: begin at end
 * of header, push the body through the shared bodyhash set, finish at end of
 * message. A signature that does not verify is a result, not an error. */
#ifndef AUTH_DKIM_VERIFY_H
#define AUTH_DKIM_VERIFY_H

#include <stdbool.h>
#include <stdint.h>

#include "auth/bodyhash.h"
#include "auth/key_record.h"
#include "auth/result.h"
#include "base/arena.h"
#include "dns/session.h"
#include "mail/header.h"

/* What becomes of l= (DKIM-V-11): `policy` when octets remain unsigned,
 * accepted, or `policy` whenever there is an l=. */
enum body_length { BODY_LENGTH_POLICY, BODY_LENGTH_ACCEPT, BODY_LENGTH_REFUSE };

struct dkim_verify_options {
	unsigned max_signatures; /* 1..32; the rest is reported as policy */
	unsigned min_rsa_bits;   /* >= 1024 */
	enum body_length body_length;
	int64_t now_s;           /* time of arrival; < 0: age is not judged */
	int64_t clock_skew_s;
	/* Names that h= must list when the message has such a field, besides
	 * From; may be NULL. Else the signature is `policy`. */
	const struct str *required_headers;
	size_t required_count;
	struct key_cache *keys; /* parsed key records; may be NULL */
};

/* One signature's outcome. Views live in the arena. What could not be parsed
 * safely is empty (RES-02). */
struct dkim_result {
	enum auth_result result;
	const char *reason;   /* static text of standards.md §2.9, NULL for pass */
	struct str diagnosis; /* "why did it break", for log and CLI; may be empty */
	struct str d, s, i, a; /* d, i domains normalized; a lower case */
	struct str b;          /* base64 of b= without blanks */
	unsigned key_bits;     /* 0 when no key was read */
	bool testing;          /* the key says t=y */
	bool aged;             /* an x= was there */
	int64_t signed_at, expires_at; /* t=, x=; -1 when absent */
	const struct field *field;
	struct str h;          /* the h= value as written, without blanks */
};

/* Signatures past `max_signatures` that hold together by themselves are
 * `policy`; past this many fields none is looked at or reported. */
#define DKIM_MAX_FIELDS 64

struct dkim_verify;

/* Parse all DKIM-Signature fields, ask for their keys (prefetch), want their
 * body hashes. Options are copied. */
HN_CHECK enum res dkim_verify_begin(struct arena *a, const struct header *h,
    const struct dkim_verify_options *o, struct dns_session *dns,
    struct bodyhash_set *hashes, struct dkim_verify **out);

/* The body hash sink is finished: judge. *out_results in message order, top
 * to bottom; 0 results = no signature. RES_NOMEM only. */
HN_CHECK enum res dkim_verify_finish(struct dkim_verify *v,
    const struct dkim_result **out_results, size_t *out_count);

#endif
