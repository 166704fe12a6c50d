/* Named character references of HTML. */
#ifndef MAIL_ENTITY_H
#define MAIL_ENTITY_H

#include <stdint.h>

#include "base/str.h"

#define ENTITY_MAX_NAME 32

/* The code point of "amp", "eacute", …; 0 when not in the table. Case counts.
 */
uint32_t entity_find(struct str name);

/* For tests: the table is sorted. */
size_t entity_count(void);
const char *entity_name(size_t i);

#endif
