#include "archive/store/window.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Read ahead: little for a single frame, more when it goes on behind. */
#define WINDOW_SMALL 16384

enum res
window_init(struct window *w, const struct archive_io *io)
{
	*w = (struct window){ .io = io, .fd = -1 };
	w->bytes = malloc(WINDOW_LARGE);
	return w->bytes != NULL ? RES_OK : RES_NOMEM;
}

void
window_done(struct window *w)
{
	if (w->fd >= 0)
		w->io->close(w->io, w->fd);
	w->fd = -1;
	free(w->bytes);
	free(w->large);
	w->bytes = w->large = NULL;
}

void
window_drop(struct window *w)
{
	w->len = 0;
}

static enum res
fill(struct window *w, uint64_t offset, size_t len)
{
	uint64_t end = w->at + w->len;
	bool onward =
	    w->len > 0 && offset > w->at && offset <= end + WINDOW_SMALL;
	size_t want = onward ? WINDOW_LARGE : WINDOW_SMALL;
	if (want < len)
		want = WINDOW_LARGE;
	w->len = 0;
	w->at = offset;
	return io_read_some(w->io, w->fd, w->bytes, want, offset, &w->len);
}

enum res
window_view(struct window *w, uint64_t offset, size_t len, struct str *out)
{
	uint64_t end = w->at + w->len;
	w->from_cache = offset >= w->at && offset <= end && len <= end - offset;
	if (!w->from_cache && len <= WINDOW_LARGE) {
		enum res res = fill(w, offset, len);
		if (res != RES_OK)
			return res;
	}
	if (len <= WINDOW_LARGE) {
		*out = str_sub(str_of(w->bytes, w->len),
		    (size_t)(offset - w->at), len);
		return RES_OK;
	}
	if (w->large_cap < len) {
		free(w->large);
		w->large = malloc(len);
		w->large_cap = w->large != NULL ? len : 0;
		if (w->large == NULL)
			return RES_NOMEM;
	}
	size_t got;
	enum res res = io_read_some(w->io, w->fd, w->large, len, offset, &got);
	if (res == RES_OK)
		*out = str_of(w->large, got);
	return res;
}

bool
window_all_zero(struct str s)
{
	return s.len == 0 ||
	    (s.ptr[0] == 0 && memcmp(s.ptr, s.ptr + 1, s.len - 1) == 0);
}

uint64_t
window_next_data(const struct window *w, uint64_t offset)
{
	off_t at = lseek(w->fd, (off_t)offset, SEEK_DATA);
	if (at >= 0 && (uint64_t)at > offset)
		return (uint64_t)at;
	return at < 0 && errno == ENXIO ? UINT64_MAX : offset;
}

enum res
window_zeros_to_end(struct window *w, uint64_t offset, bool *out)
{
	for (;;) {
		struct str s;
		offset = window_next_data(w, offset);
		if (offset == UINT64_MAX) {
			*out = true;
			return RES_OK;
		}
		enum res res = window_view(w, offset, WINDOW_LARGE, &s);
		if (res != RES_OK)
			return res;
		if (s.len == 0 || !window_all_zero(s)) {
			*out = s.len == 0;
			return RES_OK;
		}
		offset += s.len;
	}
}
