/* The MTA's own door for mail of this host: the sendmail command. */
#ifndef CLI_SENDMAIL_H
#define CLI_SENDMAIL_H

#include "base/str.h"

#define SENDMAIL_WAIT_S 120 /* then it is killed: EX_TEMPFAIL */

/* Run `path` -t -i -f `from` with `message` as its standard input (LF line
 * ends, recipients in To). Its exit status; EX_TEMPFAIL when it does not end
 * or dies, EX_OSERR or EX_UNAVAILABLE when it cannot be run at all. */
int sendmail_run(const char *path, const char *from, struct str message);

#endif
