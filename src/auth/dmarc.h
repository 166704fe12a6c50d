/* DMARC (RFC 9989): discovery by tree walk or public suffix list, record
 * parsing and alignment are ours; libopendmarc gets checked input and must
 * come to the same verdict. */
#ifndef AUTH_DMARC_H
#define AUTH_DMARC_H

#include <stdbool.h>

#include "auth/result.h"
#include "base/arena.h"
#include "base/ip.h"
#include "dns/session.h"

enum dmarc_policy { DMARC_NONE, DMARC_QUARANTINE, DMARC_REJECT };
enum org_method { ORG_TREEWALK, ORG_PSL };

const char *dmarc_policy_word(enum dmarc_policy p);

struct dmarc_record {
	enum dmarc_policy p, sp, np;
	bool has_p, has_sp, has_np; /* given and valid */
	bool bad_policy;  /* p, sp or np given but invalid (DMARC-D-07) */
	bool strict_dkim, strict_spf;
	char psd;         /* 'y', 'n' or 'u' */
	bool testing;     /* t=y */
	struct str fo;
	size_t rua_count, ruf_count;
	struct str *rua, *ruf; /* valid URIs without the size suffix */
	struct str text;
};

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
	bool has_record;
	struct dmarc_record record;
	struct str record_domain; /* where the record stands */
	struct str org_domain;    /* of `from` */
	enum dmarc_policy policy; /* after sp, np, t: what the owner asks for */
	const char *policy_tag;   /* "p", "sp" or "np": which one it was */
	bool dkim_aligned, spf_aligned;
	struct str aligned_domain; /* the identifier that aligned */
};

/* Evaluate. Any decisive DNS failure gives temperror, never fail (DMARC-D-08).
 * With several author domains: pass only if each passes, else the strictest
 * failing policy; over DMARC_MAX_FROM_DOMAINS permerror. RES_NOMEM only. */
HN_CHECK enum res dmarc_evaluate(struct arena *a, struct dns_session *dns,
    const struct dmarc_input *in, struct dmarc_result *out);

/* The organizational domain of a name in normal form. RES_AGAIN: DNS failure. */
HN_CHECK enum res dmarc_org_domain(struct arena *a, struct dns_session *dns,
    enum org_method method, struct str domain, struct str *out);

/* The same verdict by libopendmarc, for the assertion that both agree:
 * true when it says pass. */
HN_CHECK enum res dmarc_library_verdict(const struct dmarc_result *ours,
    const struct ip *client, bool *out_pass, enum dmarc_policy *out_policy);

#endif
