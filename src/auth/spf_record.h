/* SPF records by the full grammar of RFC 7208 §12: everything is checked
 * before anything is evaluated (SPF-12), and what evaluates gets typed terms,
 * never text. */
#ifndef AUTH_SPF_RECORD_H
#define AUTH_SPF_RECORD_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/ip.h"
#include "base/str.h"

#define SPF_MAX_RECORD 4096 /* bytes; real ones stay below 2,000 */
#define SPF_MAX_TERMS  128

enum spf_kind {
	SPF_ALL,
	SPF_INCLUDE,
	SPF_A,
	SPF_MX,
	SPF_PTR,
	SPF_IP4,
	SPF_IP6,
	SPF_EXISTS,
	SPF_REDIRECT,
	SPF_EXP,
	SPF_UNKNOWN_MODIFIER,
};

struct spf_term {
	enum spf_kind kind;
	char qualifier;    /* '+', '-', '?' or '~' */
	struct str text;   /* as written */
	struct str domain; /* the domain-spec, empty: the current domain */
	unsigned prefix4, prefix6; /* a, mx: 32 and 128 when not given */
	struct ip_net net; /* ip4, ip6; an ip6 network is IP_V6 whatever it
	                       holds */
};

struct spf_record {
	struct spf_term *terms; /* mechanisms in order, modifiers too */
	size_t count;
	const struct spf_term *all, *redirect, *exp; /* NULL: none. redirect
	                                                is NULL with an all */
};

/* "v=spf1", then a blank or the end, in any case (SPF-10). */
bool spf_record_matches(struct str text);

/* A text that matches. RES_SYNTAX or RES_LIMIT with *out_reason, a static
 * text; RES_NOMEM. */
HN_CHECK enum res spf_record_parse(struct arena *a, struct str text,
    struct spf_record *out, const char **out_reason);

#endif
