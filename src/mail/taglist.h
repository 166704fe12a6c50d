/* The tag=value lists of DKIM, ARC and DMARC (RFC 6376 §3.2). Views into the
 * text parsed; folds and blanks around names and values are not part of them.
 * At most TAGLIST_MAX tags. */
#ifndef MAIL_TAGLIST_H
#define MAIL_TAGLIST_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/res.h"
#include "base/str.h"

#define TAGLIST_MAX 64

struct tag {
	struct str name;
	struct str value; /* trimmed; may hold folds and blanks inside */
	/* Bounds in the text of all that stands between "=" and ";" or the
	 * end. */
	size_t from, to;
};

struct taglist {
	size_t count;
	struct tag tags[TAGLIST_MAX];
};

/* RES_SYNTAX: not a tag list, or a name twice (TAG-02, TAG-05, TAG-07);
 * RES_LIMIT: more than TAGLIST_MAX tags. `allow_utf8` admits well-formed
 * UTF-8 in values (RFC 8616 §5). On error *out holds the tags read so far. */
HN_CHECK enum res taglist_parse(
    struct str text, bool allow_utf8, struct taglist *out);

/* The value, or a view with ptr NULL when there is no such tag (an empty
 * value has ptr set). Names are case-sensitive. */
struct str taglist_get(const struct taglist *t, const char *name);
const struct tag *taglist_find(const struct taglist *t, const char *name);

/* The value without any FWS (for b=, bh=, p=). */
struct str taglist_strip(struct arena *a, struct str value);

/* dkim-quoted-printable (RFC 6376 §2.11). */
HN_CHECK enum res taglist_unquote(
    struct arena *a, struct str value, struct str *out);

#endif
