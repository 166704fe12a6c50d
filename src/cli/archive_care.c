/* hanaper archive stats, reindex. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sysexits.h>

#include "base/clock.h"
#include "base/json.h"
#include "cli/archive.h"
#include "cli/progress.h"

#define STATS_USAGE   "stats " ARCHIVE_PLACE_USAGE " [--json]"
#define REINDEX_USAGE "reindex " ARCHIVE_PLACE_USAGE

#define MAX_OUTPUT ((size_t)64 << 20)

static const struct option options[] = {
	ARCHIVE_PLACE_LONG,
	{ "json", no_argument, NULL, 'j' },
	{ NULL, 0, NULL, 0 },
};

static int
parse_options(struct archive_place *p, bool *json, int argc, char **argv,
    const char *usage)
{
	int c, status;
	while ((c = getopt_long(argc, argv, ARCHIVE_PLACE_SHORT, options,
		    NULL)) != -1) {
		if (archive_place_option(p, c, optarg, &status)) {
			if (status != EX_OK)
				return status;
		} else if (c == 'j' && json != NULL) {
			*json = true;
		} else {
			return cli_usage("archive", usage);
		}
	}
	return optind == argc ? EX_OK : cli_usage("archive", usage);
}

static void
put_json(struct buf *b, const struct archive_shard_stats *s)
{
	struct json j;
	struct buf time;
	json_init(&j, b);
	json_open(&j, '{');
	json_key_int(&j, "shard", s->number);
	json_key_str(&j, "family", s->family);
	json_key_str(&j, "period", s->period);
	json_key_str(&j, "dir", s->dir);
	json_key_bool(&j, "online", s->status == RES_OK);
	json_key_int(&j, "messages", (int64_t)s->messages);
	json_key_int(&j, "deliveries", (int64_t)s->deliveries);
	json_key_int(&j, "unindexed", (int64_t)s->unapplied);
	json_key_int(&j, "segment_bytes", (int64_t)s->segment_bytes);
	json_key_int(&j, "index_bytes", (int64_t)s->index_bytes);
	if (s->min_time_us <= s->max_time_us) {
		buf_init(&time, 64);
		clock_format_us(&time, s->min_time_us);
		json_key_str(&j, "oldest", buf_str(&time));
		buf_reset(&time);
		clock_format_us(&time, s->max_time_us);
		json_key_str(&j, "newest", buf_str(&time));
		buf_done(&time);
	}
	json_close(&j, '}');
	buf_add_char(b, '\n');
}

static void
put_text(struct buf *b, const struct archive_shard_stats *s)
{
	buf_addf(b, "%-12.*s %.*s  shard %-4" PRIu32, STR_ARG(s->family),
	    STR_ARG(s->period), s->number);
	if (s->status != RES_OK) {
		buf_addf(b, " OFFLINE: %s",
		    s->why.len > 0 ? "" : res_text(s->status));
		archive_put_safe(b, s->why);
	} else {
		buf_addf(b,
		    " %" PRIu64 " message%s, %" PRIu64 " un-indexed, %.1f MB "
		    "+ index %.1f MB",
		    s->messages, s->messages == 1 ? "" : "s", s->unapplied,
		    (double)s->segment_bytes / 1048576,
		    (double)s->index_bytes / 1048576);
	}
	buf_add_char(b, '\n');
}

static int
print_stats(struct archive_reader *r, struct arena *a, bool json)
{
	struct archive_shard_stats *list;
	struct err err = { "" };
	size_t count;
	bool whole = true;
	struct buf b;
	enum res res = archive_stats(r, a, &err, &list, &count);
	if (res != RES_OK)
		return cli_fail(cli_status(res), "%s",
		    err.text[0] != '\0' ? err.text : res_text(res));
	buf_init(&b, MAX_OUTPUT);
	for (size_t i = 0; i < count; i++) {
		whole = whole && list[i].status == RES_OK;
		if (json)
			put_json(&b, &list[i]);
		else
			put_text(&b, &list[i]);
	}
	int status = archive_print(&b);
	return status == EX_OK && !whole ? 1 : status;
}

int
archive_stats_main(int argc, char **argv)
{
	struct archive_place place = { .dir = NULL };
	bool json = false;
	int status = parse_options(&place, &json, argc, argv, STATS_USAGE);
	if (status != EX_OK)
		return status;
	struct arena *a = arena_new(0);
	if (a == NULL)
		return cli_fail(EX_OSERR, "out of memory");
	struct archive_reader *r = archive_place_open(&place, a, &status);
	if (r != NULL)
		status = print_stats(r, a, json);
	archive_reader_close(&r);
	arena_free(&a);
	return status;
}

static void
show_progress(void *context, struct str dir, uint64_t done, uint64_t all)
{
	progress_show(context, dir, done, all, PROGRESS_FRAMES, STR_EMPTY);
}

int
archive_reindex_main(int argc, char **argv)
{
	struct archive_place place = { .dir = NULL };
	struct err err = { "" };
	struct progress progress;
	int status = parse_options(&place, NULL, argc, argv, REINDEX_USAGE);
	if (status != EX_OK)
		return status;
	struct arena *a = arena_new(0);
	if (a == NULL)
		return cli_fail(EX_OSERR, "out of memory");
	struct archive_reader *r = archive_place_open(&place, a, &status);
	if (r != NULL)
		status = cli_become_owner(archive_reader_path(r));
	if (r != NULL && status == EX_OK) {
		progress_init(&progress);
		enum res res = archive_reindex(
		    r, show_progress, &progress, &err);
		progress_clear(&progress);
		if (res != RES_OK)
			status = cli_fail(cli_status(res), "%s",
			    err.text[0] != '\0' ? err.text : res_text(res));
	}
	archive_reader_close(&r);
	arena_free(&a);
	return status;
}
