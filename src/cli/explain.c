/* hanaper explain: why a message was treated as it was. By decision id or
 * queue id from the decision store, or for a file as if it came now. */
#include <stdio.h>
#include <string.h>
#include <sysexits.h>
#include <time.h>
#include <unistd.h>

#include "archive/state/decisions.h"
#include "cli/offline.h"
#include "flow/explain.h"
#include "flow/trace.h"

#define MAX_TEXT ((size_t)16 << 20)

static const struct option options[] = {
	OFFLINE_LONG,
	{ NULL, 0, NULL, 0 },
};

static int
print_one(struct str trace, struct str evidence)
{
	struct buf out;
	buf_init(&out, MAX_TEXT);
	enum res r = explain_render(trace, evidence, &out);
	(void)buf_write(&out, stdout);
	buf_done(&out);
	return r == RES_OK ? EX_OK :
	    cli_fail(cli_status(r), "the record is damaged: %s", res_text(r));
}

static int
explain_file(struct offline *o, const char *file)
{
	struct record trace, evidence;
	int status = EX_OK;
	const struct decision *d = offline_judge(o, file, &status);
	if (d == NULL)
		return status;
	if (strcmp(d->direction, "out") == 0 && o->env.signer == NULL)
		cli_fail(EX_OK, "nothing is signed here: %s",
		    o->keys_error.text[0] != '\0' ? o->keys_error.text :
						    "mode = verify");
	record_init(&trace, MAX_TEXT);
	record_init(&evidence, MAX_TEXT);
	trace_encode(o->message, &trace);
	trace_evidence(o->message, &evidence);
	status = print_one(buf_str(&trace.buf), buf_str(&evidence.buf));
	record_done(&trace);
	record_done(&evidence);
	return status;
}

/* The one that was just told to the log may not be kept yet. */
static enum res
find(struct str path, struct arena *a, const char *key, struct err *err,
    struct decision_entry **out, size_t *out_count)
{
	const struct timespec wait = { 0, 3 * DECISIONS_GATHER_US * 1000L };
	enum res r =
	    decisions_find(path.ptr, a, str_c(key), err, out, out_count);
	if (r != RES_NOTFOUND)
		return r;
	nanosleep(&wait, NULL);
	return decisions_find(path.ptr, a, str_c(key), err, out, out_count);
}

static int
explain_kept(struct offline *o, const char *key)
{
	struct err err = { "" };
	struct decision_entry *found = NULL;
	size_t count = 0;
	int status = EX_OK;
	struct config *config = cli_settings_load(&o->settings, &status);
	struct arena *a = arena_new(0);
	if (config == NULL || a == NULL) {
		arena_free(&a);
		return config == NULL ? status : EX_OSERR;
	}
	struct str path = arena_printf(
	    a, "%.*s/" DECISIONS_FILE, STR_ARG(config->state_dir));
	enum res r = find(path, a, key, &err, &found, &count);
	if (r != RES_OK)
		status = cli_fail(cli_status(r), "%s", err.text[0] != '\0' ?
		    err.text : "no such decision in the last days: give the "
		    "id of a log line or reply, a queue id, or a file");
	for (size_t i = 0; r == RES_OK && i < count; i++) {
		if (i > 0)
			puts("\n--------------------------------------------\n");
		status = print_one(found[i].trace, found[i].evidence);
	}
	config_unref(&config);
	arena_free(&a);
	return status;
}

int
cmd_explain(int argc, char **argv)
{
	struct offline o = { .mode = MODE_AUTO };
	int c, status;
	while ((c = getopt_long(argc, argv, OFFLINE_SHORT, options, NULL)) != -1)
		if (!offline_option(&o, c, optarg))
			return cli_usage("explain", OFFLINE_USAGE
			    " ID|QUEUEID|FILE");
	if (optind + 1 != argc)
		return cli_usage("explain", OFFLINE_USAGE " ID|QUEUEID|FILE");
	const char *what = argv[optind];
	if (strcmp(what, "-") == 0 || access(what, F_OK) == 0) {
		status = offline_prepare(&o);
		if (status == EX_OK)
			status = explain_file(&o, what);
	} else {
		status = explain_kept(&o, what);
	}
	offline_done(&o);
	return status;
}
