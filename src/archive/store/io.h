/* Every system call the store makes on its files, as a table: the system's
 * own, or one that injects faults (tests/archive/fault_io.h). Functions
 * behave like the calls they are named after: -1 and errno on failure. They
 * may be called from any thread. */
#ifndef ARCHIVE_IO_H
#define ARCHIVE_IO_H

#include <limits.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "base/arena.h"
#include "base/res.h"
#include "base/str.h"

struct archive_io {
	int (*open)(const struct archive_io *io, const char *path, int flags,
	    unsigned mode);
	int (*close)(const struct archive_io *io, int fd);
	ssize_t (*pread)(const struct archive_io *io, int fd, void *bytes,
	    size_t len, uint64_t offset);
	ssize_t (*pwritev)(const struct archive_io *io, int fd,
	    const struct iovec *parts, int count, uint64_t offset);
	int (*fdatasync)(const struct archive_io *io, int fd);
	int (*fsync)(const struct archive_io *io, int fd);
	/* fsync of a directory named by its path */
	int (*fsync_dir)(const struct archive_io *io, const char *path);
	int (*ftruncate)(const struct archive_io *io, int fd, uint64_t len);
	/* makes the file longer, zeros behind its end */
	int (*fallocate)(const struct archive_io *io, int fd, uint64_t offset,
	    uint64_t len);
	int (*rename)(
	    const struct archive_io *io, const char *from, const char *to);
	int (*unlink)(const struct archive_io *io, const char *path);
	int (*mkdir)(const struct archive_io *io, const char *path);
	/* free bytes for us on the file system of `path` */
	int (*space)(
	    const struct archive_io *io, const char *path, uint64_t *out);
	/* f_type of that file system (statfs) */
	int (*fs_type)(
	    const struct archive_io *io, const char *path, uint64_t *out);
};

/* The system's calls; EINTR is tried again. */
extern const struct archive_io archive_io_system;

/* Files of the store: owner and group read, the owner writes. */
#define ARCHIVE_FILE_MODE 0640
#define ARCHIVE_DIR_MODE  02750

/* All of `len` bytes at `offset`; a short file is RES_CORRUPT. */
HN_CHECK enum res io_read(const struct archive_io *io, int fd, void *bytes,
    size_t len, uint64_t offset);
/* Up to `len` bytes: fewer only at the end of the file. */
HN_CHECK enum res io_read_some(const struct archive_io *io, int fd,
    void *bytes, size_t len, uint64_t offset, size_t *out_len);
/* All of it; RES_AGAIN when there is no space, RES_IO otherwise. */
HN_CHECK enum res io_write(const struct archive_io *io, int fd,
    const void *bytes, size_t len, uint64_t offset);
/* The same for many parts; the array is used up. */
HN_CHECK enum res io_writev(const struct archive_io *io, int fd,
    struct iovec *parts, size_t count, uint64_t offset);
/* A small file whole, in `a`. RES_NOTFOUND; RES_LIMIT: more than `max`. */
HN_CHECK enum res io_read_file(
    const char *path, uint64_t max, struct arena *a, struct str *out);
HN_CHECK enum res io_size(int fd, uint64_t *out);
/* Offset behind the last byte that is not zero at or behind `from`; `from`
 * when there is none. Passes over holes and reserved space at once. */
HN_CHECK enum res io_data_end(
    const struct archive_io *io, int fd, uint64_t from, uint64_t *out);
/* A path by printf's rules; RES_LIMIT when it does not fit. */
HN_CHECK enum res io_path(char out[PATH_MAX], const char *fmt, ...)
    HN_PRINTF(2, 3);
/* What errno means for whoever waits: RES_AGAIN for a full or read-only file
 * system, RES_DENIED, RES_NOTFOUND, RES_EXISTS, RES_NOMEM, else RES_IO. */
enum res io_error(int error);

/* Create `path` with these bytes so that after a crash it is there whole or
 * not at all: temporary name, fsync, rename, fsync of the directory. */
HN_CHECK enum res io_put_file(const struct archive_io *io, const char *dir,
    const char *name, const void *bytes, size_t len);
/* A directory and its parent's entry, durable. Fine when it exists. */
HN_CHECK enum res io_make_dir(
    const struct archive_io *io, const char *parent, const char *path);

#endif
