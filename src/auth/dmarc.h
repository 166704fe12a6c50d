/* DMARC (RFC 9989): discovery by tree walk or public suffix list, record
 * parsing and alignment are ours; libopendmarc gets checked input and must
 * come to the same verdict. */
#ifndef AUTH_DMARC_H
#define AUTH_DMARC_H

#include <stdbool.h>

#include "auth/result.h"
#include "base/arena.h"
#include "dns/session.h"

enum dmarc_policy { DMARC_NONE, DMARC_QUARANTINE, DMARC_REJECT };
enum org_method { ORG_TREEWALK, ORG_PSL };

const char *dmarc_policy_word(enum dmarc_policy p);

struct dmarc_record {
	enum dmarc_policy p, sp, np;
	bool has_p, has_sp, has_np; /* given and valid */
	bool bad_policy;  /* p, sp or np given but invalid (DMARC-D-07) */
	                     /* absent: sp falls to p, np to sp, p to none */
	bool strict_dkim, strict_spf;
	char psd;         /* 'y', 'n' or 'u' */
	bool testing;     /* t=y */
	struct str fo;
	size_t rua_count, ruf_count;
	struct str *rua, *ruf; /* valid URIs without the size suffix */
	struct str text;
};
#define DMARC_MAX_URIS 64 /* of one tag; the rest is ignored */

/* RES_SYNTAX: not a DMARC record at all (DMARC-R-05, R-06). */
HN_CHECK enum res dmarc_record_parse(
    struct arena *a, struct str text, struct dmarc_record *out);

/* A domain that authenticated: from SPF (MAIL FROM identity) or a passing
 * signature. */
struct dmarc_identifier {
	struct str domain; /* normal form */
	enum auth_result result;
};

struct dmarc_input {
	const struct str *from_domains; /* distinct, normal form; >= 1 */
	size_t from_count;
	struct dmarc_identifier spf;    /* domain empty: SPF was not checked */
	const struct dmarc_identifier *dkim;
	size_t dkim_count;
	enum org_method method;
};

#define DMARC_MAX_FROM_DOMAINS 8

struct dmarc_result {
	enum auth_result result; /* none, pass, fail, temperror, permerror */
	const char *reason;      /* static text, may be NULL */
	struct str from;         /* the author domain judged (the failing one of
	                            several) */
	bool has_record;         /* one was found, used or not (DMARC-D-07) */
	struct dmarc_record record; /* with the policies that were acted on */
	struct str record_domain; /* where the record stands */
	struct str org_domain;    /* of `from`; empty: need not be known */
	enum dmarc_policy policy; /* after sp, np, t: what the owner asks for */
	const char *policy_tag;   /* "p", "sp" or "np": which one it was */
	bool dkim_aligned, spf_aligned;
	struct str aligned_domain; /* the identifier that aligned */
	/* What was found for each author domain, this one's among them; NULL
	 * when there is only one. */
	const struct dmarc_result *each;
	size_t each_count;
};

/* Evaluate. Any decisive DNS failure gives temperror, never fail (DMARC-D-08).
 * With several author domains: pass only if each passes, else the strictest
 * failing policy; over DMARC_MAX_FROM_DOMAINS permerror. RES_NOMEM only. */
HN_CHECK enum res dmarc_evaluate(struct arena *a, struct dns_session *dns,
    const struct dmarc_input *in, struct dmarc_result *out);

/* Ask for the author domain's record early. */
void dmarc_prefetch(struct arena *a, struct dns_session *dns, struct str domain);

/* May reports about `domain` (where the record stands) go to an address at
 * `receiver`, of another organizational domain (RFC 9990 §4, RUA-05)?
 * AUTH_PASS, AUTH_FAIL or AUTH_TEMPERROR; with AUTH_PASS the record that says
 * so is in *out_record (may be NULL): its rua replaces the address. */
HN_CHECK enum res dmarc_accepts_reports(struct arena *a,
    struct dns_session *dns, struct str domain, struct str receiver,
    enum auth_result *out, struct dmarc_record *out_record);

/* The organizational domain of a name in normal form. RES_AGAIN: DNS failure. */
HN_CHECK enum res dmarc_org_domain(struct arena *a, struct dns_session *dns,
    enum org_method method, struct str domain, struct str *out);

/* What libopendmarc makes of a pass or fail: it gets the record that was acted
 * on and the identifiers found aligned. dmarc_evaluate asks it about every
 * pass and fail; should it differ, the result is a temperror ("engines
 * disagree"). *out_policy is what to enforce: DMARC_NONE for a pass.
 * RES_INVALID when `ours` is no pass or fail, or the library refuses it. */
HN_CHECK enum res dmarc_library_verdict(const struct dmarc_result *ours,
    bool *out_pass, enum dmarc_policy *out_policy);

#endif
