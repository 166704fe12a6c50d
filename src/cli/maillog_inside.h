/* What the readers of Postfix's and of Sendmail's lines share. */
#ifndef CLI_MAILLOG_INSIDE_H
#define CLI_MAILLOG_INSIDE_H

#include "cli/maillog.h"

/* Behind "<address>": a quoted local part may hold anything. False, and
 * nothing skipped, when `s` does not begin with one. */
bool maillog_skip_address(struct str *s);
struct str maillog_in_brackets(struct str s);
/* "127.0.0.1[127.0.0.1]:10024": a server of this host. */
bool maillog_is_local(struct str relay);

/* `s`: behind "sm-mta[123]: ". */
bool maillog_parse_sendmail(struct str s, struct maillog_event *out);

#endif
