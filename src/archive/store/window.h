/* Views of a file's bytes, read ahead while it goes on behind the last one.
 * What was read stays as it was: a file that somebody writes is looked at
 * again after window_drop. One thread at a time. */
#ifndef ARCHIVE_WINDOW_H
#define ARCHIVE_WINDOW_H

#include <stdbool.h>
#include <stdint.h>

#include "archive/store/io.h"
#include "base/err.h"
#include "base/str.h"

#define WINDOW_LARGE 262144

struct window {
	const struct archive_io *io;
	int fd; /* put there by the owner, closed by window_done; -1: none */
	/* bytes [at, at + len) of the file */
	uint8_t *bytes;
	uint64_t at;
	size_t len;
	bool from_cache; /* the last view needed no reading */
	/* one block larger than the window */
	uint8_t *large;
	size_t large_cap;
};

/* window_done is due even when it failed. */
HN_CHECK enum res window_init(struct window *w, const struct archive_io *io);
void window_done(struct window *w);
/* Read anew, whatever is asked for next. */
void window_drop(struct window *w);

/* `len` bytes at `offset`, valid until the next view of the same kind (up to
 * WINDOW_LARGE, or more). Fewer than asked for only at the end of the file. */
HN_CHECK enum res window_view(
    struct window *w, uint64_t offset, size_t len, struct str *out);
/* The next offset at or behind `offset` where bytes were ever written: space
 * reserved by fallocate is passed over at once. UINT64_MAX: none. */
uint64_t window_next_data(const struct window *w, uint64_t offset);
/* Nothing but zeros from `offset` to the end? */
HN_CHECK enum res window_zeros_to_end(
    struct window *w, uint64_t offset, bool *out);
bool window_all_zero(struct str s);

#endif
