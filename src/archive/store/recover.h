/* Finding out what a segment holds after a crash (archive.md §4, steps 2–4):
 * walks all frames and says where the whole ones end, what is damaged and
 * what is only the torn end of a group nobody was told about. Changes
 * nothing; shard.c acts on it. */
#ifndef ARCHIVE_RECOVER_H
#define ARCHIVE_RECOVER_H

#include <stdbool.h>
#include <stdint.h>

#include "archive/format/merkle.h"
#include "archive/keeping/erasures.h"
#include "archive/store/segment_reader.h"

#define RECOVER_MAX_DAMAGE 64 /* ranges kept; more are counted */

struct recover_range {
	uint64_t from, to;
};

/* A dictionary frame. */
struct recover_dictionary {
	uint8_t sha256[32]; /* of the plain dictionary */
	uint64_t number, offset;
};

struct recovery {
	uint64_t end;       /* behind the last whole frame */
	uint64_t file_bytes;
	uint64_t frames;    /* number the next frame gets */
	uint64_t floor;     /* known durable: given or found in a frame */
	struct merkle tree; /* complete unless `holes` */
	/* the tree head over the first `signed_size` frames */
	bool signed_reached;
	uint8_t signed_root[LEAF_HASH_BYTES];
	bool holes;         /* frames whose leaf is lost */
	bool sealed;        /* the last frame is a seal */
	bool torn;          /* something but zeros behind `end`, not damage */
	size_t damage_count;
	struct recover_range damage[RECOVER_MAX_DAMAGE];
	size_t dictionary_count;
	struct recover_dictionary dictionaries[SEGMENT_MAX_DICTIONARIES];
};

/* Told of each message that stays; anything but RES_OK ends the scan with
 * that answer. `note` (may be NULL): of each NOTE and KEY frame and its
 * META. */
struct recover_seen {
	enum res (*message)(
	    void *context, const uint8_t sha256[32], uint64_t offset);
	void *context;
	void (*note)(void *context, const struct segment_frame *f,
	    struct str meta);
	void *note_context;
	/* frames that were signed, so they have been durable; 0: unknown */
	uint64_t signed_size;
};

/* `floor`: durable length known from elsewhere (index, successor); 0 = none.
 * Frames before `checked` get only their header looked at, and so do
 * those in `erased` (may be NULL), which are not told. `seen` may be NULL. RES_UNSUPPORTED: a frame of a later version. */
HN_CHECK enum res recover_scan(struct segment_reader *r, uint64_t floor,
    uint64_t checked, const struct erasures *erased,
    const struct recover_seen *seen, struct recovery *out);

#endif
