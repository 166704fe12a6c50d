/* hanaper archive verify: is everything there as it was stored? */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include "archive/proof/proof.h"
#include "archive/proof/verify.h"
#include "base/json.h"
#include "cli/archive.h"
#include "cli/progress.h"
#include "cli/as_received.h"

#define USAGE                                                            \
	"verify " ARCHIVE_PLACE_USAGE "\n"                               \
	"       [--as-received] [--unrecorded] [--json] --all | ID ..."

#define MAX_OUTPUT ((size_t)1 << 20)

struct run {
	struct archive_place place;
	bool all, as_received, json;
	struct progress progress;
	uint64_t faults;
};

static const struct option options[] = {
	ARCHIVE_READ_LONG,
	{ "all", no_argument, NULL, 'a' },
	{ "as-received", no_argument, NULL, 'r' },
	{ "json", no_argument, NULL, 'j' },
	{ NULL, 0, NULL, 0 },
};

/* --- the whole store --- */

static void
put_fault_json(struct buf *b, const struct verify_fault *f)
{
	struct json j;
	json_init(&j, b);
	json_open(&j, '{');
	json_key_c(&j, "fault", f->text);
	json_key_int(&j, "shard", f->shard);
	json_key_c(&j, "dir", f->dir);
	if (f->has_frame)
		json_key_int(&j, "frame", (int64_t)f->frame);
	if (f->has_offset)
		json_key_int(&j, "offset", (int64_t)f->offset);
	json_close(&j, '}');
	buf_add_char(b, '\n');
}

static void
put_fault(struct buf *b, const struct verify_fault *f)
{
	archive_put_safe(b, str_c(f->dir));
	if (f->shard != 0)
		buf_addf(b, ": shard %" PRIu32, f->shard);
	if (f->has_frame)
		buf_addf(b, ", frame %" PRIu64, f->frame);
	if (f->has_offset)
		buf_addf(b, " at %" PRIu64, f->offset);
	buf_add_c(b, ": ");
	archive_put_safe(b, str_c(f->text));
	buf_add_char(b, '\n');
}

static void
on_fault(void *context, const struct verify_fault *f)
{
	struct run *run = context;
	struct buf b;
	buf_init(&b, MAX_OUTPUT);
	if (run->json)
		put_fault_json(&b, f);
	else
		put_fault(&b, f);
	progress_clear(&run->progress);
	(void)buf_write(&b, stdout); /* its end is checked */
	buf_done(&b);
}

static void
on_progress(void *context, const char *dir, uint64_t done, uint64_t all)
{
	struct run *run = context;
	progress_show(&run->progress, str_c(dir), done, all, PROGRESS_BYTES,
	    STR_EMPTY);
}

static void
put_counts(struct run *run, const struct verify_counts *n)
{
	progress_clear(&run->progress);
	fprintf(stderr,
	    "hanaper: %" PRIu64 " shards, %" PRIu64 " frames, %" PRIu64
	    " messages, %" PRIu64 " erased, %" PRIu64 " checkpoints; %" PRIu64
	    " frames not signed yet; %" PRIu64 " fault%s\n",
	    n->shards, n->frames, n->messages, n->erased, n->notes,
	    n->unsigned_frames, n->faults, n->faults == 1 ? "" : "s");
}

static int
verify_all(struct run *run, const char *path)
{
	struct err err = { "" };
	struct verify_counts n;
	const struct verify_options o = { .fault = on_fault,
		.progress = on_progress,
		.context = run };
	enum res r = verify_store(path, &o, &err, &n);
	if (r != RES_OK)
		return cli_fail(cli_status(r), "%s",
		    err.text[0] != '\0' ? err.text : res_text(r));
	put_counts(run, &n);
	run->faults += n.faults;
	return EX_OK;
}

/* --- one message --- */

static int
verify_one(struct run *run, struct archive_reader *r, const char *text)
{
	uint64_t id;
	struct err err = { "" };
	struct proof p;
	struct note_head head;
	const struct proof_options o = { .without_envelope = false };
	if (archive_id_parse(str_c(text), &id) != RES_OK)
		return cli_fail(EX_USAGE, "%s: not an id", text);
	struct arena *a = arena_new(0);
	enum res res = a != NULL ?
	    archive_get_body(r, id, &err, sink_null()) : RES_NOMEM;
	bool erased = res == RES_NOTFOUND && err.text[0] == '\0';
	if (res == RES_OK || erased)
		res = proof_make(r, a, id, &o, &err, &p);
	if (res == RES_OK)
		res = proof_check(&p, &err, &head);
	if (res == RES_OK && !p.has_key) {
		err_set(&err, "the note is by a key that the shard does not "
		    "name");
		res = RES_CORRUPT;
	}
	int status = EX_OK;
	if (res == RES_OK) {
		struct buf b;
		buf_init(&b, MAX_OUTPUT);
		buf_addf(&b, "%s: %s, signed ", text,
		    erased ? "erased, its leaf is there" : "whole");
		archive_put_time(&b, head.time_us);
		buf_addf(&b, " with %" PRIu64 " frames\n", head.size);
		status = archive_print(&b);
	} else if (res == RES_AGAIN) {
		printf("%s: %s, not signed yet\n", text,
		    erased ? "erased" : "whole");
	} else if (res == RES_CORRUPT || res == RES_NOTFOUND) {
		printf("%s: %s\n", text,
		    err.text[0] != '\0' ? err.text : res_text(res));
		run->faults++;
	} else {
		status = cli_fail(cli_status(res), "%s: %s", text,
		    err.text[0] != '\0' ? err.text : res_text(res));
	}
	arena_free(&a);
	return status;
}

static int
verify_ids(struct run *run, struct archive_reader *r, char **ids, int count)
{
	int status = EX_OK;
	for (int i = 0; i < count && status == EX_OK; i++) {
		status = verify_one(run, r, ids[i]);
		if (status == EX_OK && run->as_received)
			status = as_received(
			    r, ids[i], run->json, &run->faults);
	}
	return status;
}

/* Afterwards, with what came out: a store must be checked before anything is
 * written to it, and also where nobody can write. */
static void
write_down(const struct run *run, const char *path, char **ids, int count)
{
	char reason[64];
	uint64_t *numbers = NULL;
	if (run->place.unrecorded)
		return;
	snprintf(reason, sizeof reason, "%" PRIu64 " fault%s", run->faults,
	    run->faults == 1 ? "" : "s");
	if (count > 0)
		numbers = calloc((size_t)count, sizeof *numbers);
	struct archive_event e = { .action = "verify",
		.query = run->as_received ? STR("as received") : STR_EMPTY,
		.reason = str_c(reason),
		.ids = numbers };
	for (int i = 0; numbers != NULL && i < count; i++)
		e.id_count += archive_id_parse(str_c(ids[i]),
		    &numbers[e.id_count]) == RES_OK;
	if ((count > 0 && numbers == NULL) ||
	    archive_write_event(&run->place, path, &e) != EX_OK)
		(void)cli_fail(EX_OK, "that this was checked is not written "
		    "down");
	free(numbers);
}

int
archive_verify_main(int argc, char **argv)
{
	struct run run = { .all = false };
	progress_init(&run.progress);
	int c, status;
	while ((c = getopt_long(argc, argv, ARCHIVE_PLACE_SHORT, options,
		    NULL)) != -1) {
		if (archive_place_option(&run.place, c, optarg, &status)) {
			if (status != EX_OK)
				return status;
		} else if (c == 'a') {
			run.all = true;
		} else if (c == 'r') {
			run.as_received = true;
		} else if (c == 'j') {
			run.json = true;
		} else {
			return cli_usage("archive", USAGE);
		}
	}
	if (run.all == (optind < argc))
		return cli_usage("archive", USAGE);
	struct arena *a = arena_new(0);
	if (a == NULL)
		return cli_fail(EX_OSERR, "out of memory");
	struct archive_reader *r = NULL;
	const char *path = archive_place_path(&run.place, a, &status);
	if (path != NULL && run.all)
		status = verify_all(&run, path);
	if (path != NULL && status == EX_OK && (!run.all || run.as_received))
		r = archive_place_open(&run.place, a, &status);
	if (r != NULL && !run.all)
		status = verify_ids(&run, r, argv + optind, argc - optind);
	if (r != NULL && run.all && status == EX_OK)
		status = as_received_all(r, run.json, &run.faults);
	archive_reader_close(&r);
	if (path != NULL && status == EX_OK)
		write_down(&run, path, argv + optind, argc - optind);
	arena_free(&a);
	if (fflush(stdout) != 0)
		return cli_fail(EX_IOERR, "standard output: write error");
	return status == EX_OK && run.faults > 0 ? 1 : status;
}
