/* SPF's macro strings (RFC 7208 §7): checked once when a record is read,
 * expanded when a term is evaluated or a fail explained. */
#ifndef AUTH_SPF_MACRO_H
#define AUTH_SPF_MACRO_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/ip.h"
#include "base/str.h"

/* What an expansion may grow to: a term's name is cut to 253 bytes later
 * (§7.3), so it may be long before; an explanation must fit in a reply. */
#define SPF_MAX_EXPANSION   4096
#define SPF_MAX_EXPLANATION 1024

enum spf_macro_use {
	SPF_IN_TERM,        /* c, r and t are not allowed */
	SPF_IN_MODIFIER,    /* of an unknown name: syntax only */
	SPF_IN_EXPLANATION, /* blanks are allowed */
};

/* *macro-expand / macro-literal, to the end. */
bool spf_macro_valid(struct str s, enum spf_macro_use use);

/* domain-spec: a macro-string that ends in a macro or in "." toplabel with
 * perhaps a dot. */
bool spf_domain_spec_valid(struct str s);

struct spf_macro_env {
	struct str local;         /* %{l}, never empty: postmaster (SPF-04) */
	struct str sender_domain; /* %{o} */
	struct str domain;        /* %{d} */
	struct str helo;          /* %{h} */
	struct str receiver;      /* %{r}, "unknown" when empty */
	struct ip client;         /* %{i}, %{c}, %{v} */
	int64_t now_s;            /* %{t} */
	/* %{p}; called when it is needed. */
	struct str (*validated)(void *arg);
	void *arg;
	bool local_used; /* set when %{l} or %{s} was expanded */
};

/* Expand a valid macro-string. RES_LIMIT past `max_bytes`. */
HN_CHECK enum res spf_macro_expand(struct arena *a, struct str s,
    struct spf_macro_env *env, size_t max_bytes, struct str *out);

#endif
