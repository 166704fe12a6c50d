/* What the parts of training know of each other: what is shared (train.c) and
 * which of it is taken (train_pick.c). */
#ifndef ARCHIVE_TRAIN_INSIDE_H
#define ARCHIVE_TRAIN_INSIDE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/res.h"

/* Behind each sample and each string: a byte no text has. */
#define TRAIN_END '\xff'

struct train_shared {
	const char *text; /* a whole string of ENDs behind it */
	size_t len;
	uint8_t *longest; /* of each byte: length of the longest shared
			   * string; becomes less while picking */
};

/* Does a new piece, the marks before a word and the word, begin here? */
bool train_begins(const char *text, size_t at);

/* The strings that are worth it, added to `out`. */
HN_CHECK enum res train_pick(const struct train_shared *s, struct buf *out);

#endif
