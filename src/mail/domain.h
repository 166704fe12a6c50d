/* Domain names as mail uses them: checked, lower case, A-labels, without the
 * trailing dot (DOM-01..04, RFC 8616, RFC 5890). */
#ifndef MAIL_DOMAIN_H
#define MAIL_DOMAIN_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/res.h"
#include "base/str.h"

#define DOMAIN_MAX       253
#define DOMAIN_MAX_LABEL 63

/* Letters, digits, hyphens and underscores in labels of 1..63, at most 253
 * bytes in all. False with a trailing dot: domain_normalize takes it off. */
bool domain_valid(struct str d);

/* To the one form that is compared and looked up. U-labels become A-labels
 * (IDNA2008 by libidn2). RES_SYNTAX when it is no domain name. */
HN_CHECK enum res domain_normalize(
    struct arena *a, struct str d, struct str *out);

/* Both in normal form: equal, or `d` ends in "." + parent. */
bool domain_equal(struct str a, struct str b);
bool domain_is_below(struct str d, struct str parent);
bool domain_equal_or_below(struct str d, struct str parent);

unsigned domain_labels(struct str d);
/* The last `n` labels (all when there are fewer). */
struct str domain_last_labels(struct str d, unsigned n);

#endif
