/* Copies of a store, made while mail comes in (archive.md §7), and a store
 * made of such a copy.
 *
 * A backup has the layout of a store without indexes; each shard has a file
 * `backup` that says how far it was copied, synced and verified. What stands
 * behind that place, in a copy that was interrupted, is copied again. Of a
 * shard come first its signed notes, then as much of the segment as is known
 * to be durable, then the bodies in files of their own; dictionaries are
 * frames. A later run copies what is new. Whatever was copied is read back
 * from the disk: all checks of each frame and body, and a comparison with the
 * source where one of them fails, so that damage of the source is named and
 * not taken for a bad copy.
 *
 * The audit family is copied last: what is under way in the copy of another
 * shard, an erasure, has its intent there, or had not begun. `before_audit` is
 * called in between; an event written then is behind every intent and lets it
 * be known to be durable.
 *
 * A restored store begins a new epoch: the frames that came after the backup
 * may have been signed, and nothing may be signed in their place. */
#ifndef ARCHIVE_BACKUP_H
#define ARCHIVE_BACKUP_H

#include <stdbool.h>
#include <stdint.h>

#include "archive/store/io.h"
#include "base/err.h"

struct backup_options {
	const char *from, *to;
	/* drop what the store does not have any more: shards that expired and
	 * mail that was erased */
	bool prune;
	const struct archive_io *io; /* NULL: the system; of what is written */
	/* lines for the operator: what is damaged, offline, gone, waiting */
	void (*say)(void *context, const char *line);
	void (*progress)(void *context, const char *shard, uint64_t done,
	    uint64_t bytes); /* may be NULL */
	void (*before_audit)(void *context); /* may be NULL */
	void *context;
};

struct backup_counts {
	unsigned shards, changed; /* in all; with something new */
	unsigned offline;         /* cannot be copied, each named */
	unsigned gone;            /* only in the backup */
	uint64_t erased;          /* frames whose text is only in the backup;
	                             with `prune` it was until now */
	uint64_t bytes, frames, bodies; /* copied and verified now */
	uint64_t damaged;         /* frames and bodies damaged at the source */
	uint64_t waiting;         /* bytes not known to be durable yet */
};

/* RES_DENIED: another one is running; RES_EXISTS: the backup of another
 * store; RES_AGAIN: no space; RES_IO: a copy cannot be read back. What was
 * said to be copied stays so. */
HN_CHECK enum res backup_run(const struct backup_options *o, struct err *err,
    struct backup_counts *out);

/* Make the store `o->to`, which must not exist or be an empty directory, of
 * the backup `o->from`. It is made beside its place and moved there at the
 * end; a run after an interruption goes on. RES_EXISTS: there is something;
 * RES_CORRUPT: the backup lacks what it says it has (the line names it). */
HN_CHECK enum res backup_restore(const struct backup_options *o,
    struct err *err, struct backup_counts *out);

#endif
