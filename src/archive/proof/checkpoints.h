/* The file `checkpoints` of a shard: every note that was signed over its
 * tree, oldest first, each followed by an empty line. Its text can be
 * published as it is. The file is always replaced as a whole, so a crash
 * leaves no part of a note: what cannot be read is damage. */
#ifndef ARCHIVE_CHECKPOINTS_H
#define ARCHIVE_CHECKPOINTS_H

#include "archive/format/note.h"
#include "archive/store/io.h"
#include "base/arena.h"

#define CHECKPOINTS_FILE "checkpoints"
/* Some 20,000 notes: one each hour for two years. */
#define CHECKPOINTS_MAX ((size_t)8 << 20)

/* The whole file, in `a`; empty when there is none. RES_LIMIT: larger than
 * we ever write. */
HN_CHECK enum res checkpoints_read(const struct archive_io *io,
    const char *dir, struct arena *a, struct str *out);
/* Cut the next note off; false at the end. What is no note comes as one piece
 * up to where the next may begin. */
bool checkpoints_next(struct str *rest, struct str *out_note);
/* Append a note, durably. RES_LIMIT: the file is full. */
HN_CHECK enum res checkpoints_add(
    const struct archive_io *io, const char *dir, struct str note);

#endif
