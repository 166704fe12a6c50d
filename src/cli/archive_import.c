/* hanaper archive import: mbox files, Maildirs, single messages. */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include "archive/store/io.h"
#include "cli/import.h"
#include "mail/mbox.h"

#define USAGE                                                          \
	"import " ARCHIVE_PLACE_USAGE "\n"                             \
	"       [--form mboxrd|mboxo|mbox|eml] [--aside DIR] [--again]\n" \
	"       SOURCE ..."

#define CHUNK 65536

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
show(struct import *x)
{
	struct buf note;
	buf_init(&note, 64);
	buf_addf(&note, "%" PRIu64 " imported", x->im.imported);
	progress_show(&x->progress, str_c(x->source), x->at, x->size,
	    PROGRESS_BYTES, buf_str(&note));
	buf_done(&note);
}

/* A source that cannot be read does not keep the others out. */
void
import_cannot_read(struct import *x, const char *path)
{
	progress_clear(&x->progress);
	x->status = cli_fail(EX_NOINPUT, "%s: %s", path, strerror(errno));
}

/* --- messages of a source -------------------------------------------------- */

static enum res
failed(struct import *x, int status)
{
	x->failed = status;
	return RES_AGAIN; /* ends the reading */
}

/* The row's texts have to last as long as the batch. */
static bool
take_row(struct import *x, struct import_item *it, const struct import_row *r)
{
	struct arena *a = x->im.batch;
	uint8_t *hash = arena_alloc(a, sizeof r->sha256);
	struct str *rcpts = arena_array(a, r->rcpt_count + 1, sizeof *rcpts);
	it->sender = arena_dup(a, r->sender);
	if (hash == NULL || rcpts == NULL || it->sender.ptr == NULL)
		return false;
	memcpy(hash, r->sha256, sizeof r->sha256);
	for (size_t i = 0; i < r->rcpt_count; i++) {
		rcpts[i] = arena_dup(a, r->rcpts[i]);
		if (rcpts[i].ptr == NULL)
			return false;
	}
	it->expected = hash;
	it->rcpts = rcpts;
	it->rcpt_count = r->rcpt_count;
	it->time_us = r->time_us;
	return true;
}

static enum res
begin_message(void *context, struct str from, uint64_t offset)
{
	struct import *x = context;
	int64_t s;
	x->begin = offset;
	x->preamble = from.ptr == NULL;
	x->open_end = mbox_from_open_end(from);
	x->held_count = 0;
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
	if (x->row != NULL && !take_row(x, it, x->row))
		return failed(x, cli_fail(EX_TEMPFAIL, "out of memory"));
	return RES_OK;
}

/* All but a line end, which is the file's if nothing follows. */
static void
push_open(struct import *x, const char *bytes, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		bool goes_on = x->held_count == 1 && x->held[0] == '\r' &&
		    bytes[i] == '\n';
		if (!goes_on) {
			importer_push(x->item, x->held, x->held_count);
			x->held_count = 0;
		}
		if (goes_on || bytes[i] == '\r' || bytes[i] == '\n')
			x->held[x->held_count++] = bytes[i];
		else
			importer_push(x->item, bytes + i, 1);
	}
}

static void
message_data(void *context, const char *bytes, size_t len)
{
	struct import *x = context;
	if (x->preamble)
		return;
	if (x->open_end)
		push_open(x, bytes, len);
	else
		importer_push(x->item, bytes, len);
}

static int
take_message(struct import *x, uint64_t end)
{
	const char *bad = NULL;
	if (x->preamble)
		bad = "no From line before it";
	else if (x->item->bytes == 0 && !x->open_end)
		bad = "an empty message";
	if (bad != NULL) {
		progress_clear(&x->progress);
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
	show(x);
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

int
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
		progress_clear(&x->progress);
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

int
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

static int
import_all(struct import *x, int argc, char **argv)
{
	int status = importer_lock(&x->im, 30);
	for (int i = optind; i < argc && status == EX_OK; i++)
		status = import_source(x, argv[i]);
	/* files of one message wait for each other: the store would change
	 * months with nearly each of them */
	if (x->im.count > 0) {
		int flushed = importer_flush(&x->im);
		status = status != EX_OK ? status : flushed;
	}
	progress_clear(&x->progress);
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
	progress_init(&x.progress);
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
