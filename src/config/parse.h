/* The reader of hanaper.conf: lines in, (name, value, line) events out. It
 * knows sections and continuation, not what any name means.
 *
 *   name = value to the end of the line
 *      more of the value          a line that begins with a blank continues
 *   # a comment                   also between the parts of a value
 *   [section name]                options below it belong to the section
 *
 * Parts of a continued value are joined by one blank. There is no quoting and
 * no comment behind a value: `#` is an ordinary byte there. A CR before the
 * line end and a byte order mark at the start are passed over.
 *
 * Input need not be NUL-terminated; control bytes other than tabs are errors,
 * so that nothing invisible ends up in a path or a reply. */
#ifndef CONFIG_PARSE_H
#define CONFIG_PARSE_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/res.h"
#include "base/str.h"

/* Room for thousands of domains in one list; a value beyond is a mistake. */
#define PARSE_MAX_VALUE ((size_t)1 << 20)
/* More lines than a 16 MB file of sensible options has. */
#define PARSE_MAX_LINES 1000000

struct parse_event {
	bool section;      /* `[name value]`, else `name = value` */
	struct str name;   /* never empty */
	struct str value;  /* trimmed; empty when nothing follows the `=` */
	unsigned line;     /* of the name, from 1 */
};

/* Names and values live in the arena or the text. Anything but RES_OK ends
 * the reading; the callback has then set the error itself. */
typedef enum res parse_fn(void *arg, const struct parse_event *event);

/* RES_SYNTAX, RES_LIMIT with `err` as "LABEL:LINE: …"; RES_NOMEM. */
HN_CHECK enum res parse_text(struct arena *a, struct str text,
    const char *label, struct err *err, parse_fn *fn, void *arg);

#endif
