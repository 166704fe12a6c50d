/* How far a shard of a backup has come: lines of `name value` in a file beside
 * what was copied. */
#ifndef ARCHIVE_BACKUP_STATE_H
#define ARCHIVE_BACKUP_STATE_H

#include "archive/format/merkle.h"
#include "archive/store/io.h"

#define BACKUP_STATE "backup" /* the file in each shard of a backup */

struct backup_state {
	uint64_t bytes, frames; /* copied and verified; 0 bytes: nothing yet */
	uint64_t last;          /* offset of the last frame; 0: none */
	struct merkle tree;
	bool holes;             /* damage: the tree is not complete */
};

HN_CHECK enum res backup_state_write(const struct archive_io *io,
    const char *dir, const struct backup_state *s);
/* The text of the file. RES_CORRUPT. */
HN_CHECK enum res backup_state_parse(
    struct str text, struct backup_state *out);
/* RES_NOTFOUND: no file; RES_CORRUPT. */
HN_CHECK enum res backup_state_read(
    const char *dir, struct backup_state *out);

#endif
