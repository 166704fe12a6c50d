/* Content-Type and Content-Disposition values: the main word and parameters
 * (RFC 2045 §5.1), with RFC 2231 continuations and charsets, encoded words in
 * parameters (not allowed, but common), unquoted file names with blanks. For
 * the MIME walk: lenient, linear, bounded. */
#ifndef MAIL_PARAM_H
#define MAIL_PARAM_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/str.h"

/* RFC 2231 sections of one parameter; more are ignored. */
#define PARAM_MAX_SECTIONS 64
/* Bytes of one parameter's value; longer ones are cut. */
#define PARAM_MAX_VALUE ((size_t)4096)

/* The word before the first ';', without comments and blanks, as written. */
struct str param_main(struct str value);

/* The parameter `name` (any case) as UTF-8 into `out`; false when absent. */
bool param_find(struct str value, struct str name, struct buf *out);

#endif
