/* Authentication-Results (RFC 8601): the one writer, a reader tolerant of
 * foreign fields, and the test whether a field pretends to be ours. Our own
 * fields are never read for a decision. */
#ifndef AUTH_AUTHRES_H
#define AUTH_AUTHRES_H

#include <stdbool.h>

#include "auth/result.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/str.h"

/* --- writing --------------------------------------------------------------
 * authres_begin, then per method authres_result, optionally authres_comment
 * and authres_reason, then its properties; authres_finish folds with LF + HTAB
 * below 78 columns and gives the value with a leading space. Each method
 * begins a line of its own. The field's order is the caller's: auth iprev spf
 * dkim… arc dmarc.
 *
 * Values come from strangers: control bytes are left out, bytes of 8 bits
 * become "?", each value is cut at AUTHRES_MAX_VALUE bytes and quoted unless
 * it is a token. Methods, ptypes, properties, comments and reasons are
 * constants of ours. */
#define AUTHRES_MAX_VALUE   256
#define AUTHRES_MAX_COMMENT 64
#define AUTHRES_MAX_TEXT    ((size_t)65536) /* of the whole value */

struct authres;

struct authres *authres_begin(struct arena *a, struct str authserv_id);
void authres_result(
    struct authres *w, const char *method, enum auth_result result);
/* Short ASCII without ";" "=" "(" ")" "\"" "\\": anything else is left out
 * as a whole. */
void authres_comment(struct authres *w, const char *comment);
void authres_reason(struct authres *w, const char *reason);
/* value or quoted-string */
void authres_value(struct authres *w, const char *ptype, const char *property,
    struct str value);
/* An address, "@domain" or a domain. Written bare, with its local part when
 * that is a dot-atom, else the domain alone; U-labels become A-labels; what is
 * no domain name is quoted. */
void authres_address(struct authres *w, const char *ptype, const char *property,
    struct str address);
/* " mx.example.org;\n\tspf=pass …", or " mx.example.org; none". ptr NULL
 * without memory or past AUTHRES_MAX_TEXT. */
struct str authres_finish(struct authres *w);
/* After finish: the part behind "id; ", unfolded, without comments: for the
 * AAR, the archive and the log. */
struct str authres_payload(const struct authres *w);

/* --- reading --------------------------------------------------------------
 * Views into the value or copies in the arena. */
#define AUTHRES_MAX_RESULTS    128
#define AUTHRES_MAX_PROPERTIES 64

struct authres_property {
	struct str ptype, property, value; /* value unquoted; ptype empty when
	                                      a lenient field has none */
};
struct authres_item {
	struct str method, result, reason; /* method, result lower case */
	unsigned version;                  /* method version, 1 when absent */
	struct str comment;                /* first comment behind the result */
	size_t property_count;
	struct authres_property *properties;
};
struct authres_field {
	struct str id;    /* unquoted; empty in Microsoft's form */
	unsigned version; /* 1, as others are not read */
	bool none;        /* "; none" */
	size_t count;
	struct authres_item *items;
};

enum authres_mode {
	/* RFC 8601 §2.2 to the letter, and of the methods we know only the
	 * registered results (lower case, but spf: "Pass" is old custom). */
	AUTHRES_STRICT,
	/* What foreign systems write, too: no id, words behind the id, no
	 * ptype, unquoted and empty values, "_" in names, a ";" at the end,
	 * line ends anywhere, any result word. */
	AUTHRES_LENIENT,
};

/* RES_SYNTAX; RES_LIMIT past a maximum; RES_UNSUPPORTED for a version of the
 * field other than 1 (AR-06). An item of an unknown method version is given;
 * the caller passes over it. */
HN_CHECK enum res authres_parse(struct arena *a, struct str value,
    enum authres_mode mode, struct authres_field *out);

/* --- removing forged fields ----------------------------------------------
 * Whether a field's value names one of `ids`, or looks as if: other case,
 * quoting, comments, a version, IDNA forms, a trailing dot, "/" and more
 * behind it, a name above or below inside our organizational domain `org`
 * (may be empty).
 *
 * A field whose id is missing before its first ";" counts, and one of an
 * unknown version (AR-R-02, AR-R-03); one that does not parse counts when one
 * of the ids is hidden in it. Microsoft's form without any id, which it puts
 * into what its customers send, does not count. */
bool authres_is_ours(struct arena *a, struct str value, const struct str *ids,
    size_t id_count, struct str org);

#endif
