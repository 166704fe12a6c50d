/* hanaper archive audit: the trail of who did what with the archive. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sysexits.h>

#include "archive/keeping/audit.h"
#include "archive/search/query.h"
#include "archive/store/store_dir.h"
#include "base/clock.h"
#include "base/codec.h"
#include "base/json.h"
#include "cli/archive.h"

#define USAGE                                                             \
	"audit " ARCHIVE_PLACE_USAGE "\n"                                 \
	"       [--action ACTION] [--user NAME] [--id ID] [--since DATE]\n" \
	"       [--limit N] [--json]"
#define MAX_OUTPUT ((size_t)256 << 20)
#define MAX_LINES  1000000

struct trail {
	struct archive_place place;
	struct str action, user;
	uint64_t id;         /* 0: whatever */
	int64_t since_us;
	size_t limit;        /* 0: all; else the newest so many */
	bool json;
	/* lines of the newest so far, a ring */
	struct buf *lines;
	size_t count;
	struct buf *out;
};

static const struct option options[] = {
	ARCHIVE_PLACE_LONG,
	{ "action", required_argument, NULL, 'a' },
	{ "user", required_argument, NULL, 'u' },
	{ "id", required_argument, NULL, 'i' },
	{ "since", required_argument, NULL, 's' },
	{ "limit", required_argument, NULL, 'l' },
	{ "json", no_argument, NULL, 'j' },
	{ NULL, 0, NULL, 0 },
};

static int
parse_option(struct trail *t, int c)
{
	const struct clock clock = CLOCK_SYSTEM;
	uint64_t limit;
	int64_t to;
	switch (c) {
	case 'a':
		t->action = str_c(optarg);
		return EX_OK;
	case 'u':
		t->user = str_c(optarg);
		return EX_OK;
	case 'i':
		if (archive_id_parse(str_c(optarg), &t->id) == RES_OK)
			return EX_OK;
		return cli_fail(EX_USAGE, "'%s' is no id", optarg);
	case 's':
		if (query_date(str_c(optarg), clock_now_s(&clock),
			&t->since_us, &to) == RES_OK)
			return EX_OK;
		return cli_fail(EX_USAGE, "--since %s: no date", optarg);
	case 'l':
		if (str_to_u64(str_c(optarg), MAX_LINES, &limit) == RES_OK &&
		    limit > 0) {
			t->limit = (size_t)limit;
			return EX_OK;
		}
		return cli_fail(EX_USAGE, "--limit %s: a number from 1 to %d",
		    optarg, MAX_LINES);
	case 'j':
		t->json = true;
		return EX_OK;
	default:
		return cli_usage("archive", USAGE);
	}
}

/* --- one event --- */

static void
shard_json(struct json *j, struct str value)
{
	struct str number = record_find(value, EVENT_SHARD_NUMBER);
	struct str frames = record_find(value, EVENT_SHARD_FRAMES);
	struct str bytes = record_find(value, EVENT_SHARD_BYTES);
	struct str held = record_find(value, EVENT_SHARD_HELD);
	json_open(j, '{');
	if (number.len == 4)
		json_key_int(
		    j, "shard", get_le32((const uint8_t *)number.ptr));
	json_key_str(j, "family", record_find(value, EVENT_SHARD_FAMILY));
	json_key_str(j, "period", record_find(value, EVENT_SHARD_PERIOD));
	if (frames.len == 8)
		json_key_int(j, "frames",
		    (int64_t)get_le64((const uint8_t *)frames.ptr));
	if (bytes.len == 8)
		json_key_int(j, "bytes",
		    (int64_t)get_le64((const uint8_t *)bytes.ptr));
	if (held.len == 8)
		json_key_int(j, "held",
		    (int64_t)get_le64((const uint8_t *)held.ptr));
	json_close(j, '}');
}

static void
shards_json(struct json *j, struct str meta)
{
	struct record_reader r;
	unsigned tag;
	struct str value;
	bool any = false;
	if (record_open(meta, &r) != RES_OK)
		return;
	while (record_next(&r, &tag, &value)) {
		if (tag != EVENT_SHARD)
			continue;
		if (!any) {
			json_key(j, "shards");
			json_open(j, '[');
		}
		any = true;
		shard_json(j, value);
	}
	if (any)
		json_close(j, ']');
}

static void
put_json(struct buf *b, const struct audit_entry *e)
{
	struct json j;
	struct buf text;
	buf_init(&text, 64);
	json_init(&j, b);
	json_open(&j, '{');
	archive_id_format(&text, e->id);
	json_key_str(&j, "event", buf_str(&text));
	buf_reset(&text);
	clock_format_us(&text, e->time_us);
	json_key_str(&j, "time", buf_str(&text));
	json_key_str(&j, "action", e->event.action);
	json_key_int(&j, "uid", e->event.who.uid);
	json_key_str(&j, "login", e->event.who.login);
	if (e->event.name.len > 0)
		json_key_str(&j, "name", e->event.name);
	if (e->event.query.len > 0)
		json_key_str(&j, "query", e->event.query);
	if (e->event.reason.len > 0)
		json_key_str(&j, "reason", e->event.reason);
	if (e->event.id_count > 0) {
		json_key(&j, "ids");
		json_open(&j, '[');
		for (size_t i = 0; i < e->event.id_count; i++) {
			buf_reset(&text);
			archive_id_format(&text, e->event.ids[i]);
			json_str(&j, buf_str(&text));
		}
		json_close(&j, ']');
	}
	shards_json(&j, e->meta);
	json_close(&j, '}');
	buf_add_char(b, '\n');
	buf_done(&text);
}

static void
put_shards(struct buf *b, struct str meta)
{
	struct record_reader r;
	unsigned tag;
	struct str value;
	if (record_open(meta, &r) != RES_OK)
		return;
	while (record_next(&r, &tag, &value))
		if (tag == EVENT_SHARD)
			buf_addf(b, " %.*s/%.*s",
			    STR_ARG(record_find(value, EVENT_SHARD_FAMILY)),
			    STR_ARG(record_find(value, EVENT_SHARD_PERIOD)));
}

static void
put_text(struct buf *b, const struct audit_entry *e)
{
	archive_put_time(b, e->time_us);
	buf_add_c(b, "  ");
	archive_put_safe(b, e->event.who.login);
	buf_addf(b, " (%" PRIu32 ")  ", e->event.who.uid);
	archive_put_safe(b, e->event.action);
	if (e->event.name.len > 0) {
		buf_add_char(b, ' ');
		archive_put_safe(b, e->event.name);
	}
	for (size_t i = 0; i < e->event.id_count; i++) {
		buf_add_char(b, ' ');
		archive_id_format(b, e->event.ids[i]);
	}
	put_shards(b, e->meta);
	if (e->event.query.len > 0) {
		buf_add_c(b, "  ");
		archive_put_safe(b, e->event.query);
	}
	if (e->event.reason.len > 0) {
		buf_add_c(b, "  because: ");
		archive_put_safe(b, e->event.reason);
	}
	buf_add_char(b, '\n');
}

/* --- all of them --- */

static bool
is_wanted(const struct trail *t, const struct audit_entry *e)
{
	bool has_id = t->id == 0;
	for (size_t i = 0; i < e->event.id_count; i++)
		has_id = has_id || e->event.ids[i] == t->id;
	return has_id && e->time_us >= t->since_us &&
	    (t->action.len == 0 || str_eq(t->action, e->event.action)) &&
	    (t->user.len == 0 || str_eq(t->user, e->event.who.login));
}

static bool
take(void *context, const struct audit_entry *e)
{
	struct trail *t = context;
	if (!is_wanted(t, e))
		return true;
	struct buf *b = t->out;
	if (t->limit > 0) {
		b = &t->lines[t->count % t->limit];
		buf_reset(b);
	}
	t->count++;
	if (t->json)
		put_json(b, e);
	else
		put_text(b, e);
	return b->error == RES_OK;
}

static int
print(struct trail *t, const char *dir)
{
	struct err err = { "" };
	struct buf out;
	uint64_t unreadable = 0;
	buf_init(&out, MAX_OUTPUT);
	t->out = &out;
	enum res r = audit_walk(
	    dir, 0, 0, false, take, t, &unreadable, &err);
	size_t kept = t->count < t->limit ? t->count : t->limit;
	for (size_t i = 0; i < kept; i++) {
		struct buf *b = &t->lines[(t->count - kept + i) % t->limit];
		if (out.error == RES_OK && b->error != RES_OK)
			out.error = b->error;
		buf_add_str(&out, buf_str(b));
	}
	if (r != RES_OK) {
		buf_done(&out);
		return cli_fail(cli_status(r), "%s",
		    err.text[0] != '\0' ? err.text : res_text(r));
	}
	int status = archive_print(&out);
	if (status == EX_OK && unreadable > 0)
		return cli_fail(EX_DATAERR, "%" PRIu64 " places of the trail "
		    "are damaged: events may be missing", unreadable);
	return status;
}

static int
run(struct trail *t)
{
	struct err err = { "" };
	struct store_identity id;
	int status;
	struct arena *a = arena_new((size_t)1 << 30);
	if (a == NULL)
		return cli_fail(EX_OSERR, "out of memory");
	const char *dir = archive_place_path(&t->place, a, &status);
	if (dir != NULL) {
		enum res r = store_dir_identity(dir, &err, &id);
		if (r != RES_OK)
			status = cli_fail(cli_status(r), "%s", err.text);
	}
	if (dir != NULL && status == EX_OK && t->limit > 0) {
		t->lines = arena_array(a, t->limit, sizeof *t->lines);
		if (t->lines == NULL)
			status = cli_fail(EX_OSERR, "out of memory");
	}
	for (size_t i = 0; t->lines != NULL && i < t->limit; i++)
		buf_init(&t->lines[i], MAX_OUTPUT);
	if (dir != NULL && status == EX_OK)
		status = print(t, dir);
	for (size_t i = 0; t->lines != NULL && i < t->limit; i++)
		buf_done(&t->lines[i]);
	arena_free(&a);
	return status;
}

int
archive_audit_main(int argc, char **argv)
{
	struct trail t = { .since_us = INT64_MIN };
	int c, status;
	while ((c = getopt_long(argc, argv, ARCHIVE_PLACE_SHORT, options,
		    NULL)) != -1) {
		if (!archive_place_option(&t.place, c, optarg, &status))
			status = parse_option(&t, c);
		if (status != EX_OK)
			return status;
	}
	return optind == argc ? run(&t) : cli_usage("archive", USAGE);
}
