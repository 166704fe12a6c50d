/* Checking DKIM and ARC of archived messages again as they were checked when
 * they came: with the DNS answers, the clock and the limits of then. Nothing
 * is asked of the network. */
#ifndef CLI_AS_RECEIVED_H
#define CLI_AS_RECEIVED_H

#include "cli/archive.h"

/* Says for each signature whether the result is the same; what differs, or
 * cannot be checked any more, counts in *faults. */
int as_received(struct archive_reader *r, const char *id, bool json,
    uint64_t *faults);
/* Every inbound message; only what is worth a line is said. */
int as_received_all(struct archive_reader *r, bool json, uint64_t *faults);

#endif
