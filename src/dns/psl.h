/* The public suffix list (libpsl, Debian's data). Names in normal form. */
#ifndef DNS_PSL_H
#define DNS_PSL_H

#include <stdbool.h>

#include "base/str.h"

/* A listed public suffix such as "com" or "co.uk" (an unlisted single label
 * counts too). False when no list is installed. */
bool psl_is_public_suffix_name(struct str domain);

/* The same, but only where a registry registers names: not the list's private
 * part, where organizations such as homeoffice.gov.uk stand that send and sign
 * mail of their own. */
bool psl_is_registry_suffix(struct str domain);

/* Public suffix plus one label, a view into `domain`; ptr NULL when the name
 * is a suffix itself. */
struct str psl_organizational(struct str domain);

#endif
