/* What DKIM-Signature, ARC-Message-Signature and ARC-Seal have in common: the
 * tag list, the header hash, the key, the arithmetic. DKIM and ARC put their
 * own rules and words around it.
 *
 * A signature is parsed once into a `struct sig`. Its result is AUTH_NONE
 * while undecided; sig_decide is the one place that sets it, and the first
 * decision stays (RFC 8601 words and reasons of standards.md §2.9). */
#ifndef AUTH_SIGCORE_H
#define AUTH_SIGCORE_H

#include <stdbool.h>
#include <stdint.h>

#include "auth/bodyhash.h"
#include "auth/key_record.h"
#include "auth/result.h"
#include "base/arena.h"
#include "base/buf.h"
#include "dns/session.h"
#include "keys/digest.h"
#include "mail/canon.h"
#include "mail/header.h"

#define SIG_MAX_NAMES       200  /* in h=: no honest sender comes near it */
#define SIG_MAX_KEY_RECORDS 4    /* KEY-02 */
#define SIG_MAX_SIGNATURE   1024 /* bytes: RSA of PUBKEY_MAX_RSA_BITS */
#define SIG_MAX_TRIES       192  /* header variants hashed per message to find
                                    out why one broke (auth/diagnose.h) */
#define SIG_MAX_RETRIED     262144 /* body octets hashed again for that */
#define SIG_TIME_NEVER      INT64_MAX

enum sig_kind { SIG_DKIM, SIG_AMS, SIG_SEAL };
enum sig_cv { SIG_CV_NONE, SIG_CV_FAIL, SIG_CV_PASS };

struct sig {
	enum sig_kind kind;
	const struct field *field;
	enum auth_result result; /* AUTH_NONE: undecided */
	const char *reason;      /* static text */
	const char *hint;        /* static text about the key record, or NULL */
	struct str a, d, s, i, b, h; /* see struct dkim_result; DKIM's i= */
	struct str i_domain;     /* of i=, normal form; d when there is no i= */
	struct str key_name;     /* s._domainkey.d */
	enum key_type type;
	enum canon header_canon, body_canon;
	size_t name_count;       /* of h= */
	const struct str *names;
	uint8_t body_hash[DIGEST_LEN];
	struct str signature;    /* decoded b= */
	size_t b_from, b_to;     /* of the b= value in field->value */
	bool has_length;
	uint64_t length;         /* l=, or BODYHASH_WHOLE */
	int64_t signed_at, expires_at; /* t=, x=; -1 when absent */
	unsigned instance;       /* ARC: i= */
	enum sig_cv cv;          /* ARC-Seal */
	size_t body_index;       /* in the bodyhash set, once wanted */
	/* Of the key that decided, or of the first usable one. */
	struct pubkey *key;
	unsigned key_bits;
	bool testing;
};

/* What judging needs, one per message and kind of work. */
struct sigcore {
	struct arena *arena;
	const struct header *header;
	struct dns_session *dns;
	struct bodyhash_set *hashes;
	struct key_cache *keys;
	unsigned min_rsa_bits;
	struct buf scratch; /* canonical header octets, reused */
	struct sink *out;   /* appends to scratch */
	/* What a diagnosis may still spend on this message, and the last body
	 * it was asked about: signatures mostly share one. */
	unsigned tries;
	size_t retried;
	bool body_told;
	size_t told_index;
	uint8_t told_hash[DIGEST_LEN];
	struct str told_cause;
};

HN_CHECK enum res sigcore_init(struct sigcore *c, struct arena *a,
    const struct header *h, struct dns_session *dns,
    struct bodyhash_set *hashes, struct key_cache *keys,
    unsigned min_rsa_bits);

#define SIG_EXPIRED "signature expired"
#define SIG_FUTURE  "signature from the future"

void sig_decide(struct sig *s, enum auth_result result, const char *reason);
static inline bool
sig_undecided(const struct sig *s)
{
	return s->result == AUTH_NONE;
}

/* Parse a field's value (auth/sigparse.c): every check that needs neither
 * clock nor DNS nor body. A signature that is no good is decided, not an
 * error; RES_NOMEM only. */
HN_CHECK enum res sig_parse(
    struct arena *a, enum sig_kind kind, const struct field *f, struct sig *out);

/* Policy (DKIM-V-06, V-07) when x= is past or t= is yet to come by more than
 * `skew_s`. Not judged when `now_s` < 0. */
void sig_check_age(struct sig *s, int64_t now_s, int64_t skew_s);

/* The instance of an ARC field: [CFWS] "i" [CFWS] "=" [CFWS] 1*2DIGIT [CFWS]
 * ";" at its start (RFC 8617 §4.2.1). *out_rest is the offset behind the ";".
 * RES_SYNTAX when the field does not begin like that, RES_INVALID when it does
 * but the number is not 1..50 in plain digits. */
HN_CHECK enum res sig_instance(
    struct str value, unsigned *out_instance, size_t *out_rest);

/* Ask for the key early. */
void sig_prefetch(struct sigcore *c, const struct sig *s);

/* The fields that h= takes from the header, in order: bottom-up per name, the
 * signature itself never (HASH-02). *out_fields has NULL where a name has no
 * (further) field. */
HN_CHECK enum res sig_fields(const struct sigcore *c, const struct sig *s,
    const struct field ***out_fields);

/* Digest of the canonical header fields and the signature field. */
HN_CHECK enum res sig_header_digest(
    struct sigcore *c, const struct sig *s, uint8_t out[DIGEST_LEN]);

/* The body has bh= as its hash, and l= octets (always, for a seal). After the
 * body hash sink was finished. */
bool sig_body_fits(const struct sigcore *c, const struct sig *s);

/* Look the key up, test body hash (unless a seal) and signature over `digest`.
 * Decides: AUTH_PASS or what is wrong. RES_NOMEM only. */
HN_CHECK enum res sig_judge(
    struct sigcore *c, struct sig *s, const uint8_t digest[DIGEST_LEN]);

#endif
