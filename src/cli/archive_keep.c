/* hanaper archive erase, expire, hold. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sysexits.h>

#include "archive/keeping/holds.h"
#include "base/clock.h"
#include "base/json.h"
#include "cli/archive.h"

#define ERASE_USAGE                                                       \
	"erase " ARCHIVE_PLACE_USAGE "\n"                                 \
	"       --reason TEXT ID ..."
#define EXPIRE_USAGE                                                      \
	"expire " ARCHIVE_PLACE_USAGE " [--plan] [--json]"
#define HOLD_USAGE                                                        \
	"hold add " ARCHIVE_PLACE_USAGE " NAME QUERY ...\n"               \
	"       hold list " ARCHIVE_PLACE_USAGE " [--json]\n"             \
	"       hold release " ARCHIVE_PLACE_USAGE " NAME"

#define MAX_OUTPUT ((size_t)64 << 20)

struct keep {
	struct archive_place place;
	const char *reason;
	bool plan, json;
	struct arena *a;
	const char *dir;
};

static const struct option options[] = {
	ARCHIVE_PLACE_LONG,
	{ "reason", required_argument, NULL, 'r' },
	{ "plan", no_argument, NULL, 'p' },
	{ "json", no_argument, NULL, 'j' },
	{ NULL, 0, NULL, 0 },
};

/* `allowed`: letters of the options above. */
static int
parse_options(struct keep *k, int argc, char **argv, const char *allowed,
    const char *usage)
{
	int c, status;
	while ((c = getopt_long(argc, argv, "+" ARCHIVE_PLACE_SHORT, options,
		    NULL)) != -1) {
		if (archive_place_option(&k->place, c, optarg, &status)) {
			if (status != EX_OK)
				return status;
			continue;
		}
		if (c == '?' || strchr(allowed, c) == NULL)
			return cli_usage("archive", usage);
		if (c == 'r')
			k->reason = optarg;
		else if (c == 'p')
			k->plan = true;
		else
			k->json = true;
	}
	k->a = arena_new(0);
	if (k->a == NULL)
		return cli_fail(EX_OSERR, "out of memory");
	k->dir = archive_place_path(&k->place, k->a, &status);
	return k->dir != NULL ? EX_OK : status;
}

/* --- erase --- */

static int
erase(struct keep *k, int argc, char **argv)
{
	struct buf request;
	struct control_answer answer;
	archive_keeping_begin(&request, "erase", k->dir);
	fields_text(&request, "reason", str_c(k->reason));
	for (int i = optind; i < argc; i++)
		fields_text(&request, "id", str_c(argv[i]));
	int status = archive_keeping(
	    &k->place, "erase", k->dir, &request, k->a, &answer);
	if (status != EX_OK || answer.count != 1)
		return status;
	uint64_t frames = fields_get_number(&answer.records[0], "frames");
	uint64_t before = fields_get_number(&answer.records[0], "before");
	printf("%" PRIu64 " frame%s erased", frames, frames == 1 ? "" : "s");
	if (before > 0)
		printf(", %" PRIu64 " of the messages had been before", before);
	putchar('\n');
	return EX_OK;
}

int
archive_erase_main(int argc, char **argv)
{
	struct keep k = { .plan = false };
	int status = parse_options(&k, argc, argv, "r", ERASE_USAGE);
	if (status == EX_OK && (optind == argc || k.reason == NULL))
		status = cli_usage("archive", ERASE_USAGE);
	if (status == EX_OK)
		status = erase(&k, argc, argv);
	arena_free(&k.a);
	return status;
}

/* --- expire --- */

static void
put_record_json(struct buf *b, struct arena *a, const struct fields *f)
{
	struct json j;
	json_init(&j, b);
	json_open(&j, '{');
	for (size_t i = 0; i < f->count; i++) {
		const struct field_value *v = &f->items[i];
		const char *name = arena_cstr(a, v->name);
		if (name == NULL)
			b->error = RES_NOMEM;
		else if (v->is_number)
			json_key_int(&j, name, (int64_t)v->number);
		else
			json_key_str(&j, name, v->text);
	}
	json_close(&j, '}');
	buf_add_char(b, '\n');
}

static void
put_item(struct buf *b, const struct keep *k, const struct fields *f)
{
	struct str fate = fields_get(f, "fate"), why = fields_get(f, "why");
	uint64_t due_s = fields_get_number(f, "due_s");
	uint64_t held = fields_get_number(f, "held");
	buf_addf(b, "%-8.*s %-12.*s %.*s  shard %-5" PRIu64 " %9.1f MB",
	    STR_ARG(k->plan && str_eq(fate, STR("gone")) ? STR("goes") : fate),
	    STR_ARG(fields_get(f, "family")),
	    STR_ARG(fields_get(f, "period")), fields_get_number(f, "shard"),
	    (double)fields_get_number(f, "bytes") / 1048576);
	if (due_s > 0 && str_eq(fate, STR("later"))) {
		buf_add_c(b, "  after ");
		archive_put_time(b, (int64_t)due_s * 1000000);
	}
	if (held > 0)
		buf_addf(b, "  %" PRIu64 " held", held);
	if (why.len > 0) {
		buf_add_c(b, "  ");
		archive_put_safe(b, why);
	}
	buf_add_char(b, '\n');
}

/* 1: something that is due had to stay. */
static int
put_items(const struct keep *k, const struct control_answer *answer)
{
	struct buf b;
	uint64_t bytes = 0;
	size_t gone = 0;
	bool stays = false;
	buf_init(&b, MAX_OUTPUT);
	for (size_t i = 0; i < answer->count; i++) {
		const struct fields *f = &answer->records[i];
		struct str fate = fields_get(f, "fate");
		stays = stays || str_eq(fate, STR("stays"));
		if (str_eq(fate, STR("gone"))) {
			gone++;
			bytes += fields_get_number(f, "bytes");
		}
		if (k->json)
			put_record_json(&b, k->a, f);
		else
			put_item(&b, k, f);
	}
	if (!k->json)
		buf_addf(&b, "%zu shard%s %s, %.1f MB come back\n", gone,
		    gone == 1 ? "" : "s", k->plan ? "would go" : "gone",
		    (double)bytes / 1048576);
	int status = archive_print(&b);
	return status == EX_OK && stays ? 1 : status;
}

int
archive_expire_main(int argc, char **argv)
{
	struct keep k = { .plan = false };
	struct buf request;
	struct control_answer answer;
	int status = parse_options(&k, argc, argv, "pj", EXPIRE_USAGE);
	if (status == EX_OK && optind != argc)
		status = cli_usage("archive", EXPIRE_USAGE);
	if (status == EX_OK) {
		archive_keeping_begin(&request, "expire", k.dir);
		if (k.plan)
			fields_number(&request, "plan", 1);
		status = archive_keeping(
		    &k.place, "expire", k.dir, &request, k.a, &answer);
	}
	if (status == EX_OK)
		status = put_items(&k, &answer);
	arena_free(&k.a);
	return status;
}

/* --- hold --- */

static int
hold_add(struct keep *k, int argc, char **argv)
{
	struct buf request;
	struct control_answer answer;
	int status = EX_OK;
	if (argc - optind < 2)
		return cli_usage("archive", HOLD_USAGE);
	struct query *q =
	    archive_query(k->a, argc, argv, optind + 1, &status);
	if (q == NULL)
		return status;
	struct buf text;
	buf_init(&text, 65536);
	for (int i = optind + 1; i < argc; i++)
		buf_addf(&text, "%s%s", i > optind + 1 ? " " : "", argv[i]);
	archive_keeping_begin(&request, "hold_add", k->dir);
	fields_text(&request, "name", str_c(argv[optind]));
	fields_text(&request, "query", buf_str(&text));
	buf_done(&text);
	return archive_keeping(
	    &k->place, "hold_add", k->dir, &request, k->a, &answer);
}

static int
hold_release(struct keep *k, int argc, char **argv)
{
	struct buf request;
	struct control_answer answer;
	if (argc - optind != 1)
		return cli_usage("archive", HOLD_USAGE);
	archive_keeping_begin(&request, "hold_release", k->dir);
	fields_text(&request, "name", str_c(argv[optind]));
	return archive_keeping(
	    &k->place, "hold_release", k->dir, &request, k->a, &answer);
}

static void
put_hold(struct buf *b, const struct keep *k, const struct hold *h)
{
	struct json j;
	struct buf time;
	if (!k->json) {
		archive_put_safe(b, h->name);
		buf_add_c(b, "  ");
		archive_put_time(b, h->created_us);
		buf_addf(b, "  %.*s (%" PRIu32 ")\n    ", STR_ARG(h->login),
		    h->uid);
		archive_put_safe(b, h->query);
		buf_add_char(b, '\n');
		return;
	}
	buf_init(&time, 64);
	clock_format_us(&time, h->created_us);
	json_init(&j, b);
	json_open(&j, '{');
	json_key_str(&j, "name", h->name);
	json_key_str(&j, "created", buf_str(&time));
	json_key_int(&j, "uid", h->uid);
	json_key_str(&j, "login", h->login);
	json_key_str(&j, "query", h->query);
	json_close(&j, '}');
	buf_add_char(b, '\n');
	buf_done(&time);
}

static int
hold_list(struct keep *k)
{
	struct holds holds;
	struct err err = { "" };
	struct buf b;
	struct store_identity id;
	enum res r = store_dir_identity(k->dir, &err, &id);
	if (r == RES_OK)
		r = holds_read(k->dir, k->a, &err, &holds);
	if (r != RES_OK)
		return cli_fail(cli_status(r), "%s",
		    err.text[0] != '\0' ? err.text : res_text(r));
	buf_init(&b, MAX_OUTPUT);
	for (size_t i = 0; i < holds.count; i++)
		put_hold(&b, k, &holds.items[i]);
	return archive_print(&b);
}

int
archive_hold_main(int argc, char **argv)
{
	struct keep k = { .plan = false };
	const char *what = argc > 1 ? argv[1] : "";
	bool list = strcmp(what, "list") == 0;
	bool add = strcmp(what, "add") == 0;
	if (!list && !add && strcmp(what, "release") != 0)
		return cli_usage("archive", HOLD_USAGE);
	int status = parse_options(
	    &k, argc - 1, argv + 1, list ? "j" : "", HOLD_USAGE);
	if (status == EX_OK && list && optind != argc - 1)
		status = cli_usage("archive", HOLD_USAGE);
	if (status == EX_OK)
		status = list ? hold_list(&k) :
		    add	      ? hold_add(&k, argc - 1, argv + 1) :
				hold_release(&k, argc - 1, argv + 1);
	arena_free(&k.a);
	return status;
}
