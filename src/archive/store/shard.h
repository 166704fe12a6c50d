/* One shard open for writing: its lock, segment file, tree and recent
 * contents. Used by one thread at a time (its family's writer).
 *
 *   shard_create | shard_open (recovers) → shard_append* → shard_close
 *
 * What must hold:
 *  1. bytes below `durable` are never written again (erase is another tool)
 *  2. a failed sync is never tried again: the shard is poisoned, nothing is
 *     appended any more, a new shard records its `durable` length
 *  3. the header is durable, and the names leading to it, before the first
 *     frame is acknowledged */
#ifndef ARCHIVE_SHARD_H
#define ARCHIVE_SHARD_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "archive/format/merkle.h"
#include "archive/proof/shard_notes.h"
#include "archive/store/dedupe.h"
#include "archive/store/dictionary.h"
#include "archive/store/draft.h"
#include "archive/store/io.h"
#include "archive/store/recover.h"
#include "archive/store/store_dir.h"
#include "base/err.h"

/* Space is reserved in steps: the disk is found full before the write, and
 * the size of the file does not change with every sync. The first time it is
 * only what is needed: a command writes one frame and has nothing to give
 * back. */
#define SHARD_RESERVE_STEP ((uint64_t)64 << 20)
#define SHARD_RESERVE_SMALL ((uint64_t)1 << 20)
#define SHARD_TOKENIZER "hanaper1"

/* Seal frame: META tags. */
enum seal_tag {
	SEAL_FRAMES = 1, /* u64: frames before the seal */
	SEAL_ROOT = 2,   /* 32 bytes: tree head over them; absent with holes */
};

/* What shards of one store share. Lives longer than the shards. */
struct shard_env {
	const struct archive_io *io;
	const char *store_path;
	uint64_t reserve_bytes;  /* free space that is left alone */
	struct signer *signer;   /* of notes; NULL: nobody signs */
	void (*alarm)(void *context, const char *line); /* any thread; or NULL */
	void *alarm_context;
};

/* Say something to the operator. */
void shard_alarm(const struct shard_env *env, const char *fmt, ...)
    HN_PRINTF(2, 3);

struct shard {
	const struct shard_env *env;
	char dir[PATH_MAX];
	int fd, lock;
	struct shard_header header;
	uint64_t durable;     /* bytes acknowledged or to be */
	uint64_t allocated;   /* size of the file */
	bool grown;           /* more than once: reserve in steps */
	uint64_t frames;      /* number of the next frame */
	uint64_t indexed;     /* of them, when it was opened */
	struct merkle tree;
	bool holes;           /* leaves are missing: no tree head */
	bool sealed, damaged, poisoned; /* each: no more appends */
	bool ended;           /* of a former epoch: the same */
	struct shard_notes notes;
	struct dedupe *dedupe;
	size_t dictionary_count;
	struct recover_dictionary dictionaries[SEGMENT_MAX_DICTIONARIES];
};
static inline bool
shard_writable(const struct shard *s)
{
	return !s->sealed && !s->damaged && !s->poisoned && !s->ended;
}

/* What a new shard's header says about the one before it. */
struct shard_link {
	uint32_t number; /* 0: none */
	uint64_t bytes, frames;
	uint8_t root[32];
	char note[SHARD_MAX_NOTE + 1]; /* the last one signed; may be "" */
	char key[SHARD_MAX_KEY + 1];   /* the newest one known; the same */
};
/* From a shard that is finished with. */
struct shard_link shard_link_of(const struct shard *s);

/* A new shard of `family` and `period`. RES_AGAIN: no space. */
HN_CHECK enum res shard_create(const struct shard_env *env, const char *family,
    const char *period, const struct shard_link *previous, int64_t now_us,
    struct err *err, struct shard **out);

/* Lock and recover. `floor`: durable length known from elsewhere (0:
 * unknown); how far the index has come is looked up. RES_DENIED: another process holds it; RES_CORRUPT,
 * RES_UNSUPPORTED, RES_IO: it stays offline. Damage is told to the alarm and
 * leaves a shard that takes no more frames. */
HN_CHECK enum res shard_open(const struct shard_env *env,
    const struct shard_entry *entry, uint64_t floor, struct err *err,
    struct shard **out);

/* RES_DENIED when another process, or another part of ours, has the shard.
 * Closing `*out` gives it back. */
HN_CHECK enum res shard_lock(
    const struct archive_io *io, const char *dir, int *out);

/* Give a draft its place behind `at` (the end of the group so far), as a
 * delivery when its content is here already. `group` are the `count` drafts
 * placed before it in this group. RES_INVALID: its dictionary is not here. */
HN_CHECK enum res shard_place(struct shard *s, struct draft *const *group,
    size_t count, uint64_t at, struct draft *d);

/* Is a copy of this dictionary in the shard? */
bool shard_has_dictionary(const struct shard *s, const struct dictionary *d);
/* Append one, durable, before the first draft that needs it is placed.
 * RES_LIMIT: the shard has SEGMENT_MAX_DICTIONARIES; else as shard_append. */
HN_CHECK enum res shard_add_dictionary(
    struct shard *s, const struct dictionary *d, int64_t now_us);
/* The one that came last, read from the file. RES_NOTFOUND: none. */
HN_CHECK enum res shard_read_dictionary(
    const struct shard *s, struct err *err, struct dictionary **out);

/* Append placed drafts and make them durable. RES_AGAIN: no space, nothing
 * changed. RES_IO: the shard is poisoned. */
HN_CHECK enum res shard_append(
    struct shard *s, struct draft *const *group, size_t count);

/* Write the seal frame: no more mail comes here. */
HN_CHECK enum res shard_seal(struct shard *s, int64_t now_us);

/* Give reserved space back, unlock. NULL is fine. */
void shard_close(struct shard **s);

/* Drop what stands behind `durable`, to lost/: a failed write may have left
 * frames there, and a new shard exists now. */
HN_CHECK enum res shard_drop_tail(struct shard *s);

/* A shard that was left behind ends at `bytes`, as its successor says:
 * whatever stands behind goes to lost/ (archive.md §4, step 6). */
HN_CHECK enum res shard_cut(
    const struct shard_env *env, const char *dir, uint64_t bytes);

#endif
