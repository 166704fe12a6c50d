/* The archive's store (archive.md §1–4): shards of append-only segments, one
 * writer thread a family, one applier behind it. The caller's thread spools
 * the message, submits it and waits until it is durable.
 *
 *   spool_new → push bytes → store_submit (blocks) → id
 *
 * After store_submit returned RES_OK the message is in a segment whose
 * fdatasync succeeded. On any error nothing is promised and nothing
 * half-written is ever shown. */
#ifndef ARCHIVE_STORE_H
#define ARCHIVE_STORE_H

#include <stdbool.h>
#include <stdint.h>

#include "archive/format/record.h"
#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/sink.h"

struct store;

struct store_options {
	const char *path;         /* archive_dir */
	uint64_t roll_bytes;      /* archive_roll_size */
	uint64_t reserve_bytes;   /* refuse (RES_AGAIN) below this free space */
	int64_t retry_us;         /* between tries to begin a shard; 0 = 1 s */
	bool without_index;       /* no appliers: the index is built later */
	/* another process may have the families: open none before it is
	 * submitted to */
	bool on_demand;
	/* every family's messages come from any time, as those of imports */
	bool by_date;
	/* signs checkpoints (keys/signer.h), every so often and when asked;
	 * outlives the store. NULL: nobody; 0: only when asked */
	struct signer *signer;
	int64_t checkpoint_us;
	struct clock clock;
	const struct archive_io *io; /* NULL: the system; tests inject faults */
	/* one line for the operator; called by any thread; may be NULL */
	void (*alarm)(void *context, const char *line);
	void *alarm_context;
};

/* Create or open, recover every open shard, start writers and appliers.
 * RES_IO/RES_DENIED/RES_CORRUPT with a line in `err`. Shards that cannot be
 * opened are offline and named through `alarm`; the others work. */
HN_CHECK enum res store_open(
    const struct store_options *o, struct err *err, struct store **out);
/* Orderly stop: wait for the group under way and the appliers, leave the
 * indexes readable without a writer. Clears. */
void store_close(struct store **s);

/* --- one message --- */
struct spool;
/* Takes the presented bytes (header, empty line, body). Up to 1 MiB stays in
 * memory, the rest goes to an unlinked file in the store. Registers itself
 * with the arena. NULL without memory. */
struct spool *spool_new(struct arena *a, struct store *s);
struct sink *spool_sink(struct spool *sp);
/* SHA-256 of the bytes, once the spool is finished. */
const uint8_t *spool_sha256(const struct spool *sp);

/* Messages of this family come from any time: they are filed by their own
 * month, and wait when the index is far behind. */
#define STORE_IMPORT_FAMILY "import"
/* Events (audit.h), and what holds keep of shards that expired (held.h). */
#define STORE_AUDIT_FAMILY "audit"
#define STORE_HOLD_FAMILY  "hold"

struct store_message {
	const char *family;      /* "mail" */
	int64_t time_us;         /* of arrival */
	struct str meta, evidence, edits; /* encoded records; may be empty */
	struct spool *body;      /* finished */
	/* an enum frame_type for what is no message (events, notes): then the
	 * body may be NULL; 0 = a message */
	uint8_t type;
};
/* Block until durable (or refused). RES_LIMIT: a record or the body is too
 * large; RES_INVALID: no such family name. *out_id = shard << 32 | frame. RES_AGAIN:
 * no space, poisoned segment being replaced; RES_IO: this attempt failed. */
HN_CHECK enum res store_submit(
    struct store *s, const struct store_message *m, uint64_t *out_id);

/* --- evidence --- */

/* Have the tree of each family's open shard signed (archive.md §6). `told`
 * (may be NULL) gets the note of each, new or still good, or why there is
 * none; families without anything to sign are passed over. Returns the number
 * that should have been signed and were not. Any thread; takes as long as the
 * signer does. */
typedef void (*store_checkpoint_fn)(void *context, const char *family,
    enum res r, struct str note);
unsigned store_checkpoint(
    struct store *s, store_checkpoint_fn told, void *context);

/* The same for shards that nobody has open: those of an import, and what was
 * left without a key. Not from time to time, as an import that begins
 * meanwhile finds its shard taken. `told` is not NULL. */
unsigned store_checkpoint_left(
    struct store *s, store_checkpoint_fn told, void *context);

/* --- for those who change finished shards (keeping.h) --- */
struct shard_env;
const struct shard_env *store_env(const struct store *s);
struct clock store_clock(const struct store *s);
bool store_is_on_demand(const struct store *s);
/* If a writer of ours has this shard open, it is sealed and left; its lock is
 * free when its index is complete. Mail goes on in a new one. */
HN_CHECK enum res store_leave(
    struct store *s, const char *family, uint32_t shard);

/* --- counters for status and tests --- */
struct store_counters {
	uint64_t messages, deliveries, groups, bytes_raw, bytes_stored,
	    unapplied;
	uint64_t refused;  /* submissions that were not stored */
	uint64_t poisoned; /* shards given up after a failed write */
};
void store_counters(struct store *s, struct store_counters *out);
/* The newest line for the operator and when it was said; "" and 0. */
void store_last_alarm(struct store *s, struct err *out, int64_t *out_us);
const char *store_path(const struct store *s);

#endif
