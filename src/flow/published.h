/* Whether the public half of a signing key stands in the DNS (design §5, §6).
 * Remembers keys that were seen once, in memory and as small files, so that a
 * DNS outage does not stop outbound mail. Thread-safe; one per process. */
#ifndef FLOW_PUBLISHED_H
#define FLOW_PUBLISHED_H

#include "base/arena.h"
#include "dns/session.h"
#include "keys/signer.h"

struct published;

enum published_state {
	PUBLISHED_YES,       /* the record is there and fits */
	PUBLISHED_BEFORE,    /* cannot be looked up now, but fitted once */
	PUBLISHED_UNKNOWN,   /* cannot be looked up now and was never seen */
	PUBLISHED_ABSENT,    /* definitely no record */
	PUBLISHED_DIFFERENT, /* another key, revoked, or no key record */
};
const char *published_state_text(enum published_state s);

/* `dir` keeps what was seen; NULL: memory only. It is made when missing. */
struct published *published_new(const char *dir);
void published_free(struct published **p);

/* The name a key's record stands at, in `a`; ptr NULL without memory. */
struct str published_name(struct arena *a, const struct signing_key *key);

/* What the DNS says of a key, apart from what is remembered. */
struct published_record {
	enum published_state state; /* never PUBLISHED_BEFORE */
	const char *why;  /* static text when DIFFERENT or UNKNOWN; or NULL */
	bool testing;     /* t=y: receivers may pass over the signature */
	uint32_t ttl_s;   /* of the answer */
	size_t count;     /* records at the name: more than one is a mistake */
};
void published_ask(struct arena *a, struct dns_session *dns,
    const struct signing_key *key, struct published_record *out);

/* Waits for the answer within the session's limits. *out_changed tells that
 * the state is another than at the last look: worth an alarm. */
enum published_state published_look(struct published *p, struct arena *a,
    struct dns_session *dns, const struct signing_key *key, bool *out_changed);

#endif
