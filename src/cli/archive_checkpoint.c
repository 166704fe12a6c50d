/* hanaper archive checkpoint: sign now what the archive holds, and print the
 * notes: by the running daemon, or with its keys when it is down. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include "archive/store/store.h"
#include "cli/archive.h"
#include "cli/control.h"
#include "flow/keyfiles.h"
#include "keys/keyring.h"

#define USAGE      "checkpoint [-c CONFIG] [-o NAME=VALUE]"
#define MAX_OUTPUT ((size_t)1 << 20)

struct printed {
	struct buf out;
	unsigned notes, problems;
};

static void
put(struct printed *p, struct str family, struct str note, struct str problem)
{
	if (note.len > 0) {
		buf_add_str(&p->out, note);
		buf_add_char(&p->out, '\n');
		p->notes++;
		return;
	}
	p->problems++;
	cli_fail(EX_TEMPFAIL, "archive family %.*s: not signed: %.*s",
	    STR_ARG(family), STR_ARG(problem));
}

static void
told(void *context, const char *family, enum res r, struct str note)
{
	put(context, str_c(family), r == RES_OK ? note : STR_EMPTY,
	    str_c(res_text(r)));
}

static void
alarm_line(void *context, const char *line)
{
	(void)context;
	fprintf(stderr, "hanaper: %s\n", line);
}

/* Keys are read as whoever we are, the store is written as its owner. */
static int
sign_here(const struct config *c, struct arena *a, struct printed *p)
{
	struct err err = { "" };
	struct keydir keys;
	struct signer *signer = NULL;
	struct store *store = NULL;
	char *dir = arena_cstr(a, c->archive_dir);
	enum res r = dir != NULL ? keyfiles_open_notes(c, a, &err, &keys) :
				   RES_NOMEM;
	if (r == RES_OK && keys.count == 0) {
		err_set(&err, "%.*s: no key to sign with; make one with: "
		    "hanaper archive key --new", STR_ARG(c->archive_keys));
		r = RES_NOTFOUND;
	}
	if (r == RES_OK)
		r = keyring_from_keydir(&keys, &err, &signer);
	if (r != RES_OK)
		return cli_fail(cli_status(r), "%s",
		    err.text[0] != '\0' ? err.text : res_text(r));
	int status = cli_become_owner(dir);
	if (status == EX_OK) {
		const struct store_options o = { .path = dir,
			.roll_bytes = c->archive_roll_size,
			.reserve_bytes = c->archive_reserve,
			.signer = signer,
			.clock = CLOCK_SYSTEM,
			.alarm = alarm_line };
		r = access(dir, F_OK) == 0 ? store_open(&o, &err, &store) :
					     RES_NOTFOUND;
		if (r != RES_OK)
			status = cli_fail(cli_status(r), "%s: %s", dir,
			    err.text[0] != '\0' ? err.text : res_text(r));
	}
	if (store != NULL) {
		(void)store_checkpoint(store, told, p);
		(void)store_checkpoint_left(store, told, p);
	}
	store_close(&store);
	signer_free(&signer);
	return status;
}

static int
sign(const struct config *c, struct arena *a, struct printed *p)
{
	struct buf request;
	struct control_answer answer = { .count = 0 };
	struct err err = { "" };
	control_begin(&request, "checkpoint");
	enum res r = control_call(
	    c->state_dir, &request, CONTROL_LONG_US, a, &err, &answer);
	if (r == RES_NOTFOUND && err.text[0] == '\0')
		return sign_here(c, a, p);
	if (r != RES_OK)
		return cli_fail(cli_status(r), "%s",
		    err.text[0] != '\0' ? err.text : res_text(r));
	for (size_t i = 0; i < answer.count; i++)
		put(p, fields_get(&answer.records[i], "family"),
		    fields_get(&answer.records[i], "note"),
		    fields_get(&answer.records[i], "problem"));
	return EX_OK;
}

int
archive_checkpoint_main(int argc, char **argv)
{
	struct cli_settings settings = { .path = NULL };
	struct printed p = { .notes = 0 };
	int c, status = EX_OSERR;
	while ((c = getopt(argc, argv, "c:o:")) != -1) {
		if (c == 'c')
			settings.path = optarg;
		else if (c != 'o' || !cli_settings_add(&settings, optarg))
			return cli_usage("archive", USAGE);
	}
	if (optind != argc)
		return cli_usage("archive", USAGE);
	struct config *config = cli_settings_load(&settings, &status);
	struct arena *a = arena_new(0);
	buf_init(&p.out, MAX_OUTPUT);
	if (config != NULL && a != NULL)
		status = sign(config, a, &p);
	arena_free(&a);
	config_unref(&config);
	if (status != EX_OK) {
		buf_done(&p.out);
		return status;
	}
	if (p.notes == 0 && p.problems == 0)
		status = cli_fail(1, "nothing was signed: the archive is "
		    "empty, or the daemon has no key (hanaper archive key)");
	int printed = archive_print(&p.out);
	if (p.problems > 0)
		status = EX_TEMPFAIL;
	return printed != EX_OK ? printed : status;
}
