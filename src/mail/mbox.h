/* Splits an mbox file pushed in chunks into its messages, in bounded memory.
 *
 * A line "From …" begins a message when an empty line or the start of the file
 * stands before it and it ends in a date or is followed by a header field;
 * also without the empty line when both are so. Else it is text that somebody
 * forgot to quote. The empty line before it belongs to the file, not to the
 * message. Line ends are kept as they are. */
#ifndef MAIL_MBOX_H
#define MAIL_MBOX_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/sink.h"
#include "base/str.h"

enum mbox_form {
	MBOX_RD,    /* ">From ", ">>From ", …: one '>' is taken away */
	MBOX_O,     /* only from ">From " */
	MBOX_PLAIN, /* nothing is quoted */
};

#define MBOX_MAX_FROM  1000 /* longer From_ lines are text */
#define MBOX_MAX_QUOTE 16   /* '>' held at once, however many there are */

struct mbox_ops {
	/* A message begins; its From_ line stands at `offset`. `from` is what
	 * follows "From ", without the line end; ptr NULL: the file does not
	 * begin with a From_ line, and this is what stands before the first. */
	enum res (*begin)(void *context, struct str from, uint64_t offset);
	void (*data)(void *context, const char *bytes, size_t len);
	/* It ends; the next one's From_ line would stand at `offset`. */
	enum res (*end)(void *context, uint64_t offset);
};

struct mbox;

/* `offset`: where in the file the first byte pushed stands, the start of the
 * file or of a From_ line. NULL without memory. */
struct mbox *mbox_new(struct arena *a, enum mbox_form form, uint64_t offset,
    const struct mbox_ops *ops, void *context);
/* finish gives the first error of begin or end; after it nothing is called. */
struct sink *mbox_sink(struct mbox *m);

/* Our exports end a From_ line so when the message's last line has no end:
 * the one that stands in the file is not the message's. */
#define MBOX_OPEN_END " unterminated"
bool mbox_from_open_end(struct str from);
/* The date of a From_ line, seconds since 1970. RES_SYNTAX: none. */
HN_CHECK enum res mbox_from_date(struct str from, int64_t *out_s);
/* Its address, empty when it is none. */
struct str mbox_from_sender(struct str from);

#endif
