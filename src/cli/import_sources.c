/* Where messages are brought in from. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sysexits.h>
#include <unistd.h>

#include "archive/store/io.h"
#include "base/clock.h"
#include "base/codec.h"
#include "cli/import.h"
#include "cli/manifest.h"

#define CHUNK 65536
#define MAX_DEPTH 16

static int
import_open(struct import *x, const char *source, int fd, enum form form)
{
	char start[5];
	struct stat st;
	enum form asked = x->form;
	x->source = source;
	x->fd = fd;
	x->at = 0;
	if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
		errno = EINVAL;
		import_cannot_read(x, source);
		return EX_OK;
	}
	x->size = (uint64_t)st.st_size;
	x->mtime_us = (int64_t)st.st_mtim.tv_sec * 1000000;
	if (form == FORM_AUTO)
		form = pread(fd, start, sizeof start, 0) == 5 &&
			memcmp(start, "From ", 5) == 0 ? FORM_RD : FORM_EML;
	x->form = form;
	int status = form == FORM_EML ? import_eml(x) : import_mbox(x);
	x->form = asked;
	return status;
}

static int
import_file(struct import *x, const char *path, enum form form)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	if (fd < 0) {
		import_cannot_read(x, path);
		return EX_OK;
	}
	int status = import_open(x, path, fd, form);
	close(fd);
	return status;
}

static int
import_folder(struct import *x, const char *dir)
{
	char path[PATH_MAX];
	int status = EX_OK;
	DIR *d = opendir(dir);
	const struct dirent *e;
	if (d == NULL) {
		import_cannot_read(x, dir);
		return EX_OK;
	}
	while (status == EX_OK && (e = readdir(d)) != NULL)
		if (e->d_name[0] != '.' &&
		    io_path(path, "%s/%s", dir, e->d_name) == RES_OK)
			status = import_file(x, path, FORM_EML);
	closedir(d);
	return status;
}

static bool
is_maildir(const char *dir)
{
	char path[PATH_MAX];
	struct stat st;
	return io_path(path, "%s/cur", dir) == RES_OK &&
	    stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* cur and new, then the folders in it (Maildir++). */
static int
import_maildir(struct import *x, const char *dir, unsigned depth)
{
	char path[PATH_MAX];
	int status = EX_OK;
	if (io_path(path, "%s/cur", dir) == RES_OK)
		status = import_folder(x, path);
	if (status == EX_OK && io_path(path, "%s/new", dir) == RES_OK &&
	    access(path, F_OK) == 0)
		status = import_folder(x, path);
	DIR *d = status == EX_OK && depth < MAX_DEPTH ? opendir(dir) : NULL;
	const struct dirent *e;
	while (d != NULL && status == EX_OK && (e = readdir(d)) != NULL)
		if (strcmp(e->d_name, ".") != 0 &&
		    strcmp(e->d_name, "..") != 0 &&
		    io_path(path, "%s/%s", dir, e->d_name) == RES_OK &&
		    is_maildir(path))
			status = import_maildir(x, path, depth + 1);
	if (d != NULL)
		closedir(d);
	return status;
}

/* --- an export, or what was rescued ---------------------------------------- */

static bool
has_manifest(const char *dir)
{
	char path[PATH_MAX];
	return io_path(path, "%s/MANIFEST", dir) == RES_OK &&
	    access(path, F_OK) == 0;
}

/* A line of a MANIFEST (cli/manifest.h) and the file it names. */
static bool
parse_row(struct str line, struct arena *a, struct import_row *out,
    struct str *out_file)
{
	struct str column[9], rcpt;
	struct import_row row = { .rcpt_count = 0 };
	struct buf hash;
	for (size_t i = 0; i < 9; i++)
		if (!str_split(&line, '\t', &column[i]))
			return false;
	buf_init(&hash, DIGEST_LEN);
	bool good = hex_decode(column[1], &hash) == RES_OK &&
	    hash.len == DIGEST_LEN &&
	    clock_parse_us(column[7], &row.time_us) == RES_OK;
	if (good)
		memcpy(row.sha256, hash.ptr, DIGEST_LEN);
	buf_done(&hash);
	size_t cap = 1;
	for (size_t i = 0; i < column[8].len; i++)
		cap += column[8].ptr[i] == ' ';
	row.sender = column[5];
	row.rcpts = arena_array(a, cap, sizeof *row.rcpts);
	if (!good || row.rcpts == NULL)
		return false;
	while (column[8].len > 0 && str_split(&column[8], ' ', &rcpt))
		row.rcpts[row.rcpt_count++] = rcpt;
	*out = row;
	*out_file = column[3];
	/* nothing outside the folder */
	return out_file->len > 0 && out_file->ptr[0] != '/' &&
	    str_find(*out_file, STR("..")) == SIZE_MAX &&
	    str_chr(*out_file, '\0') == SIZE_MAX;
}

static int
import_row(struct import *x, const char *dir, struct str line)
{
	char path[PATH_MAX];
	struct import_row row;
	struct str file;
	struct arena *a = arena_new(0);
	if (a == NULL)
		return cli_fail(EX_TEMPFAIL, "out of memory");
	if (!parse_row(line, a, &row, &file) ||
	    io_path(path, "%s/%.*s", dir, STR_ARG(file)) != RES_OK) {
		progress_clear(&x->progress);
		x->status = cli_fail(EX_DATAERR,
		    "%s/MANIFEST: a line that is none of ours", dir);
		arena_free(&a);
		return EX_OK;
	}
	x->row = &row;
	int status = import_file(x, path, FORM_EML);
	x->row = NULL;
	arena_free(&a);
	return status;
}

/* Each message with its envelope and its time of then, if its bytes are those
 * of then. */
static int
import_manifest(struct import *x, const char *dir)
{
	char path[PATH_MAX], *line = NULL;
	size_t cap = 0;
	ssize_t n;
	int status = EX_OK;
	FILE *f = io_path(path, "%s/MANIFEST", dir) == RES_OK ?
	    fopen(path, "rb") : NULL;
	if (f == NULL) {
		import_cannot_read(x, path);
		return EX_OK;
	}
	while (status == EX_OK && (n = getline(&line, &cap, f)) > 0) {
		if (line[n - 1] == '\n')
			n--;
		status = import_row(x, dir, str_of(line, (size_t)n));
	}
	if (ferror(f))
		import_cannot_read(x, path);
	free(line);
	fclose(f);
	return status;
}

/* --- the rest -------------------------------------------------------------- */

/* The standard input in a file, so that bad messages can be read again. */
static int
import_stdin(struct import *x)
{
	static char bytes[CHUNK];
	char path[PATH_MAX];
	uint64_t at = 0;
	int fd = -1;
	if (io_path(path, "%s/import/stdin.XXXXXX", x->im.path) == RES_OK)
		fd = mkstemp(path);
	if (fd < 0)
		return cli_fail(EX_TEMPFAIL, "%s: %s", path, strerror(errno));
	(void)unlink(path);
	enum res r = RES_OK;
	ssize_t n = 0;
	while (r == RES_OK) {
		n = read(STDIN_FILENO, bytes, sizeof bytes);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		r = io_write(&archive_io_system, fd, bytes, (size_t)n, at);
		at += (uint64_t)n;
	}
	int status;
	if (n < 0)
		status = cli_fail(EX_IOERR, "standard input: %s",
		    strerror(errno));
	else if (r != RES_OK)
		status = cli_fail(EX_TEMPFAIL, "%s: %s", path, res_text(r));
	else
		status = import_open(x, "-", fd, x->form);
	close(fd);
	return status;
}

int
import_source(struct import *x, const char *source)
{
	char path[PATH_MAX];
	struct stat st;
	if (strcmp(source, "-") == 0)
		return import_stdin(x);
	if (realpath(source, path) == NULL || stat(path, &st) != 0) {
		import_cannot_read(x, source);
		return EX_OK;
	}
	if (!S_ISDIR(st.st_mode))
		return import_file(x, path, x->form);
	/* a Maildir may have been used since, and its files renamed */
	if (is_maildir(path))
		return import_maildir(x, path, 0);
	if (has_manifest(path))
		return import_manifest(x, path);
	progress_clear(&x->progress);
	x->status = cli_fail(EX_NOINPUT,
	    "%s: a directory, but neither a Maildir nor an export: there is "
	    "no cur and no MANIFEST in it; name the files themselves", source);
	return EX_OK;
}
