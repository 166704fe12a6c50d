/* Forgetting messages (archive.md §7). What is erased is gone from the disk:
 * its blocks are zeros, the file of a large body is unlinked, the index has
 * none of its terms. What stays are the frame's header with the leaf hash, so
 * that every proof of the rest holds, and the intent in the audit family.
 *
 *   1  the shard's file `erasures` names the frames       (durable)
 *   2  intent in the audit family                         (durable)
 *   3  blocks zeroed in place, body files unlinked        (durable)
 *   4  a new generation of the index
 *   5  event "erased" in the audit family                 (durable)
 *   6  `erasures` names the intent, nothing is under way  (durable)
 *
 * After a crash: before 2 nothing happened, and step 1 is taken back; behind
 * it the rest is done again, all of it from 3, in the background: the audit
 * family has to be recovered first, and indexes take long. */
#ifndef ARCHIVE_ERASE_H
#define ARCHIVE_ERASE_H

#include <stdatomic.h>

#include "archive/keeping/audit.h"
#include "archive/store/store.h"

/* Messages with so many deliveries in a shard are erased in parts. */
#define ERASE_MAX_FRAMES AUDIT_MAX_IDS

struct erase_request {
	const uint64_t *ids; /* any delivery names its content */
	size_t count;
	struct str reason;   /* not empty */
	struct audit_who who;
	/* the process is about to end; may be NULL */
	const atomic_bool *stop;
};
struct erase_outcome {
	uint64_t frames;     /* erased now: messages and their deliveries */
	uint64_t before;     /* of the ids: erased already */
};

/* All of it or, when something stands against one of the ids, nothing:
 * RES_NOTFOUND, RES_DENIED (a hold; an event), with a line. On other errors
 * part may be done and the rest is done at the next start. */
HN_CHECK enum res archive_erase(struct store *s,
    const struct erase_request *rq, struct err *err,
    struct erase_outcome *out);

#endif
