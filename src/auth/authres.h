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
 * below 78 columns and gives the value with a leading space. Values are
 * quoted unless tokens; control bytes never get in; each is cut at 256 bytes.
 * The field's order is the caller's: auth iprev spf dkim… arc dmarc. */
struct authres;

struct authres *authres_begin(struct arena *a, struct str authserv_id);
void authres_result(
    struct authres *w, const char *method, enum auth_result result);
/* Short ASCII without ";" "=" "(" ")" "\"; other text is dropped. */
void authres_comment(struct authres *w, const char *comment);
void authres_reason(struct authres *w, const char *reason);
/* value or quoted-string */
void authres_value(struct authres *w, const char *ptype, const char *property,
    struct str value);
/* A domain or [local]@domain: bare when a dot-atom, else the domain alone. */
void authres_address(struct authres *w, const char *ptype,
    const char *property, struct str address);
/* " mx.example.org; spf=pass …", or " mx.example.org; none". ptr NULL without
 * memory. */
struct str authres_finish(struct authres *w);
/* After finish: the part behind "id; ", unfolded, without comments: for the
 * AAR, the archive and the log. */
struct str authres_payload(const struct authres *w);

/* --- reading ------------------------------------------------------------- */
#define AUTHRES_MAX_RESULTS    128
#define AUTHRES_MAX_PROPERTIES 64

struct authres_property {
	struct str ptype, property, value; /* value unquoted */
};
struct authres_item {
	struct str method, result, reason; /* method, result lower case */
	unsigned version;                  /* method version, 1 when absent */
	struct str comment;                /* first comment behind the result */
	size_t property_count;
	struct authres_property *properties;
};
struct authres_field {
	struct str id;      /* unquoted; empty in Microsoft's form */
	unsigned version;   /* 1 when absent */
	bool none;          /* "; none" */
	size_t count;
	struct authres_item *items;
};

enum authres_mode {
	AUTHRES_STRICT,  /* RFC 8601 §2.2 to the letter */
	AUTHRES_LENIENT, /* what foreign systems write, too: no id, odd values */
};

HN_CHECK enum res authres_parse(struct arena *a, struct str value,
    enum authres_mode mode, struct authres_field *out);

/* --- removing forged fields ----------------------------------------------
 * Whether a field's value names one of `ids`, or looks as if: other case,
 * quoting, comments, a version, IDNA forms, a trailing dot, a name above or
 * below inside our organizational domain `org` (may be empty). A field that
 * does not parse or has an unknown version counts (AR-R-02, AR-R-03) only when
 * one of the ids could be hidden in it. */
bool authres_is_ours(struct arena *a, struct str value, const struct str *ids,
    size_t id_count, struct str org);

#endif
