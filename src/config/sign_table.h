/* The sign_table file: which signatures a message gets where a key folder
 * named after the From domain is not enough.
 *
 *   PATTERN d=DOMAIN [s=SELECTOR] [i=IDENTITY] [key=PATH]
 *
 * PATTERN is user@dom, dom, .dom (any name below) or *. The most specific
 * pattern that matches wins, wherever it stands; several lines of one pattern
 * mean several signatures, in their order. `#` begins a comment line. Every
 * unknown or missing part is an error naming FILE:LINE. */
#ifndef CONFIG_SIGN_TABLE_H
#define CONFIG_SIGN_TABLE_H

#include "config/config.h"

#define SIGN_TABLE_MAX_RULES       100000
#define SIGN_TABLE_MAX_PER_PATTERN 16 /* signatures of one message */

/* Rules in the arena, most specific first, lines of one pattern in file
 * order. RES_SYNTAX, RES_LIMIT, RES_NOMEM. */
HN_CHECK enum res sign_table_parse(struct arena *a, struct str text,
    const char *label, struct err *err, const struct sign_rule **out_rules,
    size_t *out_count);

#endif
