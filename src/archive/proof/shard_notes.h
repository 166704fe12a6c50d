/* What is signed of a shard, and by whom (archive.md §6): the last note of
 * its `checkpoints` file, the keys that its header and its KEY frames name.
 * A note is made over durable frames only:
 *
 *   shard_head (what there is) → note_sign (any thread, may take a while) →
 *   shard_add_note (the writer): `checkpoints` first, then the NOTE frame
 *
 * so that every NOTE frame's note stands in the file. */
#ifndef ARCHIVE_SHARD_NOTES_H
#define ARCHIVE_SHARD_NOTES_H

#include "archive/format/merkle.h"
#include "archive/format/note.h"
#include "archive/store/recover.h"
#include "base/err.h"

/* NOTE and KEY frames: META tags. */
enum note_tag { NOTE_TEXT = 1 /* the signed note */ };

#define SHARD_MAX_KEYS 16 /* kept; a shard whose keys change more often keeps
			   * the newest */

struct shard;

struct shard_notes {
	uint64_t size;  /* of the tree that was signed last; 0: never */
	uint8_t root[LEAF_HASH_BYTES];
	char last[SHARD_MAX_NOTE + 1];
	uint64_t news;  /* frames since then that are worth a note */
	size_t key_count;
	struct note_key keys[SHARD_MAX_KEYS]; /* oldest first */
};

/* --- recovery (archive.md §4, step 9) --- */

/* The header's key and the last note of the file. A file that cannot be read
 * is told to the alarm. */
HN_CHECK enum res shard_notes_read(struct shard *s);
/* The scan has come to a NOTE or KEY frame with this META. */
void shard_notes_frame(
    struct shard *s, const struct segment_frame *f, struct str meta);
/* The scan is over: does the tree still begin with what was signed? If not,
 * the shard takes no more frames, and a new epoch begins. */
HN_CHECK enum res shard_notes_judge(
    struct shard *s, const struct recovery *rec, struct err *err);

/* --- signing --- */

/* A copy of what can be signed now. */
struct shard_head {
	struct note_origin origin;
	struct merkle tree;
	bool can_sign; /* no leaf is missing, nothing is damaged */
	bool writable;
	struct shard_notes notes;
};
void shard_head(const struct shard *s, struct shard_head *out);

/* The note to add next, signed: a handover when a key that signs is not known
 * in the shard (*out_type is FRAME_KEY; then ask again), else a
 * checkpoint (FRAME_NOTE). RES_EXISTS: nothing is new since the last one;
 * RES_NOTFOUND: no key signs; RES_INVALID: the shard is damaged; else what
 * the signer says. */
HN_CHECK enum res shard_head_sign(const struct shard_head *h,
    struct signer *signer, int64_t now_us, struct buf *out,
    enum frame_type *out_type);

/* Keep a signed note: the writer only. A shard that takes no more frames gets
 * a checkpoint into its file only. */
HN_CHECK enum res shard_add_note(struct shard *s, enum frame_type type,
    struct str note, int64_t now_us);

/* A shard is about to be left: sign all of it if somebody can. */
void shard_sign_all(struct shard *s, int64_t now_us);

#endif
