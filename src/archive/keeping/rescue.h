/* Everything that is whole in one segment, whatever the rest is like: no
 * index, no lock, no header needed. Changes nothing.
 *
 * Frames are believed by the tag of their shard's nonce, so a segment that
 * was mailed to us and stands inside a message is never taken for frames.
 * Where the shard's header is lost and the nonce with it, frames are read one
 * behind the other from the beginning, and the first gap is the end: nothing
 * is looked for in what may be somebody's mail. */
#ifndef ARCHIVE_RESCUE_H
#define ARCHIVE_RESCUE_H

#include "archive/store/segment_reader.h"

struct rescue_ops {
	/* Bytes [from, to) of the segment are of no use; `what` says why. */
	void (*damage)(
	    void *context, uint64_t from, uint64_t to, const char *what);
	/* A frame with a good header. `loaded` is RES_CORRUPT when a block is
	 * damaged: c->state tells which, and the others may be whole. `a` is
	 * freed behind the call. Anything but RES_OK ends the walk. */
	enum res (*frame)(void *context, struct segment_reader *r,
	    struct arena *a, const struct segment_frame *f,
	    const struct segment_content *c, enum res loaded);
};

/* RES_OK: to the end of the file. */
HN_CHECK enum res rescue_walk(struct segment_reader *r,
    const struct rescue_ops *ops, void *context, struct err *err);

/* The system's calls, but what the disk cannot read any more reads as rubbish
 * (and so is found damaged), and the rest is read. Live as long as readers
 * that were given it. */
const struct archive_io *rescue_io(void);

#endif
