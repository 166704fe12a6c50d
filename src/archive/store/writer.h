/* The writer of one family: a thread that takes what sessions have queued,
 * appends it as one group with one sync, and wakes them (archive.md §1, §4).
 *
 *   writer_new (recovers) → writer_submit* (any thread) → writer_free
 *
 * The writer opens, rolls and replaces shards, always between groups: when
 * the month changes (never backwards, never further ahead than the clock can
 * have come), when the size is reached, when a shard is poisoned or damaged.
 * While no shard can be opened, submissions get RES_AGAIN at once and the
 * writer tries again every retry_us. */
#ifndef ARCHIVE_WRITER_H
#define ARCHIVE_WRITER_H

#include <stdint.h>

#include "archive/store/shard.h"
#include "base/clock.h"

#define WRITER_MAX_GROUP  256                  /* frames a sync */
#define WRITER_MAX_BYTES  ((uint64_t)16 << 20) /* of them */
#define WRITER_RETRY_US   1000000
/* Each is checked again at the next start (see lazy_index). */
#define WRITER_LAZY_FRAMES 64

struct writer;

struct writer_options {
	const struct shard_env *env; /* lives longer than the writer */
	const char *family;
	uint64_t roll_bytes;
	int64_t retry_us;            /* 0 = WRITER_RETRY_US */
	struct clock clock;
	bool without_index;          /* no appliers */
	/* an applier only for WRITER_LAZY_FRAMES or more: this process writes
	 * a frame or two, another one will index them */
	bool lazy_index;
	/* a shard for each month that messages come from (imports) */
	bool by_date;
};

struct writer_counters {
	uint64_t frames, deliveries, groups, bytes_raw, bytes_stored,
	    unapplied;
	uint64_t refused, poisoned;
};

/* Recover the family's newest shard and start the thread. Shards that stay
 * offline are told to the alarm and do not stop the family: it goes on in a
 * new one. RES_NOMEM, RES_INVALID (family name). */
HN_CHECK enum res writer_new(
    const struct writer_options *o, struct err *err, struct writer **out);
/* Wait for what is queued, leave the shard tidy. */
void writer_free(struct writer **w);
/* Write the draft (its header's time decides the month), wait until it is
 * durable. RES_AGAIN: not now, nothing written. RES_IO: this attempt failed.
 * The draft stays the caller's. */
HN_CHECK enum res writer_submit(
    struct writer *w, struct draft *d, uint64_t *out_id);
/* Sign what is durable now, with env->signer; the note, signed before or now,
 * is appended to `out`. RES_NOTFOUND: there is no key, or nothing to sign yet;
 * RES_INVALID: the open shard is damaged, and will be left; RES_AGAIN: the
 * signer is not there, or a new shard was begun meanwhile; RES_IO: it could
 * not be kept. Waits for the signer in the caller's thread. */
HN_CHECK enum res writer_checkpoint(struct writer *w, struct buf *out);
/* What drafts for this writer are best packed with; a reference, or NULL. */
struct dictionary *writer_dictionary(struct writer *w);
/* Seal and leave the shard of this number, if it is the open one. */
HN_CHECK enum res writer_leave(struct writer *w, uint32_t shard);
void writer_counters(struct writer *w, struct writer_counters *out);
const char *writer_family(const struct writer *w);

#endif
