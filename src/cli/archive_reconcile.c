/* hanaper archive reconcile: the MTA's log against the store. What was
 * delivered but never archived, and what was archived but never delivered. Of
 * what the MTA refused, after we had kept it, an event is written. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include "archive/search/rows.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/json.h"
#include "cli/archive.h"
#include "cli/lives.h"
#include "cli/withdrawn.h"

#define USAGE "reconcile " ARCHIVE_PLACE_USAGE "\n" \
	"       [--slack SECONDS] [--unrecorded] [--json] MAILLOG ..."

#define MEMORY   ((size_t)4 << 30)
#define MAX_LINE 16384
#define SLACK_S  120
#define MAX_SLACK_S 86400
#define FLUSH_LINES 256
#define MAX_NAMES 4096 /* of the logs, in the event */

struct reconcile {
	struct archive_place place;
	bool json;
	int64_t slack_us;
	struct lives *lives;
	int64_t first_us, last_us; /* of the log */
	uint64_t lines, parsed;
	/* archived, by Message-ID: for mail that came another way */
	struct life **by_message_id;
	size_t slots;
	struct buf out;
	int status;
	/* counts */
	uint64_t delivered, both, missing, undelivered, pending, unseen;
	struct withdrawals withdrawn;
};

static const struct option options[] = {
	ARCHIVE_READ_LONG,
	{ "slack", required_argument, NULL, 's' },
	{ "json", no_argument, NULL, 'j' },
	{ NULL, 0, NULL, 0 },
};

static int
parse_options(struct reconcile *x, int argc, char **argv)
{
	int c, status;
	uint64_t n;
	while ((c = getopt_long(argc, argv, ARCHIVE_PLACE_SHORT, options,
		    NULL)) != -1) {
		status = EX_OK;
		if (archive_place_option(&x->place, c, optarg, &status)) {
			;
		} else if (c == 'j') {
			x->json = true;
		} else if (c == 's') {
			if (str_to_u64(str_c(optarg), MAX_SLACK_S, &n) !=
			    RES_OK)
				status = cli_fail(EX_USAGE,
				    "--slack %s: seconds, up to %d", optarg,
				    MAX_SLACK_S);
			else
				x->slack_us = (int64_t)n * 1000000;
		} else {
			return cli_usage("archive", USAGE);
		}
		if (status != EX_OK)
			return status;
	}
	return optind < argc ? EX_OK : cli_usage("archive", USAGE);
}

/* --- the log --------------------------------------------------------------- */

static int
read_log(struct reconcile *x, const char *path)
{
	struct maillog_file m;
	struct str line;
	int status = maillog_open(path, &m);
	if (status != EX_OK)
		return status;
	enum res r = RES_OK;
	while (r == RES_OK && maillog_next(&m, &line)) {
		struct maillog_event e;
		int64_t time_us = INT64_MIN;
		bool good = maillog_parse(line, m.written_s, &e, &time_us);
		x->lines++;
		if (time_us != INT64_MIN && time_us < x->first_us)
			x->first_us = time_us;
		if (time_us > x->last_us)
			x->last_us = time_us;
		if (good) {
			x->parsed++;
			r = lives_add(x->lives, &e);
		}
	}
	status = maillog_close(&m, path);
	if (r != RES_OK)
		return cli_fail(EX_OSERR, "%s: more than fits into memory: "
		    "give it in parts", path);
	if (status != EX_OK)
		x->status = status; /* what was read counts */
	return EX_OK;
}

/* A file and when it begins: a life that a rotation cut in two is put
 * together only in the order of time, and "mail.log*" is not. */
struct part {
	const char *path;
	int64_t first_us, written_s;
	size_t place;
};

static void
look_at(struct part *p)
{
	struct maillog_file m;
	struct maillog_event e;
	struct str line;
	p->first_us = p->written_s = INT64_MAX;
	if (strcmp(p->path, "-") == 0 || maillog_open(p->path, &m) != EX_OK)
		return; /* complained about when it is read */
	while (p->first_us == INT64_MAX && maillog_next(&m, &line))
		(void)maillog_parse(line, m.written_s, &e, &p->first_us);
	p->written_s = m.written_s;
	maillog_drop(&m);
}

static int
earlier_first(const void *a, const void *b)
{
	const struct part *x = a, *y = b;
	if (x->first_us != y->first_us)
		return x->first_us < y->first_us ? -1 : 1;
	if (x->written_s != y->written_s)
		return x->written_s < y->written_s ? -1 : 1;
	return x->place > y->place ? -1 : 1; /* as mail.log mail.log.1 */
}

static int
read_logs(struct reconcile *x, struct arena *a, char **paths, size_t count)
{
	struct part *parts = arena_array(a, count, sizeof *parts);
	int status = EX_OK;
	if (parts == NULL)
		return cli_fail(EX_OSERR, "out of memory");
	for (size_t i = 0; i < count; i++) {
		parts[i].path = paths[i];
		parts[i].place = i;
		if (count > 1)
			look_at(&parts[i]);
	}
	qsort(parts, count, sizeof *parts, earlier_first);
	for (size_t i = 0; i < count && status == EX_OK; i++)
		status = read_log(x, parts[i].path);
	return status;
}

/* --- the store ------------------------------------------------------------- */

static void
put_finding(struct reconcile *x, const char *what, const struct life *f,
    uint64_t id, struct str queue_id, int64_t time_us, const char *note)
{
	struct buf text;
	struct json j;
	struct buf *b = &x->out;
	buf_init(&text, 128);
	if (id != 0)
		archive_id_format(&text, id);
	if (x->json) {
		json_init(&j, b);
		json_open(&j, '{');
		json_key_str(&j, "what", str_c(what));
		if (id != 0)
			json_key_str(&j, "id", buf_str(&text));
		json_key_str(&j, "queue_id", queue_id);
		buf_reset(&text);
		clock_format_us(&text, time_us);
		json_key_str(&j, "time", buf_str(&text));
		if (f != NULL) {
			json_key_str(&j, "host", f->host);
			json_key_str(&j, "service", f->service);
			json_key_str(&j, "source",
			    str_c(life_source_word(f->source)));
			json_key_str(&j, "fate", str_c(life_fate(f)));
			json_key_str(&j, "message_id", f->message_id);
		}
		if (note[0] != '\0')
			json_key_str(&j, "note", str_c(note));
		json_close(&j, '}');
	} else {
		buf_addf(b, "%-11s ", what);
		archive_put_time(b, time_us);
		buf_addf(b, "  %-8.*s  ", STR_ARG(buf_str(&text)));
		archive_put_safe(b, queue_id);
		if (f != NULL) {
			buf_addf(b, "  %s, %s", life_source_word(f->source),
			    life_fate(f));
			if (f->message_id.len > 0) {
				buf_add_c(b, "  <");
				archive_put_safe(b, f->message_id);
				buf_add_char(b, '>');
			}
		}
		if (note[0] != '\0')
			buf_addf(b, "  (%s)", note);
	}
	buf_add_char(b, '\n');
	buf_done(&text);
	if (b->len >= FLUSH_LINES * 64) {
		(void)buf_write(b, stdout);
		buf_reset(b);
	}
}

static enum res
take_row(void *context, const struct archive_row *row)
{
	struct reconcile *x = context;
	if (row->queue_id.len == 0)
		return RES_OK; /* imported, or never in a queue */
	struct life *f =
	    lives_find(x->lives, row->queue_id, row->time_us, x->slack_us);
	if (f != NULL) {
		if (row->id > f->archived)
			f->archived = row->id;
	} else if (row->time_us >= x->first_us + x->slack_us &&
	    row->time_us <= x->last_us - x->slack_us) {
		x->unseen++;
		put_finding(x, "not in log", NULL, row->id, row->queue_id,
		    row->time_us, "");
	}
	return RES_OK;
}

static enum res
read_store(struct reconcile *x, struct archive_reader *r, struct err *err,
    struct search_coverage *out)
{
	int64_t from = x->first_us;
	/* messages that were in the queue when the log began */
	for (size_t i = 0; i < lives_count(x->lives); i++)
		if (lives_at(x->lives, i)->begin_us < from)
			from = lives_at(x->lives, i)->begin_us;
	return archive_rows(r, from - x->slack_us, x->last_us + x->slack_us,
	    take_row, x, err, out);
}

/* --- comparing ------------------------------------------------------------- */

static bool
index_message_ids(struct reconcile *x)
{
	size_t n = lives_count(x->lives);
	for (x->slots = 16; x->slots < n * 2; x->slots *= 2)
		;
	x->by_message_id = calloc(x->slots, sizeof(*x->by_message_id));
	if (x->by_message_id == NULL)
		return false;
	for (size_t i = 0; i < n; i++) {
		struct life *f = lives_at(x->lives, i);
		if (f->archived == 0 || f->message_id.len == 0)
			continue;
		size_t at = hash_bytes(f->message_id) & (x->slots - 1);
		while (x->by_message_id[at] != NULL)
			at = (at + 1) & (x->slots - 1);
		x->by_message_id[at] = f;
	}
	return true;
}

static const struct life *
same_message_id(const struct reconcile *x, const struct life *f)
{
	if (f->message_id.len == 0)
		return NULL;
	size_t at = hash_bytes(f->message_id) & (x->slots - 1);
	for (; x->by_message_id[at] != NULL; at = (at + 1) & (x->slots - 1))
		if (str_eq(x->by_message_id[at]->message_id, f->message_id))
			return x->by_message_id[at];
	return NULL;
}

/* Of a life that began before the log, the delivery may have been before. */
static bool
life_over(const struct life *f)
{
	return f->done && (f->source != LIFE_UNKNOWN ||
			      strcmp(life_fate(f), "removed") != 0);
}

/* Each message once: with the first of its lives. */
static void
compare_life(struct reconcile *x, const struct life *f)
{
	uint64_t archived = life_archived(f);
	bool delivered = life_delivered(f);
	if (f->parent != NULL)
		return;
	x->delivered += delivered;
	if (delivered && archived != 0) {
		x->both++;
	} else if (delivered) {
		const struct life *same = same_message_id(x, f);
		char note[96] = "";
		if (same != NULL)
			snprintf(note, sizeof note, "%" PRIu64 ".%" PRIu64
			    " has the same Message-ID", same->archived >> 32,
			    same->archived & UINT32_MAX);
		x->missing++;
		put_finding(x, "not archived", f, 0, f->queue_id, f->last_us,
		    note);
	} else if (archived != 0 && life_over(f)) {
		x->undelivered++;
		put_finding(x, "undelivered", f, archived, f->queue_id,
		    f->last_us, "");
		if (f->refused || f->discarded)
			withdrawn_add(&x->withdrawn, archived);
	} else if (archived != 0) {
		x->pending++;
	}
}

static int
put_sums(struct reconcile *x)
{
	const struct {
		const char *name, *text;
		uint64_t n;
	} rows[] = {
		{ "delivered", "delivered by the MTA", x->delivered },
		{ "both", "of these, archived", x->both },
		{ "not_archived", "of these, never archived", x->missing },
		{ "undelivered", "archived, but never delivered",
		    x->undelivered },
		{ "pending", "archived, and not known to be delivered yet",
		    x->pending },
		{ "not_in_log", "archived, but not in the log", x->unseen },
		{ "withdrawn", "undelivered, now written down as withdrawn",
		    x->withdrawn.written },
	};
	struct json j;
	json_init(&j, &x->out);
	if (x->json)
		json_open(&j, '{');
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		if (x->json)
			json_key_int(&j, rows[i].name, (int64_t)rows[i].n);
		else
			buf_addf(&x->out, "%10" PRIu64 " %s\n", rows[i].n,
			    rows[i].text);
	if (x->json) {
		json_close(&j, '}');
		buf_add_char(&x->out, '\n');
	}
	return archive_print(&x->out);
}

static int
compare(struct reconcile *x, struct archive_reader *r)
{
	struct err err = { "" };
	struct search_coverage coverage = { 0 };
	enum res res = read_store(x, r, &err, &coverage);
	if (res == RES_OK && !index_message_ids(x))
		res = RES_NOMEM;
	if (res != RES_OK)
		return cli_fail(cli_status(res), "%s",
		    err.text[0] != '\0' ? err.text : res_text(res));
	lives_join(x->lives);
	for (size_t i = 0; i < lives_count(x->lives); i++)
		compare_life(x, lives_at(x->lives, i));
	if (!x->place.unrecorded)
		withdrawn_write(&x->withdrawn, &x->place,
		    archive_reader_path(r));
	int status = put_sums(x);
	archive_say_coverage(&coverage);
	if (status != EX_OK)
		return status;
	if (x->status != EX_OK)
		return x->status;
	if (!archive_is_complete(&coverage))
		return EX_TEMPFAIL;
	return x->missing + x->undelivered + x->unseen > 0 ? 1 : EX_OK;
}

/* Which logs, as one text. */
static int
write_down(struct reconcile *x, struct arena *a, const char *dir, char **paths,
    int count)
{
	struct buf names;
	buf_init(&names, MAX_NAMES);
	for (int i = 0; i < count; i++) {
		size_t before = names.len;
		if (i > 0)
			buf_add_char(&names, ' ');
		buf_add_c(&names, paths[i]);
		if (names.error != RES_OK) {
			names.len = before;
			break; /* what is left is as many more */
		}
	}
	struct str text = arena_dup(a, buf_str(&names));
	buf_done(&names);
	return archive_event(&x->place, "reconcile", dir, text, NULL, 0);
}

int
archive_reconcile_main(int argc, char **argv)
{
	struct reconcile x = { .slack_us = (int64_t)SLACK_S * 1000000,
		.first_us = INT64_MAX,
		.last_us = INT64_MIN };
	int status = parse_options(&x, argc, argv);
	if (status != EX_OK)
		return status;
	struct arena *a = arena_new(0);
	struct archive_reader *r = NULL;
	buf_init(&x.out, (size_t)1 << 20);
	x.lives = lives_new(MEMORY);
	if (a == NULL || x.lives == NULL)
		status = cli_fail(EX_OSERR, "out of memory");
	if (status == EX_OK)
		status = read_logs(
		    &x, a, argv + optind, (size_t)(argc - optind));
	if (status == EX_OK && x.parsed == 0)
		status = cli_fail(EX_DATAERR, "no line of Postfix's or "
		    "Sendmail's in %" PRIu64 " lines", x.lines);
	if (status == EX_OK)
		r = archive_place_open(&x.place, a, &status);
	if (r != NULL)
		status = write_down(&x, a, archive_reader_path(r),
		    argv + optind, argc - optind);
	if (r != NULL && status == EX_OK)
		status = compare(&x, r);
	withdrawn_done(&x.withdrawn);
	archive_reader_close(&r);
	lives_free(&x.lives);
	free(x.by_message_id);
	buf_done(&x.out);
	arena_free(&a);
	return status;
}
