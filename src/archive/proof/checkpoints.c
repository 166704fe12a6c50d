#include "archive/proof/checkpoints.h"

#include <errno.h>
#include <fcntl.h>

enum res
checkpoints_read(const struct archive_io *io, const char *dir,
    struct arena *a, struct str *out)
{
	char path[PATH_MAX];
	uint64_t size;
	size_t len = 0;
	enum res r = io_path(path, "%s/" CHECKPOINTS_FILE, dir);
	if (r != RES_OK)
		return r;
	int fd = io->open(io, path, O_RDONLY, 0);
	if (fd < 0 && errno == ENOENT) {
		*out = STR_EMPTY;
		return RES_OK;
	}
	if (fd < 0)
		return io_error(errno);
	r = io_size(fd, &size);
	if (r == RES_OK && size > CHECKPOINTS_MAX)
		r = RES_LIMIT;
	char *bytes = r == RES_OK ? arena_alloc(a, (size_t)size + 1) : NULL;
	if (r == RES_OK && bytes == NULL)
		r = RES_NOMEM;
	if (r == RES_OK)
		r = io_read_some(io, fd, bytes, (size_t)size, 0, &len);
	io->close(io, fd);
	if (r == RES_OK)
		*out = str_of(bytes, len);
	return r;
}

bool
checkpoints_next(struct str *rest, struct str *out_note)
{
	static const struct str gap = { "\n\n", 2 };
	if (rest->len == 0)
		return false;
	/* the first gap ends the text, the second one the note */
	size_t text = str_find(*rest, gap);
	size_t end = text == SIZE_MAX ? SIZE_MAX :
	    str_find(str_skip(*rest, text + 2), gap);
	if (end == SIZE_MAX) {
		*out_note = *rest;
		*rest = STR_EMPTY;
		return true;
	}
	end += text + 2;
	*out_note = str_sub(*rest, 0, end + 1);
	*rest = str_skip(*rest, end + 2);
	return true;
}

enum res
checkpoints_add(const struct archive_io *io, const char *dir, struct str note)
{
	struct str old;
	struct buf all;
	struct arena *a = arena_new(CHECKPOINTS_MAX + 4096);
	if (a == NULL)
		return RES_NOMEM;
	buf_init(&all, CHECKPOINTS_MAX);
	enum res r = checkpoints_read(io, dir, a, &old);
	if (r == RES_OK) {
		buf_add_str(&all, old);
		buf_add_str(&all, note);
		buf_add_char(&all, '\n');
		r = all.error;
	}
	if (r == RES_OK)
		r = io_put_file(io, dir, CHECKPOINTS_FILE, all.ptr, all.len);
	buf_done(&all);
	arena_free(&a);
	return r;
}
