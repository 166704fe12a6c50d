/* Messages that were archived and then refused: events "withdrawn", each
 * message once, however often the same log is read. */
#ifndef CLI_WITHDRAWN_H
#define CLI_WITHDRAWN_H

#include "cli/archive.h"

struct withdrawals {
	uint64_t *ids;
	size_t count, cap;
	uint64_t written;
	bool incomplete; /* no memory for some */
};

void withdrawn_add(struct withdrawals *w, uint64_t id);
/* Best effort: what cannot be written down is complained about, and found
 * again by the next run. */
void withdrawn_write(struct withdrawals *w, const struct archive_place *p,
    const char *dir);
void withdrawn_done(struct withdrawals *w);

#endif
