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

/* The position of `word` in "one two three", or -1. */
int value_word(const char *words, struct str word);

/* Cut the next item of a list off; false at the end. */
bool value_next(struct str *rest, struct str *out);

/* Split at blanks and commas into a list in the arena. RES_LIMIT over
 * VALUE_MAX_ITEMS. */
HN_CHECK enum res value_split(
    struct arena *a, struct str text, struct strlist *out);

/* The list types, the networks, and where to listen, as value_parse. */
HN_CHECK enum res value_parse_list(const struct option *o, struct arena *a,
    struct str text, struct strlist *out, struct err *why);
HN_CHECK enum res value_parse_nets(struct arena *a, struct str text,
    struct netlist *out, struct err *why);
HN_CHECK enum res value_parse_listen(struct arena *a, struct str text,
    struct listen_address *out, struct err *why);
/* PORT@HOST; an IPv6 address may stand in brackets. A view into `s`. */
bool value_parse_port_host(
    struct str s, uint16_t *out_port, struct str *out_host);

/* A domain name as a configuration writes it: A-labels only. */
bool value_is_domain(struct str d);
/* "user@domain" with a sensible local part. */
bool value_is_address(struct str s);

#endif
