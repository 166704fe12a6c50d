/* The MTA's own door for mail of this host: the sendmail command. Never
 * through a shell; the message has LF line ends. */
#ifndef CLI_SENDMAIL_H
#define CLI_SENDMAIL_H

#include <stdio.h>

#include "base/str.h"

#define SENDMAIL_WAIT_S 120 /* then it is killed: EX_TEMPFAIL */
#define SENDMAIL_MAX_RCPTS 500

/* Run `path` -t -i -f `from` with `message` as its standard input (recipients
 * in To). Its exit status; EX_TEMPFAIL when it does not end or dies, EX_OSERR
 * or EX_UNAVAILABLE when it cannot be run at all. */
int sendmail_run(const char *path, const char *from, struct str message);
/* The same with the whole of `message`, whatever its header says: `path` -i
 * -f `from` -- `rcpts` …, at most SENDMAIL_MAX_RCPTS. `from` "<>" is the null
 * sender. */
int sendmail_run_to(const char *path, const char *from, char *const *rcpts,
    size_t count, FILE *message);

#endif
