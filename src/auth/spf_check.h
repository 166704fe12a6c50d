/* One check_host() (RFC 7208 §4) as far as it does not matter who evaluates:
 * the records that were read, what a term asks the DNS, the limits of §4.6.4
 * and who decided. spf_lib.c runs libspf2 on it; another evaluator would need
 * nothing else. */
#ifndef AUTH_SPF_CHECK_H
#define AUTH_SPF_CHECK_H

#include "auth/result.h"
#include "auth/spf.h"
#include "auth/spf_macro.h"
#include "auth/spf_record.h"
#include "dns/session.h"

#define SPF_MAX_LOOKUP_TERMS                                                   \
	10 /* §4.6.4; include, a, mx, ptr, exists, redirect */
#define SPF_MAX_MX    10
#define SPF_MAX_PTR   10
#define SPF_MAX_NODES (SPF_MAX_LOOKUP_TERMS + 1)

/* What became of a term that asked the DNS. */
struct spf_visit {
	bool asked;        /* counted; `target` is set */
	bool matched;      /* known for a, mx, ptr, exists */
	struct str target; /* what its domain-spec stands for; empty: a name
	                      that cannot be asked for */
	/* mx: its first hosts by preference; one too many is kept to know */
	const struct dns_record *mx[SPF_MAX_MX + 1];
	size_t mx_count;
	struct spf_node *node; /* include, redirect: the record found there */
};

/* A record in use. */
struct spf_node {
	size_t index;      /* 0: the first domain's */
	struct str domain; /* %{d} */
	bool in_include;
	struct spf_record record;
	struct spf_visit *visits; /* one for each term */
};

struct spf_check {
	struct arena *arena;
	struct dns_session *dns;
	struct spf_macro_env env; /* .domain is set for each expansion */
	unsigned void_limit;
	unsigned terms, voids;
	bool ptr_void; /* the client's reverse name was counted as void */
	struct spf_node nodes[SPF_MAX_NODES];
	size_t node_count;
	struct spf_node *final; /* the first record or where redirect led:
	                           its exp= explains (SPF-19) */
	bool has_validated;
	struct str validated_domain, validated; /* %{p} for that %{d} */
	/* The first decision against going on; see spf_stop. */
	bool stopped, no_memory;
	enum auth_result verdict;
	const char *reason;
};

/* End the check with `verdict`; the first call decides. */
void spf_stop(
    struct spf_check *c, enum auth_result verdict, const char *reason);

/* The record of the first domain: NULL when stopped, AUTH_NONE included. */
struct spf_node *spf_node_first(struct spf_check *c, struct str domain);

/* The functions below belong to a term of a node, count it against the limits
 * on its first use, and may stop the check: look at c->stopped. */

/* The record that include or redirect leads to, NULL when stopped. An include
 * whose name cannot match (SPF-06) gives NULL without stopping. */
struct spf_node *spf_visit_record(
    struct spf_check *c, struct spf_node *n, size_t term);
/* a: addresses of the client's family; NULL: none. */
const struct dns_answer *spf_visit_addresses(
    struct spf_check *c, struct spf_node *n, size_t term);
/* mx: how many hosts there are to ask for, and the addresses of one of them;
 * asking for an eleventh stops the check (§4.6.4). */
size_t spf_visit_mx(struct spf_check *c, struct spf_node *n, size_t term);
const struct dns_answer *spf_visit_mx_addresses(
    struct spf_check *c, struct spf_node *n, size_t term, size_t host);
/* exists and ptr: whether they match. */
bool spf_visit_matches(struct spf_check *c, struct spf_node *n, size_t term);

/* Whether `ip` matches the client under a term's prefix length. */
bool spf_address_matches(
    const struct spf_check *c, const struct spf_term *t, const struct ip *ip);

/* The term that decided in `n`, as its visits tell; NULL: none did. */
const struct spf_term *spf_deciding_term(
    const struct spf_check *c, const struct spf_node *n);

/* The text of exp= of c->final, empty when there is none to give (SPF-34). */
struct str spf_explain(struct spf_check *c);

/* Run libspf2 on the node from spf_node_first. c->stopped overrides what it
 * says. RES_NOMEM only. */
HN_CHECK enum res spf_lib_run(
    struct spf_check *c, struct spf_node *first, enum auth_result *out);

#endif
