/* What the MTA tells beside its commands: names and values that come just
 * before a command and hold until it comes again. */
#ifndef MILTER_MACROS_H
#define MILTER_MACROS_H

#include "base/str.h"

struct macros; /* of one command; a list of them per connection */

/* Those of `command`; what was told for it before is replaced. `text` is
 * copied. Without memory they are missing. */
void macros_set(struct macros **list, char command, struct str text);
/* The value of a name, with or without braces around it; empty when it was
 * not told. The latest command that brought it counts. Lives as long as what
 * was set. */
struct str macros_get(const struct macros *list, struct str name);
/* Forget those of these commands, or of all (NULL). */
void macros_forget(struct macros **list, const char *commands);

#endif
