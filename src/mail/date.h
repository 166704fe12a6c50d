/* Dates as mail writes them: RFC 5322 §3.3 with its obsolete forms ("Fri, 21
 * Nov 1997 09:55:06 -0600 (CST)"), and asctime's, which mbox From_ lines have
 * ("Fri Nov 21 15:55:06 1997"). Lenient about order and separators: day,
 * month by name, year and time must be there. */
#ifndef MAIL_DATE_H
#define MAIL_DATE_H

#include <stdint.h>

#include "base/res.h"
#include "base/str.h"

/* Seconds since 1970, UTC; without a zone the time is taken as UTC.
 * RES_SYNTAX: no date; RES_INVALID: a day that does not exist. */
HN_CHECK enum res date_parse(struct str text, int64_t *out_s);

#endif
