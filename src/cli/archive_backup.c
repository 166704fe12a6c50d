/* hanaper archive backup, restore. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sysexits.h>
#include <unistd.h>

#include "archive/keeping/backup.h"
#include "base/json.h"
#include "cli/archive.h"
#include "cli/progress.h"

#define BACKUP_USAGE  "backup " ARCHIVE_PLACE_USAGE "\n" \
	"       [--prune] [--unrecorded] [--json] --to DIR"
#define RESTORE_USAGE "restore " ARCHIVE_PLACE_USAGE "\n" \
	"       [--no-index] [--json] --from DIR"

#define MAX_LINE 4096

struct job {
	struct archive_place place;
	struct backup_options o;
	const char *other; /* --to or --from */
	bool json, no_index;
	struct progress progress;
};

static const struct option backup_options[] = {
	ARCHIVE_READ_LONG,
	{ "to", required_argument, NULL, 't' },
	{ "prune", no_argument, NULL, 'p' },
	{ "json", no_argument, NULL, 'j' },
	{ NULL, 0, NULL, 0 },
};
static const struct option restore_options[] = {
	ARCHIVE_PLACE_LONG,
	{ "from", required_argument, NULL, 't' },
	{ "no-index", no_argument, NULL, 'n' },
	{ "json", no_argument, NULL, 'j' },
	{ NULL, 0, NULL, 0 },
};

static void
say(void *context, const char *line)
{
	struct job *x = context;
	progress_clear(&x->progress);
	fprintf(stderr, "hanaper: %s\n", line);
}

static void
progress(void *context, const char *shard, uint64_t done, uint64_t bytes)
{
	struct job *x = context;
	progress_show(&x->progress, str_c(shard), done, bytes, PROGRESS_BYTES,
	    STR_EMPTY);
}

/* All mail is read by this. Best effort: a store on a medium that cannot be
 * written is copied all the same. */
static void
write_down(void *context)
{
	struct job *x = context;
	const struct archive_event e = { .action = "backup",
		.query = str_c(x->other) };
	progress_clear(&x->progress);
	if (archive_write_event(&x->place, x->o.from, &e) != EX_OK)
		(void)cli_fail(EX_OK, "that this backup was made is not "
		    "written down");
}

static int
parse_options(struct job *x, int argc, char **argv,
    const struct option *options, const char *usage)
{
	int c, status;
	while ((c = getopt_long(argc, argv, ARCHIVE_PLACE_SHORT, options,
		    NULL)) != -1) {
		status = EX_OK;
		if (archive_place_option(&x->place, c, optarg, &status))
			;
		else if (c == 't')
			x->other = optarg;
		else if (c == 'p')
			x->o.prune = true;
		else if (c == 'n')
			x->no_index = true;
		else if (c == 'j')
			x->json = true;
		else
			return cli_usage("archive", usage);
		if (status != EX_OK)
			return status;
	}
	if (optind != argc || x->other == NULL)
		return cli_usage("archive", usage);
	progress_init(&x->progress);
	x->o.say = say;
	x->o.progress = progress;
	x->o.context = x;
	return EX_OK;
}

static int
put_counts(struct job *x, const struct backup_counts *n)
{
	progress_clear(&x->progress);
	const struct {
		const char *name, *text;
		uint64_t n;
		bool always;
	} rows[] = {
		{ "shards", "shards", n->shards, true },
		{ "changed", "with something new", n->changed, true },
		{ "bytes", "bytes copied and verified", n->bytes, true },
		{ "frames", "frames in them", n->frames, true },
		{ "bodies", "large bodies copied and verified", n->bodies,
		    true },
		{ "damaged", "damaged at the source", n->damaged, false },
		{ "offline", "shards NOT copied", n->offline, false },
		{ "gone", "shards only in the backup", n->gone, false },
		{ "erased", x->o.prune ? "erased in the backup, too" :
		    "erased in the store, but only there", n->erased, false },
		{ "waiting", "bytes not yet known to be durable: the next "
		    "run copies them", n->waiting, false },
	};
	struct buf b;
	struct json j;
	buf_init(&b, MAX_LINE);
	json_init(&j, &b);
	if (x->json)
		json_open(&j, '{');
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		if (x->json)
			json_key_int(&j, rows[i].name, (int64_t)rows[i].n);
		else if (rows[i].always || rows[i].n > 0)
			buf_addf(&b, "%12" PRIu64 " %s\n", rows[i].n,
			    rows[i].text);
	if (x->json) {
		json_close(&j, '}');
		buf_add_char(&b, '\n');
	}
	int status = archive_print(&b);
	if (status == EX_OK && (n->damaged > 0 || n->offline > 0))
		status = 1;
	return status;
}

static int
complain(struct job *x, enum res r, const struct err *err)
{
	progress_clear(&x->progress);
	int status = r == RES_EXISTS ? EX_CANTCREAT :
	    r == RES_DENIED ? EX_TEMPFAIL : cli_status(r);
	return cli_fail(status, "%s",
	    err->text[0] != '\0' ? err->text : res_text(r));
}

int
archive_backup_main(int argc, char **argv)
{
	struct job x = { .json = false };
	struct err err = { "" };
	struct backup_counts counts;
	int status =
	    parse_options(&x, argc, argv, backup_options, BACKUP_USAGE);
	if (status != EX_OK)
		return status;
	struct arena *a = arena_new(0);
	if (a == NULL)
		return cli_fail(EX_OSERR, "out of memory");
	x.o.from = archive_place_path(&x.place, a, &status);
	x.o.to = x.other;
	x.o.before_audit = x.place.unrecorded ? NULL : write_down;
	if (x.o.from != NULL) {
		enum res r = backup_run(&x.o, &err, &counts);
		status = r == RES_OK ? put_counts(&x, &counts) :
				       complain(&x, r, &err);
	}
	arena_free(&a);
	return status;
}

/* --- restore --------------------------------------------------------------- */

/* Files that root made the daemon could not write. */
static int
check_account(const char *place)
{
	char parent[PATH_MAX];
	struct stat st;
	if (geteuid() != 0)
		return EX_OK;
	size_t len = strnlen(place, sizeof parent);
	if (len == sizeof parent)
		return cli_fail(EX_USAGE, "%s: too long", place);
	memcpy(parent, place, len + 1);
	char *slash = strrchr(parent, '/');
	if (slash != NULL)
		slash[slash == parent] = '\0';
	if (stat(slash != NULL ? parent : ".", &st) != 0 || st.st_uid == 0)
		return EX_OK;
	return cli_fail(EX_NOPERM,
	    "%s belongs to the user with the number %lu: run this as that user",
	    parent, (unsigned long)st.st_uid);
}

static void
index_progress(void *context, struct str dir, uint64_t done, uint64_t all)
{
	struct job *x = context;
	progress_show(&x->progress, dir, done, all, PROGRESS_FRAMES,
	    STR("index"));
}

/* What fails here is no loss: the store is there, and searches read it. */
static int
make_index(struct job *x, int status)
{
	struct archive_reader *r = NULL;
	struct err err = { "" };
	enum res res = archive_reader_open(x->o.to, &err, &r);
	if (res == RES_OK)
		res = archive_reindex(r, index_progress, x, &err);
	archive_reader_close(&r);
	progress_clear(&x->progress);
	if (res != RES_OK)
		(void)cli_fail(1, "%s: restored, but not all of it has an "
		    "index: %s; hanaper archive reindex makes it", x->o.to,
		    err.text[0] != '\0' ? err.text : res_text(res));
	return res != RES_OK && status == EX_OK ? 1 : status;
}

int
archive_restore_main(int argc, char **argv)
{
	struct job x = { .json = false };
	struct err err = { "" };
	struct backup_counts counts;
	int status =
	    parse_options(&x, argc, argv, restore_options, RESTORE_USAGE);
	if (status != EX_OK)
		return status;
	struct arena *a = arena_new(0);
	if (a == NULL)
		return cli_fail(EX_OSERR, "out of memory");
	x.o.to = archive_place_path(&x.place, a, &status);
	x.o.from = x.other;
	if (x.o.to != NULL)
		status = check_account(x.o.to);
	if (x.o.to != NULL && status == EX_OK) {
		enum res r = backup_restore(&x.o, &err, &counts);
		if (r != RES_OK)
			status = complain(&x, r, &err);
		else
			status = put_counts(&x, &counts);
		if (r == RES_OK && !x.no_index)
			status = make_index(&x, status);
	}
	arena_free(&a);
	return status;
}
