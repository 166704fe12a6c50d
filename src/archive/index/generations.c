#include "archive/index/generations.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "archive/store/io.h"
#include "base/codec.h"
#include "base/str.h"

/* Generations are numbered from 1; more are never made. */
#define MAX_GENERATION 1000000

/* "index.g12.db" → 12; 0: another file. */
static unsigned
generation_of(const char *name)
{
	struct str s = str_c(name);
	uint64_t n;
	if (!str_starts(s, STR("index.g")) || !str_ends(s, STR(".db")))
		return 0;
	s = str_sub(s, 7, s.len - 10);
	if (str_to_u64(s, MAX_GENERATION, &n) != RES_OK)
		return 0;
	return (unsigned)n;
}

static enum res
generation_path(const char *dir, unsigned number, char *out, size_t max)
{
	int n = snprintf(out, max, "%s/index.g%u.db", dir, number);
	return n > 0 && (size_t)n < max ? RES_OK : RES_LIMIT;
}

enum res
index_newest(const char *dir, char *out_path, size_t max, unsigned *out_number)
{
	unsigned newest = 0;
	*out_number = 0;
	DIR *d = opendir(dir);
	if (d == NULL)
		return errno == ENOENT ? RES_NOTFOUND : io_error(errno);
	for (struct dirent *e = readdir(d); e != NULL; e = readdir(d)) {
		unsigned n = generation_of(e->d_name);
		if (n > newest)
			newest = n;
	}
	closedir(d);
	*out_number = newest;
	if (newest == 0)
		return RES_NOTFOUND;
	return generation_path(dir, newest, out_path, max);
}

void
generation_remove(const char *path)
{
	static const char *const suffixes[] = { "", "-wal", "-shm",
		"-journal" };
	char name[PATH_MAX];
	for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++)
		if (io_path(name, "%s%s", path, suffixes[i]) == RES_OK)
			(void)unlink(name);
}

enum res
generation_next(const char *dir, char *out_path, size_t max, unsigned *out)
{
	char newest[PATH_MAX];
	unsigned number = 0;
	enum res r = index_newest(dir, newest, sizeof newest, &number);
	if (r != RES_OK && r != RES_NOTFOUND)
		return r;
	if (number == MAX_GENERATION)
		return RES_LIMIT;
	*out = number + 1;
	return generation_path(dir, number + 1, out_path, max);
}

void
generation_remove_others(const char *dir, unsigned number)
{
	char path[PATH_MAX];
	DIR *d = opendir(dir);
	if (d == NULL)
		return;
	for (struct dirent *e = readdir(d); e != NULL; e = readdir(d)) {
		unsigned n = generation_of(e->d_name);
		if (n > 0 && n < number &&
		    generation_path(dir, n, path, sizeof path) == RES_OK)
			generation_remove(path);
	}
	closedir(d);
	generation_drop(dir, GENERATION_BUILDING);
	generation_drop(dir, GENERATION_NEW);
	generation_drop(dir, GENERATION_WORK);
}

void
generation_drop(const char *dir, const char *name)
{
	char path[PATH_MAX];
	if (io_path(path, "%s/%s", dir, name) == RES_OK)
		generation_remove(path);
}

bool
generation_exists(const char *dir, const char *name)
{
	char path[PATH_MAX];
	struct stat st;
	return io_path(path, "%s/%s", dir, name) == RES_OK &&
	    stat(path, &st) == 0;
}

static enum res
sync_path(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return io_error(errno);
	enum res r = fsync(fd) == 0 ? RES_OK : io_error(errno);
	close(fd);
	return r;
}

static enum res
install(const char *dir, const char *name)
{
	char from[PATH_MAX], to[PATH_MAX];
	unsigned number = 0;
	enum res r = io_path(from, "%s/%s", dir, name);
	if (r == RES_OK)
		r = generation_next(dir, to, sizeof to, &number);
	if (r == RES_OK)
		r = sync_path(from);
	if (r == RES_OK && rename(from, to) != 0)
		r = io_error(errno);
	if (r == RES_OK)
		r = sync_path(dir);
	if (r != RES_OK)
		return r;
	generation_remove_others(dir, number);
	return sync_path(dir);
}

enum res
generation_install(const char *dir, const char *name, struct err *err)
{
	enum res r = install(dir, name);
	if (r != RES_OK)
		err_set(err, "%s: the new index: %s", dir, res_text(r));
	return r;
}
