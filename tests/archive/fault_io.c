#include "fault_io.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PAGE   4096
#define SECTOR 512

/* A page with its bytes as they are on the disk. */
struct fault_page {
	struct fault_page *next;
	ino_t file;
	uint64_t index;
	bool lost; /* a failed sync dropped it */
	uint8_t before[PAGE];
};

/* A file with its size on the disk and where it is. */
struct fault_size {
	struct fault_size *next;
	ino_t file;
	uint64_t durable;
	char path[PATH_MAX];
};

enum name_kind { NAME_CREATED, NAME_DIR, NAME_RENAMED };

/* A change of names that is not synced. */
struct fault_name {
	struct fault_name *next;
	enum name_kind kind;
	char from[PATH_MAX], path[PATH_MAX];
	char covered[PATH_MAX]; /* link to what a rename replaced; or "" */
};

static struct fault_io *
of(const struct archive_io *io)
{
	return (struct fault_io *)(uintptr_t)io;
}

uint64_t
fault_random(struct fault_io *f, uint64_t below)
{
	f->random ^= f->random << 13;
	f->random ^= f->random >> 7;
	f->random ^= f->random << 17;
	return f->random % below;
}

static void *
must(void *p)
{
	if (p == NULL)
		abort();
	return p;
}

/* Count a call; false when the power is off. The mutex is held. */
static bool
powered(struct fault_io *f)
{
	f->ops++;
	if (f->cut_at == 0 || f->ops < f->cut_at)
		return true;
	errno = EIO;
	return false;
}

static bool
writable(struct fault_io *f)
{
	if (!powered(f))
		return false;
	if (f->read_only)
		errno = EROFS;
	return !f->read_only;
}

static ino_t
inode(int fd)
{
	struct stat st;
	return fstat(fd, &st) == 0 ? st.st_ino : 0;
}

/* --- pages and sizes --- */

static struct fault_size *
find_size(struct fault_io *f, ino_t file)
{
	for (struct fault_size *s = f->sizes; s != NULL; s = s->next)
		if (s->file == file)
			return s;
	return NULL;
}

/* A new file may get the inode of one that is gone. */
static void
forget_file(struct fault_io *f, ino_t file)
{
	struct fault_page **page = &f->pages;
	while (*page != NULL) {
		struct fault_page *p = *page;
		if (p->file != file) {
			page = &p->next;
			continue;
		}
		*page = p->next;
		free(p);
	}
	struct fault_size **size = &f->sizes;
	while (*size != NULL) {
		struct fault_size *s = *size;
		if (s->file != file) {
			size = &s->next;
			continue;
		}
		*size = s->next;
		free(s);
	}
}

static void
track_file(struct fault_io *f, int fd, const char *path)
{
	struct stat st;
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return;
	struct fault_size *s = find_size(f, st.st_ino);
	if (s == NULL) {
		s = must(calloc(1, sizeof *s));
		s->file = st.st_ino;
		s->durable = (uint64_t)st.st_size;
		s->next = f->sizes;
		f->sizes = s;
	}
	snprintf(s->path, sizeof s->path, "%s", path);
}

/* Keep a page as it is, before it changes for the first time. */
static void
save_page(struct fault_io *f, int fd, ino_t file, uint64_t index)
{
	for (struct fault_page *p = f->pages; p != NULL; p = p->next)
		if (p->file == file && p->index == index) {
			p->lost = false; /* written again */
			return;
		}
	struct fault_page *p = must(calloc(1, sizeof *p));
	p->file = file;
	p->index = index;
	ssize_t n = pread(fd, p->before, PAGE, (off_t)(index * PAGE));
	(void)n;
	p->next = f->pages;
	f->pages = p;
}

static void
save_range(struct fault_io *f, int fd, uint64_t from, uint64_t len)
{
	ino_t file = inode(fd);
	if (len == 0)
		return;
	for (uint64_t i = from / PAGE; i <= (from + len - 1) / PAGE; i++)
		save_page(f, fd, file, i);
}

/* A sync that worked makes everything durable but what was lost before. */
static void
synced(struct fault_io *f, int fd)
{
	struct stat st;
	if (fstat(fd, &st) < 0)
		return;
	struct fault_size *s = find_size(f, st.st_ino);
	if (s != NULL)
		s->durable = (uint64_t)st.st_size;
	struct fault_page **at = &f->pages;
	while (*at != NULL) {
		struct fault_page *p = *at;
		if (p->file != st.st_ino || p->lost) {
			at = &p->next;
			continue;
		}
		*at = p->next;
		free(p);
	}
}

/* One that failed: some pages got there, none is tried again. */
static void
sync_lost(struct fault_io *f, int fd)
{
	ino_t file = inode(fd);
	for (struct fault_page *p = f->pages; p != NULL; p = p->next)
		if (p->file == file)
			p->lost = p->lost || fault_random(f, 4) > 0;
}

/* --- names --- */

static void
add_name(struct fault_io *f, enum name_kind kind, const char *from,
    const char *path, const char *covered)
{
	struct fault_name *n = must(calloc(1, sizeof *n));
	n->kind = kind;
	snprintf(n->from, sizeof n->from, "%s", from);
	snprintf(n->path, sizeof n->path, "%s", path);
	snprintf(n->covered, sizeof n->covered, "%s", covered);
	n->next = f->names;
	f->names = n;
}

static bool
is_in(const char *path, const char *dir)
{
	const char *slash = strrchr(path, '/');
	return slash != NULL && strlen(dir) == (size_t)(slash - path) &&
	    memcmp(path, dir, strlen(dir)) == 0;
}

static void
drop_name(struct fault_name **at)
{
	struct fault_name *n = *at;
	if (n->covered[0] != '\0')
		unlink(n->covered);
	*at = n->next;
	free(n);
}

/* The creation of `path` no longer matters. */
static void
forget_created(struct fault_io *f, const char *path)
{
	struct fault_name **at = &f->names;
	while (*at != NULL)
		if ((*at)->kind == NAME_CREATED &&
		    strcmp((*at)->path, path) == 0)
			drop_name(at);
		else
			at = &(*at)->next;
}

static void
names_synced(struct fault_io *f, const char *dir)
{
	struct fault_name **at = &f->names;
	while (*at != NULL) {
		struct fault_name *n = *at;
		if (!is_in(n->path, dir)) {
			at = &n->next;
			continue;
		}
		char from[PATH_MAX];
		snprintf(from, sizeof from, "%s", n->from);
		bool renamed = n->kind == NAME_RENAMED;
		drop_name(at);
		if (renamed) {
			forget_created(f, from);
			at = &f->names; /* the list has changed */
		}
	}
}

/* --- calls --- */

static int
fault_open(
    const struct archive_io *io, const char *path, int flags, unsigned mode)
{
	struct fault_io *f = of(io);
	int fd = -1;
	pthread_mutex_lock(&f->mutex);
	bool create = (flags & O_CREAT) && access(path, F_OK) < 0;
	if (create ? writable(f) : powered(f))
		fd = archive_io_system.open(
		    &archive_io_system, path, flags, mode);
	if (fd >= 0) {
		if (create)
			forget_file(f, inode(fd));
		track_file(f, fd, path);
		if (create)
			add_name(f, NAME_CREATED, "", path, "");
	}
	pthread_mutex_unlock(&f->mutex);
	return fd;
}

static int
fault_close(const struct archive_io *io, int fd)
{
	return close(fd);
}

static ssize_t
fault_pread(const struct archive_io *io, int fd, void *bytes, size_t len,
    uint64_t offset)
{
	struct fault_io *f = of(io);
	ssize_t n = -1;
	pthread_mutex_lock(&f->mutex);
	if (f->cut_at == 0 || f->ops < f->cut_at)
		n = pread(fd, bytes, len, (off_t)offset);
	else
		errno = EIO;
	pthread_mutex_unlock(&f->mutex);
	return n;
}

static uint64_t
parts_len(const struct iovec *parts, int count)
{
	uint64_t len = 0;
	for (int i = 0; i < count; i++)
		len += parts[i].iov_len;
	return len;
}

static ssize_t
write_parts(
    int fd, const struct iovec *parts, int count, uint64_t offset, uint64_t len)
{
	uint64_t done = 0;
	for (int i = 0; i < count && done < len; i++) {
		size_t n = parts[i].iov_len;
		if (n > len - done)
			n = (size_t)(len - done);
		ssize_t w = pwrite(
		    fd, parts[i].iov_base, n, (off_t)(offset + done));
		if (w < 0)
			return -1;
		done += (uint64_t)w;
	}
	return (ssize_t)done;
}

static ssize_t
fault_pwritev(const struct archive_io *io, int fd, const struct iovec *parts,
    int count, uint64_t offset)
{
	struct fault_io *f = of(io);
	ssize_t n = -1;
	pthread_mutex_lock(&f->mutex);
	if (!writable(f))
		goto out;
	uint64_t len = parts_len(parts, count);
	enum fault_kind kind =
	    ++f->writes == f->fail_write ? f->write_kind : FAULT_NONE;
	if (f->full)
		kind = FAULT_NO_SPACE;
	if (kind == FAULT_ERROR) {
		errno = EIO;
		goto out;
	}
	if (kind != FAULT_NONE)
		len /= 2;
	save_range(f, fd, offset, len);
	n = write_parts(fd, parts, count, offset, len);
	if (kind == FAULT_TORN || kind == FAULT_NO_SPACE) {
		n = -1;
		errno = kind == FAULT_TORN ? EIO : ENOSPC;
	}
out:
	pthread_mutex_unlock(&f->mutex);
	return n;
}

static int
sync_file(const struct archive_io *io, int fd)
{
	struct fault_io *f = of(io);
	int r = -1;
	pthread_mutex_lock(&f->mutex);
	if (!powered(f))
		goto out;
	if (++f->syncs == f->fail_sync) {
		sync_lost(f, fd);
		if (f->off_at_failure)
			f->cut_at = f->ops;
		errno = EIO;
		goto out;
	}
	synced(f, fd);
	r = 0;
out:
	pthread_mutex_unlock(&f->mutex);
	return r;
}

static int
fault_fsync_dir(const struct archive_io *io, const char *path)
{
	struct fault_io *f = of(io);
	int r = -1;
	pthread_mutex_lock(&f->mutex);
	if (powered(f)) {
		if (++f->syncs == f->fail_sync) {
			errno = EIO;
		} else {
			names_synced(f, path);
			r = 0;
		}
	}
	pthread_mutex_unlock(&f->mutex);
	return r;
}

static int
fault_ftruncate(const struct archive_io *io, int fd, uint64_t len)
{
	struct fault_io *f = of(io);
	struct stat st;
	int r = -1;
	pthread_mutex_lock(&f->mutex);
	if (writable(f) && fstat(fd, &st) == 0) {
		/* what is cut off may come back */
		off_t at = (off_t)len;
		while ((at = lseek(fd, at, SEEK_DATA)) >= 0) {
			off_t end = lseek(fd, at, SEEK_HOLE);
			save_range(f, fd, (uint64_t)at, (uint64_t)(end - at));
			at = end;
		}
		r = ftruncate(fd, (off_t)len);
	}
	pthread_mutex_unlock(&f->mutex);
	return r;
}

static int
fault_fallocate(
    const struct archive_io *io, int fd, uint64_t offset, uint64_t len)
{
	struct fault_io *f = of(io);
	int r = -1;
	pthread_mutex_lock(&f->mutex);
	if (writable(f)) {
		if (f->full)
			errno = ENOSPC;
		else /* sparse: the test needs no real space */
			r = ftruncate(fd, (off_t)(offset + len));
	}
	pthread_mutex_unlock(&f->mutex);
	return r;
}

static int
fault_rename(const struct archive_io *io, const char *from, const char *to)
{
	struct fault_io *f = of(io);
	static unsigned long number;
	char covered[PATH_MAX] = "";
	struct stat st;
	int r = -1;
	pthread_mutex_lock(&f->mutex);
	if (!writable(f))
		goto out;
	if (access(to, F_OK) == 0 &&
	    snprintf(covered, sizeof covered, "%s.was%lu", to, ++number) <
		PATH_MAX && link(to, covered) < 0)
		covered[0] = '\0';
	struct fault_size *old =
	    stat(to, &st) == 0 ? find_size(f, st.st_ino) : NULL;
	r = rename(from, to);
	if (r == 0) {
		struct fault_size *s = stat(to, &st) == 0 ?
		    find_size(f, st.st_ino) : NULL;
		if (old != NULL)
			snprintf(old->path, sizeof old->path, "%s", covered);
		if (s != NULL)
			snprintf(s->path, sizeof s->path, "%s", to);
		add_name(f, NAME_RENAMED, from, to, covered);
	}
out:
	pthread_mutex_unlock(&f->mutex);
	return r;
}

static int
fault_unlink(const struct archive_io *io, const char *path)
{
	struct fault_io *f = of(io);
	struct stat st;
	int r = -1;
	pthread_mutex_lock(&f->mutex);
	if (writable(f)) {
		struct fault_size *s = stat(path, &st) == 0 ?
		    find_size(f, st.st_ino) : NULL;
		r = unlink(path);
		if (r == 0 && s != NULL)
			s->path[0] = '\0';
		if (r == 0)
			forget_created(f, path);
	}
	pthread_mutex_unlock(&f->mutex);
	return r;
}

static int
fault_mkdir(const struct archive_io *io, const char *path)
{
	struct fault_io *f = of(io);
	int r = -1;
	pthread_mutex_lock(&f->mutex);
	if (writable(f))
		r = archive_io_system.mkdir(&archive_io_system, path);
	if (r == 0)
		add_name(f, NAME_DIR, "", path, "");
	pthread_mutex_unlock(&f->mutex);
	return r;
}

static int
fault_space(const struct archive_io *io, const char *path, uint64_t *out)
{
	struct fault_io *f = of(io);
	pthread_mutex_lock(&f->mutex);
	*out = f->full ? 0 : (uint64_t)1 << 40;
	pthread_mutex_unlock(&f->mutex);
	return 0;
}

static int
fault_fs_type(const struct archive_io *io, const char *path, uint64_t *out)
{
	(void)path;
	*out = of(io)->fs_type;
	return 0;
}

void
fault_init(struct fault_io *f, uint64_t seed)
{
	*f = (struct fault_io){
		.io = {
		    .open = fault_open,
		    .close = fault_close,
		    .pread = fault_pread,
		    .pwritev = fault_pwritev,
		    .fdatasync = sync_file,
		    .fsync = sync_file,
		    .fsync_dir = fault_fsync_dir,
		    .ftruncate = fault_ftruncate,
		    .fallocate = fault_fallocate,
		    .rename = fault_rename,
		    .unlink = fault_unlink,
		    .mkdir = fault_mkdir,
		    .space = fault_space,
		    .fs_type = fault_fs_type,
		},
		.random = seed * 2654435761u + 88172645463325252u,
	};
	pthread_mutex_init(&f->mutex, NULL);
}

void
fault_off(struct fault_io *f)
{
	pthread_mutex_lock(&f->mutex);
	f->cut_at = f->ops;
	pthread_mutex_unlock(&f->mutex);
}

/* --- the disk after a power failure --- */

static void
cut_page(struct fault_io *f, const struct fault_page *p)
{
	const struct fault_size *s = find_size(f, p->file);
	uint8_t now[PAGE] = { 0 };
	if (s == NULL || s->path[0] == '\0')
		return;
	int fd = open(s->path, O_RDWR);
	if (fd < 0)
		return;
	uint64_t choice = fault_random(f, 4);
	size_t from = 0; /* bytes below are the new ones */
	if (!p->lost && choice == 0)
		from = PAGE;
	else if (!p->lost && choice == 1)
		from = SECTOR * (size_t)fault_random(f, PAGE / SECTOR);
	off_t at = (off_t)(p->index * PAGE);
	ssize_t n = pread(fd, now, PAGE, at);
	(void)n;
	memcpy(now + from, p->before + from, PAGE - from);
	n = pwrite(fd, now, PAGE, at);
	(void)n;
	close(fd);
}

static void
undo_name(struct fault_name *n)
{
	switch (n->kind) {
	case NAME_CREATED:
		unlink(n->path);
		break;
	case NAME_DIR:
		rmdir(n->path); /* only when nothing in it stayed */
		break;
	case NAME_RENAMED:
		if (rename(n->path, n->from) == 0 && n->covered[0] != '\0' &&
		    rename(n->covered, n->path) == 0)
			n->covered[0] = '\0';
		break;
	}
}

void
fault_cut(struct fault_io *f)
{
	struct { uint64_t size; } sizes[1024];
	size_t i = 0;
	/* pages first: writing them may make a file longer */
	for (struct fault_size *s = f->sizes; s != NULL && i < 1024;
	     s = s->next) {
		struct stat st;
		uint64_t now = s->durable;
		if (s->path[0] != '\0' && stat(s->path, &st) == 0)
			now = (uint64_t)st.st_size;
		sizes[i++].size = fault_random(f, 2) ? now : s->durable;
	}
	for (struct fault_page *p = f->pages; p != NULL; p = p->next)
		cut_page(f, p);
	i = 0;
	for (struct fault_size *s = f->sizes; s != NULL && i < 1024;
	     s = s->next, i++)
		if (s->path[0] != '\0' &&
		    truncate(s->path, (off_t)sizes[i].size) < 0 &&
		    errno != ENOENT)
			abort();
	/* newest first */
	for (struct fault_name *n = f->names; n != NULL; n = n->next)
		if (fault_random(f, 2))
			undo_name(n);
}

void
fault_done(struct fault_io *f)
{
	while (f->names != NULL)
		drop_name(&f->names);
	while (f->pages != NULL) {
		struct fault_page *p = f->pages;
		f->pages = p->next;
		free(p);
	}
	while (f->sizes != NULL) {
		struct fault_size *s = f->sizes;
		f->sizes = s->next;
		free(s);
	}
	pthread_mutex_destroy(&f->mutex);
}
