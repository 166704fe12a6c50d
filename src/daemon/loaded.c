#include "daemon/loaded.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "flow/keyfiles.h"

#define MAX_ARENA ((size_t)1 << 30) /* the names of 100,000 domains */

static enum res
read_file(const char *path, struct buf *out, struct err *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	enum res r = fd >= 0 ? buf_read(out, fd) : RES_IO;
	if (r != RES_OK)
		err_set(err, "%s: cannot read the configuration: %s", path,
		    r == RES_IO ? strerror(errno) : res_text(r));
	if (fd >= 0)
		close(fd);
	return r;
}

/* Sealed: the milter process gets it and cannot change what a later start of
 * it reads. */
static int
memory_file(struct str text)
{
	int fd = memfd_create("hanaper.conf", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	while (fd >= 0 && text.len > 0) {
		ssize_t n = write(fd, text.ptr, text.len);
		if (n < 0) {
			close(fd);
			return -1;
		}
		text = str_skip(text, (size_t)n);
	}
	if (fd >= 0)
		(void)fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW |
			F_SEAL_WRITE | F_SEAL_SEAL);
	return fd;
}

enum res
loaded_text(struct arena *a, int text_fd, struct str *out)
{
	struct stat st;
	if (fstat(text_fd, &st) != 0 || st.st_size < 0 ||
	    (uint64_t)st.st_size > CONFIG_MAX_FILE)
		return RES_IO;
	size_t size = (size_t)st.st_size;
	char *text = arena_alloc(a, size);
	if (text == NULL)
		return RES_NOMEM;
	for (size_t at = 0; at < size;) {
		ssize_t n = pread(text_fd, text + at, size - at, (off_t)at);
		if (n <= 0)
			return RES_IO;
		at += (size_t)n;
	}
	*out = str_of(text, size);
	return RES_OK;
}

enum res
loaded_read(const char *path, struct err *err, struct loaded **out)
{
	struct buf text;
	buf_init(&text, CONFIG_MAX_FILE);
	struct loaded *l = calloc(1, sizeof *l);
	enum res r = RES_NOMEM;
	if (l == NULL)
		goto out;
	l->text_fd = -1;
	l->arena = arena_new(MAX_ARENA);
	if (l->arena == NULL)
		goto out;
	r = read_file(path, &text, err);
	if (r == RES_OK)
		r = config_from_text(buf_str(&text), path, err, &l->config);
	if (r == RES_OK)
		r = keyfiles_open(l->config, l->arena, err, &l->keys);
	if (r == RES_OK)
		r = keyfiles_open_notes(
		    l->config, l->arena, err, &l->notes);
	if (r == RES_OK) {
		l->signs = l->config->mode != MODE_VERIFY ||
		    l->notes.count > 0;
		l->text_fd = memory_file(buf_str(&text));
		if (l->text_fd < 0)
			r = RES_NOMEM;
	}
	if (r == RES_OK) {
		*out = l;
		l = NULL;
	}
out:
	if (r != RES_OK)
		err_set(err, "%s: %s", path, res_text(r));
	loaded_free(&l);
	buf_done(&text);
	return r;
}

void
loaded_free(struct loaded **lp)
{
	struct loaded *l = *lp;
	*lp = NULL;
	if (l == NULL)
		return;
	if (l->text_fd >= 0)
		close(l->text_fd);
	config_unref(&l->config);
	arena_free(&l->arena);
	free(l);
}
