/* Named character references of HTML. */
#ifndef MAIL_ENTITY_H
#define MAIL_ENTITY_H

#include <stdint.h>

#include "base/str.h"

#define ENTITY_MAX_NAME 32

/* The code point of "amp", "eacute", …; 0 when not in the table. Case counts.
 */
uint32_t entity_find(struct str name);

/* The code point that the number `cp` stands for: 128 to 159 mean windows-1252
 * (HTML §13.2.5.80), what that leaves open is a blank. */
uint32_t entity_number(uint32_t cp);

/* For tests: the table is sorted. */
size_t entity_count(void);
const char *entity_name(size_t i);

#endif
