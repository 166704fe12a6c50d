/* Reading all of a store and naming what is wrong (archive.md §6): headers and
 * the chain between them, every frame's tag, number, CRCs and leaf, every
 * body, the tree against each note, the notes' signatures against the keys
 * that the shard names, the keys against the keys before them, what was erased
 * against the intents to erase, and held frames against what they were copied
 * from.
 *
 * Needs no lock. In a shard that is being written, what looks wrong is looked
 * at again before it is said. */
#ifndef ARCHIVE_VERIFY_H
#define ARCHIVE_VERIFY_H

#include "archive/format/note.h"
#include "base/err.h"

struct verify_fault {
	const char *dir;       /* of the shard */
	uint32_t shard;        /* its number; 0: unknown */
	bool has_frame, has_offset;
	uint64_t frame, offset; /* in the segment */
	const char *text;      /* one line, without what is above */
};

struct verify_counts {
	uint64_t shards, frames, messages, erased, notes, faults;
	uint64_t unsigned_frames; /* behind the last note of their shard */
};

struct verify_options {
	void (*fault)(void *context, const struct verify_fault *f);
	/* may be NULL: after each shard, and now and then inside one */
	void (*progress)(
	    void *context, const char *dir, uint64_t done, uint64_t all);
	void *context;
};

/* RES_OK when it was read, whatever was found (counts.faults); else no store
 * could be read, with a line in `err`. */
HN_CHECK enum res verify_store(const char *path,
    const struct verify_options *o, struct err *err,
    struct verify_counts *out);

#endif
