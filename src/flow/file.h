/* A message from a file or standard input through one flow message: what the
 * milter does with an MTA's messages, for `hanaper verify` and tests. */
#ifndef FLOW_FILE_H
#define FLOW_FILE_H

#include "base/err.h"
#include "flow/message.h"

/* Push all of `fd` into `s`, without finishing it. RES_IO with errno. */
HN_CHECK enum res file_push(struct sink *s, int fd);

/* Read all of `fd` (LF or CRLF decided by the first line end) into header and
 * body of `m`, up to end of body; call message_finish afterwards. RES_IO with
 * errno when reading fails. *out_malformed (may be NULL): the header ended at
 * a line that is no field. */
HN_CHECK enum res file_feed(
    struct message *m, int fd, bool *out_malformed);
/* The same from whatever `pour` pushes and finishes. */
HN_CHECK enum res file_feed_from(struct message *m,
    enum res (*pour)(void *context, struct sink *out), void *context);

#endif
