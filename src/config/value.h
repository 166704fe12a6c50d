/* Values of options: text to typed data at the row's offset, and back. Inside
 * this folder only. */
#ifndef CONFIG_VALUE_H
#define CONFIG_VALUE_H

#include "config/options.h"

/* More items than any list needs; a longer one is a mistake. */
#define VALUE_MAX_ITEMS 100000

/* Parse `text` (trimmed) into `base` + o->offset. What is kept is copied to
 * the arena. On RES_SYNTAX and RES_LIMIT `why` says what is wrong with it,
 * without place and name. */
HN_CHECK enum res value_parse(const struct option *o, struct arena *a,
    struct str text, void *base, struct err *why);

/* Is it given (or not empty), so that a section's dump shows it? */
bool value_is_set(const struct option *o, const void *base);
/* Append as it would be written. */
void value_format(const struct option *o, const void *base, struct buf *out);

/* Split at blanks and commas into a list in the arena. RES_LIMIT over
 * VALUE_MAX_ITEMS. */
HN_CHECK enum res value_split(
    struct arena *a, struct str text, struct strlist *out);

/* A domain name as a configuration writes it: A-labels only. */
bool value_is_domain(struct str d);
/* "user@domain" with a sensible local part. */
bool value_is_address(struct str s);

#endif
