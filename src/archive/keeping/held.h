/* Messages that outlive their shard because of a hold: each is written whole
 * into a frame of family "hold" before the shard goes. EVIDENCE, EDITS and
 * BODY hold the same plain bytes as before, META a record with the META of
 * before and what proves it: the header of its frame, the salts of its blocks
 * and the path from its leaf to the tree head of its shard. They are found by
 * search like before, and by their old ids too. */
#ifndef ARCHIVE_HELD_H
#define ARCHIVE_HELD_H

#include "archive/keeping/holds.h"
#include "archive/store/segment_reader.h"
#include "archive/store/store.h"

/* META tags of a held frame. Never reuse a number. */
enum held_tag {
	HELD_META = 1,    /* the META of before, whole */
	HELD_UUID = 2,    /* of the store */
	HELD_SHARD = 3,   /* u32 */
	HELD_EPOCH = 4,   /* u32 */
	HELD_FAMILY = 5,
	HELD_PERIOD = 6,
	HELD_HEADER = 7,  /* the frame header, 128 bytes */
	HELD_SALTS = 8,   /* 16 bytes a block, zeros for an absent one */
	HELD_SIZE = 9,    /* u64: leaves of the shard's tree */
	HELD_ROOT = 10,   /* 32 bytes */
	HELD_PATH = 11,   /* list of 32 bytes: RFC 6962 audit path */
	HELD_HOLD = 12,   /* name of the hold; absent: it was in doubt */
	HELD_NOTE = 13,   /* the last signed note of its shard */
};

/* The META of the message in a frame of any type: that of before when it is
 * held. */
struct str held_meta(enum frame_type type, struct str meta);
/* The id it had; 0: no held frame, or a damaged one. */
uint64_t held_origin(struct str meta);

/* Copy what is held of shard `e` into family "hold", unless it is there from
 * a try that did not come to its end. RES_CORRUPT with a line: something held
 * cannot be copied, the shard must stay. The caller holds its lock. */
HN_CHECK enum res held_copy(struct store *s, const struct shard_entry *e,
    const struct holds *holds, const struct held_frames *held,
    struct err *err);

#endif
