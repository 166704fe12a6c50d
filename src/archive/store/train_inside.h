/* What the parts of training know of each other: what is shared (train.c),
 * which of it is taken (train_pick.c), and where it stands (train_order.c). */
#ifndef ARCHIVE_TRAIN_INSIDE_H
#define ARCHIVE_TRAIN_INSIDE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/codec.h"
#include "base/res.h"
#include "base/str.h"

/* Behind each sample and each string: a byte no text has. */
#define TRAIN_END '\xff'

struct train_shared {
	const char *text; /* a whole string of ENDs behind it */
	size_t len;
	/* Of each byte: length of the longest shared string, 0 where no piece
	 * begins. Becomes less while picking. */
	uint8_t *longest;
};

static inline bool
train_is_word(char c)
{
	return ascii_is_alpha(c) || ascii_is_digit(c) || (uint8_t)c >= 0x80;
}
/* Does a new piece, the marks before a word and the word, begin here? */
static inline bool
train_begins(const char *text, size_t at)
{
	return at == 0 || text[at] == TRAIN_END || text[at - 1] == TRAIN_END ||
	    (!train_is_word(text[at]) && train_is_word(text[at - 1]));
}

/* The strings that are worth it, added to `out`. */
HN_CHECK enum res train_pick(const struct train_shared *s, struct buf *out);

/* Bring the strings of a dictionary, an END behind each, into the order in
 * which they are of most use for the samples in `text`. */
HN_CHECK enum res train_order(struct str text, struct buf *content);

#endif
