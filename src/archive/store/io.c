#include "archive/store/io.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <unistd.h>

#define MAX_PARTS 1024 /* IOV_MAX on Linux */

static int
system_open(
    const struct archive_io *io, const char *path, int flags, unsigned mode)
{
	return open(path, flags | O_CLOEXEC, (mode_t)mode);
}

static int
system_close(const struct archive_io *io, int fd)
{
	return close(fd);
}

static ssize_t
system_pread(const struct archive_io *io, int fd, void *bytes, size_t len,
    uint64_t offset)
{
	ssize_t n;
	do
		n = pread(fd, bytes, len, (off_t)offset);
	while (n < 0 && errno == EINTR);
	return n;
}

static ssize_t
system_pwritev(const struct archive_io *io, int fd, const struct iovec *parts,
    int count, uint64_t offset)
{
	ssize_t n;
	do
		n = pwritev(fd, parts, count, (off_t)offset);
	while (n < 0 && errno == EINTR);
	return n;
}

static int
system_fdatasync(const struct archive_io *io, int fd)
{
	return fdatasync(fd);
}

static int
system_fsync(const struct archive_io *io, int fd)
{
	return fsync(fd);
}

static int
system_fsync_dir(const struct archive_io *io, const char *path)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	int r = fsync(fd), error = errno;
	close(fd);
	errno = error;
	return r;
}

static int
system_ftruncate(const struct archive_io *io, int fd, uint64_t len)
{
	return ftruncate(fd, (off_t)len);
}

static int
system_fallocate(
    const struct archive_io *io, int fd, uint64_t offset, uint64_t len)
{
	int r;
	do
		r = fallocate(fd, 0, (off_t)offset, (off_t)len);
	while (r < 0 && errno == EINTR);
	return r;
}

static int
system_rename(const struct archive_io *io, const char *from, const char *to)
{
	return rename(from, to);
}

static int
system_unlink(const struct archive_io *io, const char *path)
{
	return unlink(path);
}

static int
system_mkdir(const struct archive_io *io, const char *path)
{
	return mkdir(path, ARCHIVE_DIR_MODE);
}

static int
system_space(const struct archive_io *io, const char *path, uint64_t *out)
{
	struct statvfs fs;
	if (statvfs(path, &fs) < 0)
		return -1;
	*out = (uint64_t)fs.f_bavail * fs.f_frsize;
	return 0;
}

static int
system_fs_type(const struct archive_io *io, const char *path, uint64_t *out)
{
	struct statfs fs;
	if (statfs(path, &fs) != 0)
		return -1;
	*out = (uint64_t)fs.f_type;
	return 0;
}

const struct archive_io archive_io_system = {
	.open = system_open,
	.close = system_close,
	.pread = system_pread,
	.pwritev = system_pwritev,
	.fdatasync = system_fdatasync,
	.fsync = system_fsync,
	.fsync_dir = system_fsync_dir,
	.ftruncate = system_ftruncate,
	.fallocate = system_fallocate,
	.rename = system_rename,
	.unlink = system_unlink,
	.mkdir = system_mkdir,
	.space = system_space,
	.fs_type = system_fs_type,
};

enum res
io_path(char out[PATH_MAX], const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	int n = vsnprintf(out, PATH_MAX, fmt, ap);
	va_end(ap);
	return n >= 0 && n < PATH_MAX ? RES_OK : RES_LIMIT;
}

enum res
io_error(int error)
{
	switch (error) {
	case ENOSPC:
	case EDQUOT:
	case EROFS:
	case EMFILE:
	case ENFILE:
		return RES_AGAIN;
	case EACCES:
	case EPERM:
		return RES_DENIED;
	case ENOENT:
		return RES_NOTFOUND;
	case EEXIST:
		return RES_EXISTS;
	case ENOMEM:
		return RES_NOMEM;
	default:
		return RES_IO;
	}
}

enum res
io_read_some(const struct archive_io *io, int fd, void *bytes, size_t len,
    uint64_t offset, size_t *out_len)
{
	size_t done = 0;
	while (done < len) {
		ssize_t n = io->pread(
		    io, fd, (char *)bytes + done, len - done, offset + done);
		if (n < 0)
			return io_error(errno);
		if (n == 0)
			break;
		done += (size_t)n;
	}
	*out_len = done;
	return RES_OK;
}

enum res
io_read(const struct archive_io *io, int fd, void *bytes, size_t len,
    uint64_t offset)
{
	size_t n;
	enum res r = io_read_some(io, fd, bytes, len, offset, &n);
	return r == RES_OK && n < len ? RES_CORRUPT : r;
}

/* Pass over `n` written bytes. */
static void
advance(struct iovec **parts, size_t *count, size_t n)
{
	while (*count > 0 && n >= (*parts)->iov_len) {
		n -= (*parts)->iov_len;
		(*parts)++;
		(*count)--;
	}
	if (*count > 0) {
		(*parts)->iov_base = (char *)(*parts)->iov_base + n;
		(*parts)->iov_len -= n;
	}
}

enum res
io_writev(const struct archive_io *io, int fd, struct iovec *parts,
    size_t count, uint64_t offset)
{
	advance(&parts, &count, 0);
	while (count > 0) {
		int some = count > MAX_PARTS ? MAX_PARTS : (int)count;
		ssize_t n = io->pwritev(io, fd, parts, some, offset);
		if (n < 0)
			return io_error(errno);
		if (n == 0)
			return RES_IO; /* no progress, no reason given */
		offset += (size_t)n;
		advance(&parts, &count, (size_t)n);
	}
	return RES_OK;
}

enum res
io_write(const struct archive_io *io, int fd, const void *bytes, size_t len,
    uint64_t offset)
{
	struct iovec part = { (void *)(uintptr_t)bytes, len };
	return io_writev(io, fd, &part, 1, offset);
}

enum res
io_read_file(const char *path, uint64_t max, struct arena *a, struct str *out)
{
	uint64_t size;
	size_t got = 0;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return io_error(errno);
	enum res r = io_size(fd, &size);
	if (r == RES_OK && size > max)
		r = RES_LIMIT;
	char *bytes = r == RES_OK ? arena_alloc_raw(a, (size_t)size + 1) : NULL;
	if (r == RES_OK && bytes == NULL)
		r = RES_NOMEM;
	if (r == RES_OK)
		r = io_read_some(&archive_io_system, fd, bytes, (size_t)size,
		    0, &got);
	close(fd);
	*out = str_of(bytes, got);
	return r;
}

enum res
io_size(int fd, uint64_t *out)
{
	struct stat st;
	if (fstat(fd, &st) < 0)
		return io_error(errno);
	*out = (uint64_t)st.st_size;
	return RES_OK;
}

enum res
io_data_end(
    const struct archive_io *io, int fd, uint64_t from, uint64_t *out)
{
	uint8_t piece[16384];
	uint64_t at = from, end = from;
	for (;;) {
		size_t n;
		off_t data = lseek(fd, (off_t)at, SEEK_DATA);
		if (data < 0 && errno == ENXIO)
			break;
		if (data > 0 && (uint64_t)data > at)
			at = (uint64_t)data;
		enum res r = io_read_some(io, fd, piece, sizeof piece, at, &n);
		if (r != RES_OK)
			return r;
		if (n == 0)
			break;
		size_t last = n;
		while (last > 0 && piece[last - 1] == 0)
			last--;
		if (last > 0)
			end = at + last;
		at += n;
	}
	*out = end;
	return RES_OK;
}

enum res
io_put_file(const struct archive_io *io, const char *dir, const char *name,
    const void *bytes, size_t len)
{
	char path[PATH_MAX], temporary[PATH_MAX];
	enum res r = io_path(path, "%s/%s", dir, name);
	if (r == RES_OK)
		r = io_path(temporary, "%s/.%s.new", dir, name);
	if (r != RES_OK)
		return r;
	int fd = io->open(io, temporary, O_RDWR | O_CREAT | O_TRUNC,
	    ARCHIVE_FILE_MODE);
	if (fd < 0)
		return io_error(errno);
	r = io_write(io, fd, bytes, len, 0);
	if (r == RES_OK && io->fsync(io, fd) < 0)
		r = io_error(errno);
	io->close(io, fd);
	if (r == RES_OK && io->rename(io, temporary, path) < 0)
		r = io_error(errno);
	if (r == RES_OK && io->fsync_dir(io, dir) < 0)
		r = io_error(errno);
	if (r != RES_OK)
		io->unlink(io, temporary);
	return r;
}

enum res
io_make_dir(
    const struct archive_io *io, const char *parent, const char *path)
{
	if (io->mkdir(io, path) < 0 && errno != EEXIST)
		return io_error(errno);
	/* also when it existed: whoever made it may have crashed before */
	if (io->fsync_dir(io, parent) < 0)
		return io_error(errno);
	return RES_OK;
}
