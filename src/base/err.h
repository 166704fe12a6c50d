/* One clear line for a person: what is wrong, where, what to do. Filled by
 * the function that fails, printed by daemon or cli. The first message stays:
 * a later, more general one does not cover it. */
#ifndef BASE_ERR_H
#define BASE_ERR_H

#include "base/res.h"

#define ERR_MAX_TEXT 1024 /* longer texts end in "..." */

struct err {
	char text[ERR_MAX_TEXT]; /* "" while nothing went wrong */
};

/* Keep the message unless one is kept already. `e` may be NULL. Control
 * bytes are replaced by '?'. */
void err_set(struct err *e, const char *fmt, ...) HN_PRINTF(2, 3);

/* Forget the message. */
void err_clear(struct err *e);

#endif
