/* hanaper archive export: messages as files, byte for byte. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sysexits.h>
#include <time.h>
#include <unistd.h>

#include "archive/search/query.h"
#include "cli/each.h"
#include "cli/export_proofs.h"
#include "cli/manifest.h"
#include "mail/mbox.h"

#define USAGE                                                            \
	"export " ARCHIVE_PLACE_USAGE "\n"                               \
	"       (--to DIR | --maildir DIR | --mbox FILE) [--unrecorded]\n" \
	"       QUERY ..."

enum export_form { EXPORT_NONE, EXPORT_EML, EXPORT_MAILDIR, EXPORT_MBOX };

struct export {
	struct archive_place place;
	enum export_form form;
	const char *to;
	struct archive_reader *reader;
	FILE *mbox, *manifest; /* manifest NULL: mbox to standard output */
	struct export_proofs proofs;
	uint64_t written, failed;
};

static const struct option options[] = {
	ARCHIVE_READ_LONG,
	{ "to", required_argument, NULL, 't' },
	{ "eml", no_argument, NULL, 'e' }, /* what --to does anyway */
	{ "maildir", required_argument, NULL, 'm' },
	{ "mbox", required_argument, NULL, 'b' },
	{ NULL, 0, NULL, 0 },
};

static int
set_form(struct export *x, enum export_form form, const char *to)
{
	if (x->form != EXPORT_NONE)
		return cli_fail(
		    EX_USAGE, "only one of --to, --maildir and --mbox");
	x->form = form;
	x->to = to;
	return EX_OK;
}

static int
parse_options(struct export *x, int argc, char **argv)
{
	int c, status;
	/* a query has words like -this */
	while ((c = getopt_long(argc, argv, "+" ARCHIVE_PLACE_SHORT, options,
		    NULL)) != -1) {
		if (!archive_place_option(&x->place, c, optarg, &status)) {
			status = EX_OK;
			if (c == 't')
				status = set_form(x, EXPORT_EML, optarg);
			else if (c == 'm')
				status = set_form(x, EXPORT_MAILDIR, optarg);
			else if (c == 'b')
				status = set_form(x, EXPORT_MBOX, optarg);
			else if (c != 'e')
				return cli_usage("archive", USAGE);
		}
		if (status != EX_OK)
			return status;
	}
	if (x->form == EXPORT_NONE || optind == argc)
		return cli_usage("archive", USAGE);
	return EX_OK;
}

/* --- a sink into a file, with mboxrd quoting when wanted --- */

struct file_sink {
	struct sink sink;
	FILE *file;
	bool mboxrd;
	/* mboxrd: the beginning of a line while it may be ">>>From " */
	bool line_start;
	size_t quotes, matched;
};

static const char from_word[] = "From ";

/* The held beginning of a line: one '>' more when it is a From line. */
static void
release_line(struct file_sink *f, bool is_from)
{
	if (is_from)
		(void)fputc('>', f->file);
	for (size_t i = 0; i < f->quotes; i++)
		(void)fputc('>', f->file);
	(void)fwrite(from_word, 1, f->matched, f->file);
	f->quotes = f->matched = 0;
	f->line_start = false;
}

static void
mboxrd_byte(struct file_sink *f, char c)
{
	if (f->line_start && c == '>' && f->matched == 0) {
		f->quotes++;
		return;
	}
	if (f->line_start && c == from_word[f->matched]) {
		f->matched++;
		if (f->matched == sizeof from_word - 1)
			release_line(f, true);
		return;
	}
	if (f->line_start)
		release_line(f, false);
	(void)fputc(c, f->file);
	f->line_start = c == '\n';
}

static void
file_push(struct sink *sink, const char *bytes, size_t len)
{
	struct file_sink *f = (struct file_sink *)sink;
	if (!f->mboxrd) {
		(void)fwrite(bytes, 1, len, f->file);
		return;
	}
	for (size_t i = 0; i < len; i++)
		mboxrd_byte(f, bytes[i]);
}

static enum res
file_finish(struct sink *sink)
{
	struct file_sink *f = (struct file_sink *)sink;
	if (f->mboxrd && f->line_start)
		release_line(f, false);
	return ferror(f->file) ? RES_IO : RES_OK;
}

/* The message into `file`; its hash for the manifest. */
static enum res
copy_message(struct export *x, struct arena *a, uint64_t id, FILE *file,
    struct err *err, uint8_t hash[DIGEST_LEN])
{
	struct file_sink f = { .sink = { file_push, file_finish },
		.file = file,
		.mboxrd = x->form == EXPORT_MBOX,
		.line_start = true };
	struct sink *both[] = { &f.sink, digest_sink(a, hash) };
	if (both[1] == NULL)
		return RES_NOMEM;
	struct sink *tee = sink_tee(a, both, 2);
	if (tee == NULL)
		return RES_NOMEM;
	enum res r = archive_get_body(x->reader, id, err, tee);
	return r;
}

/* The proof goes into a folder beside it. */
static enum res
put_manifest(struct export *x, const struct archived *m,
    const uint8_t hash[DIGEST_LEN], const char *name, struct err *err)
{
	struct buf id;
	char proof[EXPORT_PROOF_NAME], path[PATH_MAX + EXPORT_PROOF_NAME] = "";
	if (x->manifest == NULL)
		return RES_OK;
	enum res r = export_proof(&x->proofs, m->id, err, proof);
	if (r != RES_OK)
		return r;
	const char *folder = strrchr(x->proofs.dir, '/');
	folder = folder != NULL ? folder + 1 : x->proofs.dir;
	if (proof[0] != '\0')
		snprintf(path, sizeof path, "%s/%s", folder, proof);
	buf_init(&id, 64);
	archive_id_format(&id, m->id);
	const struct manifest_line l = { .id = buf_str(&id),
		.sha256 = hash,
		.bytes = m->bytes,
		.file = str_c(name),
		.meta = m->meta,
		.time_us = m->time_us,
		.proof = path };
	manifest_put(x->manifest, &l);
	buf_done(&id);
	return RES_OK;
}

/* --- one message --- */

/* A file of its own, there whole or not at all. */
static enum res
export_file(struct export *x, struct arena *a, const struct archived *m,
    struct err *err)
{
	char name[256], final[PATH_MAX + 256], temporary[PATH_MAX + 256];
	uint8_t hash[DIGEST_LEN];
	bool maildir = x->form == EXPORT_MAILDIR;
	if (maildir)
		snprintf(name, sizeof name,
		    "cur/%" PRId64 ".M%" PRId64 "P%" PRIu64 "Q%" PRIu64
		    ".hanaper,S=%" PRIu64 ":2,S",
		    m->time_us / 1000000, m->time_us % 1000000, m->id >> 32,
		    m->id & UINT32_MAX, m->bytes);
	else
		snprintf(name, sizeof name, "%" PRIu64 ".%" PRIu64 ".eml",
		    m->id >> 32, m->id & UINT32_MAX);
	if (strlen(x->to) >= PATH_MAX)
		return RES_LIMIT;
	snprintf(final, sizeof final, "%s/%s", x->to, name);
	snprintf(temporary, sizeof temporary, "%s/%s.part%ld", x->to,
	    maildir ? "tmp/hanaper" : ".hanaper", (long)getpid());
	FILE *f = fopen(temporary, "wb");
	if (f == NULL) {
		err_set(err, "%s: %s", temporary, strerror(errno));
		return RES_IO;
	}
	enum res r = copy_message(x, a, m->id, f, err, hash);
	if (fclose(f) != 0 && r == RES_OK)
		r = RES_IO;
	if (r == RES_OK && rename(temporary, final) != 0)
		r = RES_IO;
	if (r == RES_IO)
		err_set(err, "%s: %s", final, strerror(errno));
	if (r != RES_OK)
		(void)unlink(temporary);
	else
		r = put_manifest(x, m, hash, name, err);
	return r;
}

#define MAX_SENDER 500 /* readers give up on very long From_ lines */

static void
put_from_line(struct export *x, const struct archived *m, bool open_end)
{
	struct str sender = record_find(m->meta, META_MAIL_FROM);
	time_t when = (time_t)(m->time_us / 1000000);
	struct tm tm;
	char date[64] = "Thu Jan  1 00:00:00 1970";
	if (sender.len == 0 || sender.len > MAX_SENDER)
		sender = STR("MAILER-DAEMON");
	if (gmtime_r(&when, &tm) != NULL)
		(void)strftime(date, sizeof date, "%a %b %e %H:%M:%S %Y", &tm);
	fputs("From ", x->mbox);
	for (size_t i = 0; i < sender.len; i++)
		fputc((unsigned char)sender.ptr[i] > ' ' ? sender.ptr[i] : '_',
		    x->mbox);
	fprintf(x->mbox, " %s%s\r\n", date, open_end ? MBOX_OPEN_END : "");
}

struct last_sink {
	struct sink sink;
	char last;
};

static void
last_push(struct sink *s, const char *bytes, size_t len)
{
	if (len > 0)
		((struct last_sink *)s)->last = bytes[len - 1];
}

static enum res
last_finish(struct sink *s)
{
	(void)s;
	return RES_OK;
}

/* Read twice: the From_ line tells of the last byte, and nothing is written
 * of a message that turns out damaged. */
static enum res
export_to_mbox(struct export *x, struct arena *a, const struct archived *m,
    struct err *err)
{
	uint8_t hash[DIGEST_LEN];
	struct last_sink last = { { last_push, last_finish }, '\0' };
	enum res r = archive_get_body(x->reader, m->id, err, &last.sink);
	if (r != RES_OK)
		return r;
	bool open_end = last.last != '\n';
	put_from_line(x, m, open_end);
	r = copy_message(x, a, m->id, x->mbox, err, hash);
	/* every message ends with a line end and an empty line */
	fputs(open_end ? "\r\n\r\n" : "\r\n", x->mbox);
	if (r == RES_OK && ferror(x->mbox))
		r = RES_IO;
	const char *name = strrchr(x->to, '/');
	if (r == RES_OK)
		r = put_manifest(
		    x, m, hash, name != NULL ? name + 1 : x->to, err);
	return r;
}

static enum res
export_one(struct export *x, uint64_t id)
{
	struct arena *a = arena_new(0);
	struct archived m;
	struct err err = { "" };
	if (a == NULL)
		return RES_NOMEM;
	enum res r = archive_get(x->reader, a, id, &err, &m);
	if (r == RES_OK && x->form == EXPORT_MBOX)
		r = export_to_mbox(x, a, &m, &err);
	else if (r == RES_OK)
		r = export_file(x, a, &m, &err);
	arena_free(&a);
	if (r == RES_OK) {
		x->written++;
		return r;
	}
	x->failed++;
	fprintf(stderr, "hanaper: %" PRIu64 ".%" PRIu64 ": %s\n", id >> 32,
	    id & UINT32_MAX, err.text[0] != '\0' ? err.text : res_text(r));
	/* a damaged message does not keep the others from being written */
	return r == RES_IO || r == RES_NOMEM ? r : RES_OK;
}

/* --- all of them --- */

/* MANIFEST and proofs/ in the folder; beside an mbox FILE.MANIFEST and
 * FILE.proofs/. */
static int
open_manifest(struct export *x, char joint, const char *mode)
{
	char path[PATH_MAX + 16];
	int n = snprintf(x->proofs.dir, sizeof x->proofs.dir, "%s%cproofs",
	    x->to, joint);
	snprintf(path, sizeof path, "%s%cMANIFEST", x->to, joint);
	if (n < 0 || (size_t)n >= sizeof x->proofs.dir)
		return cli_fail(EX_USAGE, "%s: too long", x->to);
	x->manifest = fopen(path, mode);
	if (x->manifest == NULL)
		return cli_fail(EX_CANTCREAT, "%s: %s", path, strerror(errno));
	return EX_OK;
}

static int
open_output(struct export *x)
{
	char path[PATH_MAX + 16];
	export_proofs_init(&x->proofs, x->reader);
	if (x->form == EXPORT_MBOX) {
		bool standard = strcmp(x->to, "-") == 0;
		x->mbox = standard ? stdout : fopen(x->to, "wbx");
		if (x->mbox == NULL)
			return cli_fail(EX_CANTCREAT, "%s: %s", x->to,
			    strerror(errno));
		return standard ? EX_OK : open_manifest(x, '.', "wbx");
	}
	static const char *const parts[] = { "", "/cur", "/new", "/tmp" };
	size_t count = x->form == EXPORT_MAILDIR ? 4 : 1;
	for (size_t i = 0; i < count; i++) {
		snprintf(path, sizeof path, "%s%s", x->to, parts[i]);
		if (mkdir(path, 0700) != 0 && errno != EEXIST)
			return cli_fail(EX_CANTCREAT, "%s: %s", path,
			    strerror(errno));
	}
	return open_manifest(x, '/', "ab");
}

static int
close_output(struct export *x, int status)
{
	FILE *const files[] = { x->mbox, x->manifest };
	bool bad = false;
	for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
		if (files[i] == NULL || files[i] == stdout)
			continue;
		bad = ferror(files[i]) != 0 || bad;
		bad = fclose(files[i]) != 0 || bad;
	}
	if (bad && status == EX_OK)
		status = cli_fail(EX_IOERR, "%s: write error", x->to);
	return status;
}

static enum res
take_hit(void *context, struct arena *a, const struct search_hit *h)
{
	(void)a;
	return export_one(context, h->id);
}

/* The query alone does not tell what it found then. */
static int
record_page(void *context, const struct search_hit *hits, size_t count)
{
	struct export *x = context;
	uint64_t ids[EACH_PAGE];
	for (size_t i = 0; i < count; i++)
		ids[i] = hits[i].id;
	return archive_event(&x->place, "export",
	    archive_reader_path(x->reader), STR_EMPTY, ids, count);
}

static int
export_all(struct export *x, const struct query *q)
{
	struct search_coverage coverage;
	int status = each_message(
	    x->reader, q, record_page, take_hit, x, &coverage);
	if (status != EX_OK)
		return status;
	archive_say_coverage(&coverage);
	fprintf(stderr, "hanaper: %" PRIu64 " written, %" PRIu64 " failed",
	    x->written, x->failed);
	if (x->manifest != NULL)
		fprintf(stderr, ", %" PRIu64 " with a proof, %" PRIu64
		    " not signed yet", x->proofs.written, x->proofs.lacking);
	fputc('\n', stderr);
	if (x->failed > 0)
		return EX_DATAERR;
	if (!archive_is_complete(&coverage))
		return EX_TEMPFAIL;
	return x->written > 0 ? EX_OK : 1;
}

int
archive_export_main(int argc, char **argv)
{
	struct export x = { .form = EXPORT_NONE };
	int status = parse_options(&x, argc, argv);
	if (status != EX_OK)
		return status;
	struct arena *a = arena_new(0);
	if (a == NULL)
		return cli_fail(EX_OSERR, "out of memory");
	struct query *q = archive_query(a, argc, argv, optind, &status);
	if (q != NULL)
		x.reader = archive_place_open(&x.place, a, &status);
	if (x.reader != NULL)
		status = archive_event(&x.place, "export",
		    archive_reader_path(x.reader), q->text, NULL, 0);
	if (x.reader != NULL && status == EX_OK)
		status = open_output(&x);
	if (x.reader != NULL && status == EX_OK)
		status = export_all(&x, q);
	status = close_output(&x, status);
	export_proofs_done(&x.proofs);
	archive_reader_close(&x.reader);
	arena_free(&a);
	return status;
}
