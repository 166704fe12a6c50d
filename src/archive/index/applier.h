/* The applier: one thread per open shard that reads the frames behind the
 * index's applied offset from the segment, extracts their text and writes
 * catalogue rows, postings and the new offset in one transaction. It never
 * touches the acknowledgement path: the writer only calls applier_wake.
 *
 *   applier_start → applier_wake* → applier_stop
 *
 * The segment is the record and the index is derived: a missing index or one
 * of another version is built anew; one that is ahead of its segment raises
 * an alarm ("acknowledged data missing") and is replaced by a new
 * generation. */
#ifndef ARCHIVE_APPLIER_H
#define ARCHIVE_APPLIER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/res.h"

/* Messages a transaction: beyond that FTS5 gains nothing. One that takes long
 * ends before, so that being killed again and again does not keep the index
 * where it is. */
#define APPLIER_BATCH 1000
#define APPLIER_BATCH_US 250000
/* Importers wait above this many un-applied messages (see
 * applier_throttled): searches read that many frames within their 2 s. */
#define APPLIER_MAX_BEHIND 5000
/* While mail comes without a pause, the index waits: the processor is wanted
 * by the mail, and FTS5 takes many messages at once for less. It starts when
 * nothing came for APPLIER_QUIET_US; but also when the oldest waits this
 * long, or when more wait than a search should read one by one. */
#define APPLIER_QUIET_US    100000
#define APPLIER_LATE_US     5000000
#define APPLIER_LATE_FRAMES 2000
#define APPLIER_LATE_BYTES  ((uint64_t)16 << 20) /* in the segment */
/* How long applier_stop goes on applying before it gives up: what is left is
 * applied at the next start, and searches see it as the tail. */
#define APPLIER_STOP_US 10000000

struct applier;

struct applier_options {
	const char *dir;          /* the shard's directory; copied */
	uint64_t durable_bytes;   /* the segment's length after recovery */
	uint64_t durable_frames;
	/* a new generation is built beside the present one; applier_seal
	 * makes it the present one when it is complete */
	bool rebuild;
	void (*alarm)(void *context, const char *line); /* may be NULL */
	void *alarm_context;
};

/* Called when the shard is recovered and locked by this process. Errors of
 * the index are no errors of the store: they go to the alarm, are tried
 * again every 10 s, and the segment goes on without an index. */
HN_CHECK enum res applier_start(
    const struct applier_options *o, struct err *err, struct applier **out);

/* The segment is durable up to here. Cheap, never waits; any thread. The
 * index follows after a pause, see APPLIER_QUIET_US. */
void applier_wake(
    struct applier *a, uint64_t durable_bytes, uint64_t durable_frames);

/* Frames durable but not applied yet; any thread. */
uint64_t applier_unapplied(const struct applier *a);
static inline bool
applier_throttled(const struct applier *a)
{
	return applier_unapplied(a) > APPLIER_MAX_BEHIND;
}

/* Why the last try failed, a line in `err`, until one succeeds: RES_OK. Any
 * thread. Whoever waits for what is un-applied looks here now and then. */
HN_CHECK enum res applier_trouble(struct applier *a, struct err *err);

/* Apply what is durable (at most APPLIER_STOP_US), leave the index in
 * rollback-journal mode, so that it can be read without a writer, join the
 * thread. Clears. */
void applier_stop(struct applier **a);
/* The same for a shard that gets no more frames: however long it takes, and
 * the postings are merged. */
void applier_seal(struct applier **a);

#endif
