/* hanaper archive import: mbox files, Maildirs, single messages. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sysexits.h>
#include <unistd.h>

#include "archive/io.h"
#include "cli/importer.h"
#include "mail/mbox.h"

#define USAGE                                                          \
	"import " ARCHIVE_PLACE_USAGE "\n"                             \
	"       [--form mboxrd|mboxo|mbox|eml] [--aside DIR] [--again]\n" \
	"       SOURCE ..."

#define CHUNK 65536
#define MAX_DEPTH 16

enum form { FORM_AUTO, FORM_RD, FORM_O, FORM_PLAIN, FORM_EML };

struct import {
	struct archive_place place;
	struct importer im;
	enum form form;
	bool again, terminal;
	int status;        /* the worst that did not end it */
	/* of the source being read */
	const char *source; /* its absolute path, or "-" */
	int fd;
	uint64_t size, at;
	int64_t mtime_us;
	struct import_item *item;
	bool preamble;     /* what stands before the first From_ line */
	uint64_t begin;
	int failed;        /* ends the import */
};

static const struct option options[] = {
	ARCHIVE_PLACE_LONG,
	{ "again", no_argument, NULL, 'a' },
	{ "aside", required_argument, NULL, 'A' },
	{ "form", required_argument, NULL, 'f' },
	{ NULL, 0, NULL, 0 },
};

static int
set_form(struct import *x, const char *name)
{
	static const char *const names[] = { "", "mboxrd", "mboxo", "mbox",
		"eml" };
	for (int i = 1; i < 5; i++)
		if (strcmp(name, names[i]) == 0) {
			x->form = (enum form)i;
			return EX_OK;
		}
	return cli_fail(EX_USAGE,
	    "--form %s: use mboxrd, mboxo, mbox or eml", name);
}

static int
parse_options(struct import *x, int argc, char **argv)
{
	int c, status;
	while ((c = getopt_long(argc, argv, ARCHIVE_PLACE_SHORT, options,
		    NULL)) != -1) {
		status = EX_OK;
		if (archive_place_option(&x->place, c, optarg, &status))
			;
		else if (c == 'a')
			x->again = true;
		else if (c == 'A')
			x->im.aside = optarg;
		else if (c == 'f')
			status = set_form(x, optarg);
		else
			return cli_usage("archive", USAGE);
		if (status != EX_OK)
			return status;
	}
	return optind < argc ? EX_OK : cli_usage("archive", USAGE);
}

static void
progress(const struct import *x)
{
	if (!x->terminal)
		return;
	fprintf(stderr, "\r\033[K%s: %" PRIu64 "%%, %" PRIu64 " imported",
	    x->source, x->size > 0 ? x->at * 100 / x->size : 100,
	    x->im.imported);
}

static void
progress_done(const struct import *x)
{
	if (x->terminal)
		fputs("\r\033[K", stderr);
}

/* A source that cannot be read does not keep the others out. */
static void
cannot_read(struct import *x, const char *path)
{
	progress_done(x);
	x->status = cli_fail(EX_NOINPUT, "%s: %s", path, strerror(errno));
}

/* --- messages of a source -------------------------------------------------- */

static enum res
failed(struct import *x, int status)
{
	x->failed = status;
	return RES_AGAIN; /* ends the reading */
}

static enum res
begin_message(void *context, struct str from, uint64_t offset)
{
	struct import *x = context;
	int64_t s;
	x->begin = offset;
	x->preamble = from.ptr == NULL;
	if (x->preamble)
		return RES_OK;
	struct import_item *it = importer_item(&x->im);
	x->item = it;
	if (it == NULL)
		return failed(x, cli_fail(EX_TEMPFAIL, "out of memory"));
	it->source = x->source;
	it->fd = strcmp(x->source, "-") == 0 ? x->fd : -1;
	it->offset = offset;
	it->sender = arena_dup(x->im.batch, mbox_from_sender(from));
	it->fallback_us = x->mtime_us;
	if (mbox_from_date(from, &s) == RES_OK && s > 0)
		it->fallback_us = s * 1000000;
	return RES_OK;
}

static void
message_data(void *context, const char *bytes, size_t len)
{
	struct import *x = context;
	if (!x->preamble)
		importer_push(x->item, bytes, len);
}

static int
take_message(struct import *x, uint64_t end)
{
	const char *bad = NULL;
	if (x->preamble)
		bad = "no From line before it";
	else if (x->item->bytes == 0)
		bad = "an empty message";
	if (bad != NULL) {
		progress_done(x);
		return importer_set_aside(
		    &x->im, x->source, x->fd, x->begin, end, bad);
	}
	x->item->end = end;
	return importer_item_end(&x->im, x->item);
}

static int
flush(struct import *x, bool remember, uint64_t upto)
{
	int status = importer_flush(&x->im);
	if (status == EX_OK && remember)
		status = importer_remember(&x->im, x->source, x->fd, upto);
	progress(x);
	return status;
}

static enum res
end_message(void *context, uint64_t offset)
{
	struct import *x = context;
	int status = take_message(x, offset);
	x->at = offset;
	if (status == EX_OK && importer_batch_full(&x->im))
		status = flush(x, strcmp(x->source, "-") != 0, offset);
	return status == EX_OK ? RES_OK : failed(x, status);
}

/* The file from `at` into `out`; the first error of reading or of `out`. */
static int
read_into(struct import *x, uint64_t at, struct sink *out)
{
	static char bytes[CHUNK];
	int status = EX_OK;
	while (x->failed == EX_OK) {
		ssize_t n = pread(x->fd, bytes, sizeof bytes, (off_t)at);
		if (n < 0) {
			status = cli_fail(EX_IOERR, "%s: at %" PRIu64 ": %s",
			    x->source, at, strerror(errno));
			break;
		}
		if (n == 0)
			break;
		sink_push(out, bytes, (size_t)n);
		at += (uint64_t)n;
	}
	if (status != EX_OK) {
		x->failed = status; /* a message cut off is not taken */
		return status;
	}
	enum res r = sink_finish(out);
	if (x->failed != EX_OK)
		return x->failed;
	return r == RES_OK ? EX_OK : cli_fail(EX_TEMPFAIL, "%s: %s",
	    x->source, res_text(r));
}

static int
import_mbox(struct import *x)
{
	static const struct mbox_ops ops = { begin_message, message_data,
		end_message };
	static const enum mbox_form forms[] = { MBOX_RD, MBOX_RD, MBOX_O,
		MBOX_PLAIN };
	bool named = strcmp(x->source, "-") != 0;
	uint64_t from = 0;
	if (named && !x->again)
		from = importer_recall(&x->im, x->source, x->fd);
	if (from > 0) {
		progress_done(x);
		fprintf(stderr, "hanaper: %s: going on at %" PRIu64 "\n",
		    x->source, from);
	}
	struct arena *a = arena_new(0);
	struct mbox *m = a != NULL ?
	    mbox_new(a, forms[x->form], from, &ops, x) : NULL;
	int status = m != NULL ? read_into(x, from, mbox_sink(m)) :
				 cli_fail(EX_TEMPFAIL, "out of memory");
	arena_free(&a);
	if (status == EX_OK)
		status = flush(x, named, x->at > from ? x->at : from);
	return status;
}

struct whole_file {
	struct sink sink;
	struct import *x;
};

static void
whole_push(struct sink *s, const char *bytes, size_t len)
{
	message_data(((struct whole_file *)s)->x, bytes, len);
}

static enum res
whole_finish(struct sink *s)
{
	(void)s;
	return RES_OK;
}

static int
import_eml(struct import *x)
{
	struct whole_file f = { { whole_push, whole_finish }, x };
	if (begin_message(x, STR(""), 0) != RES_OK)
		return x->failed;
	/* until the batch is written */
	x->item->source = arena_cstr(x->im.batch, str_c(x->source));
	if (x->item->source == NULL)
		return cli_fail(EX_TEMPFAIL, "out of memory");
	int status = read_into(x, 0, &f.sink);
	if (status == EX_OK)
		status = take_message(x, x->size);
	x->at = x->size;
	/* the standard input is closed when we leave */
	if (status == EX_OK && (importer_batch_full(&x->im) ||
	    strcmp(x->source, "-") == 0))
		status = flush(x, false, 0);
	return status;
}

/* --- sources --------------------------------------------------------------- */

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
		cannot_read(x, source);
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
		cannot_read(x, path);
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
		cannot_read(x, dir);
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

static int
import_source(struct import *x, const char *source)
{
	char path[PATH_MAX];
	struct stat st;
	if (strcmp(source, "-") == 0)
		return import_stdin(x);
	if (realpath(source, path) == NULL || stat(path, &st) != 0) {
		cannot_read(x, source);
		return EX_OK;
	}
	if (!S_ISDIR(st.st_mode))
		return import_file(x, path, x->form);
	if (is_maildir(path))
		return import_maildir(x, path, 0);
	progress_done(x);
	x->status = cli_fail(EX_NOINPUT,
	    "%s: a directory, but no Maildir: there is no cur in it", source);
	return EX_OK;
}

static int
import_all(struct import *x, int argc, char **argv)
{
	int status = importer_lock(&x->im, 30);
	for (int i = optind; i < argc && status == EX_OK; i++) {
		status = import_source(x, argv[i]);
		if (status == EX_OK)
			status = importer_flush(&x->im);
	}
	progress_done(x);
	fprintf(stderr,
	    "hanaper: %" PRIu64 " imported, %" PRIu64 " there already, %"
	    PRIu64 " set aside\n", x->im.imported, x->im.there, x->im.bad);
	if (status != EX_OK)
		return status;
	if (x->status != EX_OK)
		return x->status;
	return x->im.bad > 0 ? EX_DATAERR : EX_OK;
}

int
archive_import_main(int argc, char **argv)
{
	static struct import x = {
		.im = { .turn = -1, .lock = -1, .only = -1 } };
	char aside[PATH_MAX];
	x.terminal = isatty(STDERR_FILENO) != 0;
	int status = parse_options(&x, argc, argv);
	if (status == EX_OK)
		status = importer_place(&x.im, &x.place);
	if (status == EX_OK && x.im.aside == NULL) {
		if (io_path(aside, "%s/aside", x.im.path) != RES_OK)
			status = cli_fail(EX_USAGE, "%s: too long", x.im.path);
		x.im.aside = aside;
	}
	if (status == EX_OK)
		status = importer_open(&x.im, true);
	if (status == EX_OK)
		status = import_all(&x, argc, argv);
	importer_close(&x.im);
	return status;
}
