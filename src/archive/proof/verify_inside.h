/* What the parts of verify know of each other: the walk over frames (verify.c),
 * headers and their chain (verify_headers.c), notes and keys (verify_notes.c),
 * erasures (verify_erased.c), held frames (verify_held.c). Every finding goes through the two `_fault`. */
#ifndef ARCHIVE_VERIFY_INSIDE_H
#define ARCHIVE_VERIFY_INSIDE_H

#include "archive/format/merkle.h"
#include "archive/keeping/erasures.h"
#include "archive/keeping/intents.h"
#include "archive/proof/verify.h"
#include "archive/store/segment_reader.h"
#include "archive/store/shard.h"
#include "archive/store/store_dir.h"
#include "base/arena.h"

#define VERIFY_MAX_TEXT 512

/* A note that speaks of the shard under way. */
struct kept_note {
	struct str bytes;
	struct note_head head;
	uint64_t position; /* in checkpoints, from 1; 0: in `where` */
	const char *where; /* the successor's header */
	bool framed;       /* a NOTE frame has it too */
};

struct checked_key {
	struct note_key key;
	struct checked_key *next;
};

struct verify {
	const struct verify_options *options;
	struct verify_counts counts;
	struct store_identity id;
	struct shard_entry *entries;
	size_t entry_count;
	struct arena *arena; /* of the shard under way */
	/* the shard under way */
	const struct shard_entry *entry;
	struct segment_reader *reader;
	bool live;
	struct merkle tree;
	bool holes;
	uint64_t number, at;   /* the next frame's */
	struct kept_note *notes;
	size_t note_count, note_cap;
	uint64_t next_size;    /* of the notes ahead, the smallest */
	struct checked_key *keys;
	struct arena *erasures_arena;
	struct erasures erasures;
	struct intents intents;
};

/* Of the shard, without a place in its segment. */
void verify_shard_fault(struct verify *v, const char *fmt, ...)
    HN_PRINTF(2, 3);
/* At a frame, or (NULL) where the next one should begin. */
void verify_frame_fault(struct verify *v, const struct segment_frame *f,
    const char *fmt, ...) HN_PRINTF(3, 4);

/* --- headers --- */

void verify_check_header(struct verify *v);
/* What the successor says of this shard. */
void verify_check_successors(struct verify *v);
/* NULL: there is none, or it cannot be used. */
const struct shard_entry *verify_by_number(
    const struct verify *v, uint32_t number);

/* --- notes and keys --- */

/* Who signs here must be known from the shard before. */
void verify_check_first_key(struct verify *v);
/* The notes of the shard's own file. */
HN_CHECK enum res verify_read_checkpoints(struct verify *v);
/* What the headers of later shards say was signed of this one. */
HN_CHECK enum res verify_read_successors(struct verify *v);
/* The tree has as many leaves as some notes speak of. */
HN_CHECK enum res verify_compare_roots(struct verify *v);
/* A NOTE frame repeats a note of the file. */
void verify_check_note_frame(
    struct verify *v, const struct segment_frame *f, struct str meta);
/* A KEY frame is signed by the new key and by one before it. */
void verify_check_key_frame(
    struct verify *v, const struct segment_frame *f, struct str meta);
/* All frames were seen: check the signatures. How many frames are signed. */
uint64_t verify_judge_notes(struct verify *v);

/* --- what is held --- */

/* A held frame that was loaded whole: does it prove what it says? */
HN_CHECK enum res verify_check_held(struct verify *v,
    const struct segment_frame *f, const struct segment_content *c);

/* --- what was erased --- */

HN_CHECK enum res verify_read_erasures(struct verify *v);
/* Is this frame being erased just now? Then it may look like anything. */
bool verify_is_under_way(const struct verify *v, uint64_t number);
/* Erased blocks, and nothing else, are what an intent stands for. */
void verify_check_erased(
    struct verify *v, const struct segment_frame *f, bool erased);

#endif
