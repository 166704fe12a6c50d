/* Bytes of strangers made fit for a terminal: control bytes, those of C1 too,
 * and what is no UTF-8 come out as '?', so that no escape sequence reaches
 * it. Any split of the bytes gives the same. */
#ifndef CLI_SAFE_H
#define CLI_SAFE_H

#include <stdbool.h>

#include "base/buf.h"

struct safe {
	bool lines;    /* let LF, CRLF (as LF) and HTAB pass, which is a
	                * blank else */
	unsigned need; /* bytes that belong to the character begun */
	bool held_c2, held_cr;
};
#define SAFE_LINES ((struct safe){ .lines = true })
#define SAFE_WORDS ((struct safe){ .lines = false })

void safe_put(struct safe *s, struct str bytes, struct buf *out);
/* The end: what is held back is no character. */
void safe_end(struct safe *s, struct buf *out);

#endif
