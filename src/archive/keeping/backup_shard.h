/* One shard of a backup: copied piece by piece, each piece verified before
 * the next. */
#ifndef ARCHIVE_BACKUP_SHARD_H
#define ARCHIVE_BACKUP_SHARD_H

#include "archive/keeping/backup.h"
#include "archive/keeping/backup_state.h"

struct backup_shard {
	const struct backup_options *o;
	struct backup_counts *counts;
	const char *from, *to; /* directories of the shard */
	/* copy up to here; 0 = what is known to be durable, of which
	 * `successor` (0: none) is what the next shard's header says */
	uint64_t limit, successor;
	bool complete; /* out: there is no frame behind what was copied */
};
/* RES_EXISTS: the copy is of another shard, or of another past of this one;
 * RES_CORRUPT: the source lacks what stands below the limit. */
HN_CHECK enum res backup_shard_copy(struct backup_shard *b, struct err *err,
    struct backup_state *out);

/* One line for the operator. */
void backup_say(const struct backup_options *o, const char *fmt, ...)
    HN_PRINTF(2, 3);

#endif
