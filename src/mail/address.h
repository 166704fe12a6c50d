/* Addresses: From fields by RFC 5322 §3.4 with RFC 6854 groups, obsolete forms
 * (§4.4) and UTF-8 (RFC 6532), and envelope paths.
 *
 * What the grammar does not give is refused, however easily a person would
 * read it: two programs that guess differently are how From is forged. Two
 * liberties that leave no choice of meaning: any 8-bit bytes in display names
 * and comments (a local part must be UTF-8), one dot at a domain's end. */
#ifndef MAIL_ADDRESS_H
#define MAIL_ADDRESS_H

#include "base/arena.h"
#include "base/res.h"
#include "base/str.h"
#include "mail/header.h"

#define ADDRESS_MAX      1000 /* in one field; more is RES_LIMIT */
#define FROM_MAX_FIELDS  16   /* further From fields are only counted */
#define FROM_MAX_DOMAINS 64   /* further distinct domains are left out */

struct address {
	struct str display; /* phrase or comment, may be empty; not decoded */
	struct str local;   /* unquoted */
	struct str domain;  /* as written, without comments; "[192.0.2.1]" */
};

struct address_list {
	size_t count;
	struct address *items;
	bool groups; /* a group was seen, perhaps empty */
};

/* A whole field value (folds allowed). RES_SYNTAX when it does not parse;
 * nothing is guessed (FROM-02, P-06). */
HN_CHECK enum res address_parse_list(
    struct arena *a, struct str value, struct address_list *out);

/* What DMARC and the choice of a signing domain need from the From fields
 * (FROM-01..07). Domains are distinct and normalized. */
enum from_state {
	FROM_OK,      /* one field, one domain */
	FROM_MISSING, /* no From field */
	FROM_MANY_FIELDS,
	FROM_MANY_DOMAINS,
	FROM_NO_DOMAIN, /* parses, but names no domain */
	FROM_UNPARSABLE,
};
struct from_domains {
	enum from_state state;
	size_t count; /* distinct domains of what parses, over all fields */
	struct str *domains;
};
HN_CHECK enum res address_from_domains(
    struct arena *a, const struct header *h, struct from_domains *out);
/* The same for one field value: tests and conformance. */
HN_CHECK enum res address_from_value(
    struct arena *a, struct str value, struct from_domains *out);
const char *from_state_text(enum from_state s);

/* An envelope path as a milter gets it: "<user@dom>", "user@dom", "<>", "",
 * "<@a,@b:user@dom>" (ENV-01). Views into `path`: the address without brackets
 * and route, its local part as written (quotes stay), its domain as written,
 * empty when there is none. */
void address_envelope(struct str path, struct str *out_address,
    struct str *out_local, struct str *out_domain);

#endif
