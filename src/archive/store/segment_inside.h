/* What the parts of the segment reader know of each other: walking over frames
 * (segment_reader.c), what they hold (segment_content.c), what that was packed
 * with (segment_dictionary.c). */
#ifndef ARCHIVE_SEGMENT_INSIDE_H
#define ARCHIVE_SEGMENT_INSIDE_H

#include <limits.h>

#include "archive/format/compress.h"
#include "archive/store/segment_reader.h"
#include "archive/store/window.h"

#define SEGMENT_LOAD_MEMORY ((size_t)20 << 20)

struct segment_mark {
	uint64_t number, offset;
};

/* What frames were packed with. */
struct segment_dictionary {
	uint32_t number;                   /* as frames name it */
	struct unpack_dictionary *body;    /* NULL: not to be had */
	struct unpack_dictionary *records; /* NULL: the same serves them */
};

struct segment_reader {
	const struct archive_io *io;
	char dir[PATH_MAX];
	struct shard_header shard;
	enum segment_trust trust;
	uint64_t known_size;
	struct window window; /* on the file */
	struct unpacker *unpacker;
	struct segment_mark *marks;
	size_t mark_count, mark_cap;
	struct segment_mark last; /* the frame last looked at; offset 0: none */
	struct segment_dictionary dictionaries[SEGMENT_MAX_DICTIONARIES];
	size_t dictionary_count;
};

/* The dictionary of block `b` of a frame (NULL: none), kept by the reader;
 * also that it cannot be had, so that it is not looked for again for each
 * frame. */
HN_CHECK enum res segment_dictionary(struct segment_reader *r,
    const struct segment_frame *f, enum frame_block b, struct err *err,
    const struct unpack_dictionary **out);
void segment_dictionary_done(struct segment_dictionary *d);

#endif
