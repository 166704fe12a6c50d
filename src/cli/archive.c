/* hanaper archive: the subcommands, and what they share. */
#include "cli/archive.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sysexits.h>
#include <time.h>

#include "archive/search/query.h"
#include "base/clock.h"
#include "cli/safe.h"

static const struct command commands[] = {
	{ "add", archive_add_main, "archive one message from standard input" },
	{ "audit", archive_audit_main, "who searched, read, erased, held" },
	{ "backup", archive_backup_main, "copy what is new of the store" },
	{ "checkpoint", archive_checkpoint_main, "sign what is there now" },
	{ "erase", archive_erase_main, "forget messages for good" },
	{ "expire", archive_expire_main, "drop what is older than it is kept" },
	{ "export", archive_export_main, "write messages out byte-exact" },
	{ "hold", archive_hold_main, "keep what matches a query" },
	{ "import", archive_import_main, "bring mbox, Maildir and eml files in" },
	{ "key", archive_key_main, "the keys that sign it" },
	{ "list", archive_list_main, "the newest messages" },
	{ "reconcile", archive_reconcile_main, "the MTA's log against the store" },
	{ "prove", archive_prove_main, "proofs for others, and checking them" },
	{ "reindex", archive_reindex_main, "build the search index anew" },
	{ "rescue", archive_rescue_main, "what is whole of a damaged store" },
	{ "resend", archive_resend_main, "send messages once more" },
	{ "restore", archive_restore_main, "make a store of a backup" },
	{ "search", archive_search_main, "find messages" },
	{ "show", archive_show_main, "show one message" },
	{ "stats", archive_stats_main, "what is in the store" },
	{ "verify", archive_verify_main, "is all there as it was stored" },
	{ "whatif", archive_whatif_main, "judge stored mail by another policy" },
	{ NULL, NULL, NULL },
};

int
cmd_archive(int argc, char **argv)
{
	opterr = 0; /* the usage says it */
	for (const struct command *c = commands; argc > 1 && c->name != NULL;
	    c++)
		if (strcmp(argv[1], c->name) == 0)
			return c->run(argc - 1, argv + 1);
	FILE *out = stderr;
	if (argc > 1 && strcmp(argv[1], "help") == 0)
		out = stdout;
	fputs("usage: hanaper archive COMMAND [ARGUMENT ...]\n\n", out);
	for (const struct command *c = commands; c->name != NULL; c++)
		fprintf(out, "  %-10s %s\n", c->name, c->summary);
	fputs("\nSee hanaper(1), hanaper-search(7).\n", out);
	return out == stdout ? EX_OK : EX_USAGE;
}

bool
archive_place_option(
    struct archive_place *p, int c, const char *value, int *out_status)
{
	*out_status = EX_OK;
	if (c == 'd') {
		p->dir = value;
	} else if (c == 0x100) {
		p->unrecorded = true;
	} else if (c == 'c') {
		p->settings.path = value;
	} else if (c == 'o') {
		if (!cli_settings_add(&p->settings, value))
			*out_status = cli_fail(
			    EX_USAGE, "-o %s: not NAME=VALUE", value);
	} else {
		return false;
	}
	return true;
}

const char *
archive_place_path(
    const struct archive_place *p, struct arena *a, int *out_status)
{
	const char *dir = p->dir;
	*out_status = EX_OK;
	if (dir == NULL) {
		struct config *config =
		    cli_settings_load(&p->settings, out_status);
		if (config == NULL)
			return NULL;
		dir = arena_cstr(a, config->archive_dir);
		config_unref(&config);
	}
	if (dir == NULL)
		*out_status = cli_fail(EX_OSERR, "out of memory");
	return dir;
}

struct archive_reader *
archive_place_open(
    const struct archive_place *p, struct arena *a, int *out_status)
{
	struct err err = { "" };
	struct archive_reader *r = NULL;
	const char *dir = archive_place_path(p, a, out_status);
	if (dir == NULL)
		return NULL;
	enum res res = archive_reader_open(dir, &err, &r);
	if (res == RES_OK)
		return r;
	if (res == RES_NOTFOUND && err.text[0] == '\0')
		*out_status = cli_fail(EX_NOINPUT,
		    "%s: no archive there (--dir or archive_dir name it)", dir);
	else
		*out_status = cli_fail(cli_status(res), "%s",
		    err.text[0] != '\0' ? err.text : res_text(res));
	return NULL;
}

/* More is found than was perhaps meant. */
static void
say_ignored(const struct query *q)
{
	struct buf b;
	buf_init(&b, 4 * QUERY_MAX_TEXT);
	for (size_t i = 0; i < q->ignored_count; i++) {
		buf_add_c(&b, i > 0 ? ", \"" : "\"");
		archive_put_safe(&b, q->ignored[i]);
		buf_add_char(&b, '"');
	}
	if (q->ignored_count > 0 && b.error == RES_OK)
		fprintf(stderr,
		    "hanaper: ignored, no letter or digit in it: %.*s\n",
		    STR_ARG(buf_str(&b)));
	buf_done(&b);
}

struct query *
archive_query(struct arena *a, int argc, char **argv, int from, int *out_status)
{
	struct buf text;
	struct err err = { "" };
	struct query *q = NULL;
	buf_init(&text, 65536);
	for (int i = from; i < argc; i++) {
		if (strncmp(argv[i], "--", 2) == 0) {
			*out_status = cli_fail(EX_USAGE,
			    "%s: options stand before the query", argv[i]);
			buf_done(&text);
			return NULL;
		}
		if (i > from)
			buf_add_char(&text, ' ');
		buf_add_c(&text, argv[i]);
	}
	enum res r = text.error;
	const struct clock clock = CLOCK_SYSTEM;
	if (r == RES_OK)
		r = query_parse(
		    a, buf_str(&text), clock_now_s(&clock), &err, &q);
	buf_done(&text);
	if (r == RES_OK) {
		say_ignored(q);
		return q;
	}
	if (r == RES_LIMIT)
		err_set(&err, "the query is longer than %zu bytes",
		    QUERY_MAX_TEXT);
	*out_status = cli_fail(EX_USAGE, "query: %s",
	    err.text[0] != '\0' ? err.text : res_text(r));
	return NULL;
}

bool
archive_is_complete(const struct search_coverage *c)
{
	return c->offline == 0 && c->unapplied == 0 && !c->incomplete;
}

void
archive_say_coverage(const struct search_coverage *c)
{
	fprintf(stderr, "hanaper: searched %u shard%s, %" PRIu64
	    " message%s, %" PRIu64 " un-indexed", c->shards,
	    c->shards == 1 ? "" : "s", c->messages,
	    c->messages == 1 ? "" : "s", c->unapplied);
	if (c->offline > 0)
		fprintf(stderr, "; %u shard%s NOT searched", c->offline,
		    c->offline == 1 ? "" : "s");
	if (c->damaged > 0)
		fprintf(stderr, "; %" PRIu64 " damaged place%s passed over",
		    c->damaged, c->damaged == 1 ? "" : "s");
	if (c->incomplete)
		fputs("; stopped at the time limit", stderr);
	fputc('\n', stderr);
	if (c->why.text[0] != '\0')
		fprintf(stderr, "hanaper: not searched: %s\n", c->why.text);
	if (c->note.text[0] != '\0')
		fprintf(stderr, "hanaper: %s\n", c->note.text);
}

void
archive_put_safe(struct buf *out, struct str text)
{
	struct safe s = SAFE_WORDS;
	safe_put(&s, text, out);
	safe_end(&s, out);
}

void
archive_json_head(struct json *j, uint64_t id, int64_t time_us)
{
	struct buf text;
	buf_init(&text, 128);
	archive_id_format(&text, id);
	json_key_str(j, "id", buf_str(&text));
	buf_reset(&text);
	clock_format_us(&text, time_us);
	json_key_str(j, "time", buf_str(&text));
	buf_done(&text);
}

int
archive_print(struct buf *b)
{
	int status = EX_OK;
	if (b->error != RES_OK)
		status = cli_fail(cli_status(b->error), "output: %s",
		    res_text(b->error));
	else
		(void)buf_write(b, stdout);
	buf_done(b);
	return status;
}

void
archive_put_time(struct buf *out, int64_t us)
{
	time_t s = (time_t)(us / 1000000);
	struct tm tm;
	char text[64];
	if (gmtime_r(&s, &tm) != NULL &&
	    strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &tm) > 0)
		buf_add_c(out, text);
}
