/* hanaper archive search, list. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include "archive/search/query.h"
#include "base/clock.h"
#include "base/json.h"
#include "cli/archive.h"

#define SEARCH_USAGE                                                     \
	"search " ARCHIVE_PLACE_USAGE "\n"                               \
	"       [--limit N] [--cursor C] [--count] [--explain] [--json]\n" \
	"       [--format TEXT] [--no-snippets] [--unrecorded] QUERY ..."
#define LIST_USAGE                                                       \
	"list " ARCHIVE_PLACE_USAGE "\n"                                 \
	"       [--limit N] [--cursor C] [--json] [--format TEXT] [--unrecorded]"

#define MAX_HITS   10000
#define MAX_OUTPUT ((size_t)256 << 20)

struct search {
	struct archive_place place;
	struct search_options options;
	bool count, explain, json, terminal;
	const char *format;
};

static const struct option options[] = {
	ARCHIVE_READ_LONG,
	{ "limit", required_argument, NULL, 'l' },
	{ "cursor", required_argument, NULL, 'C' },
	{ "count", no_argument, NULL, 'n' },
	{ "explain", no_argument, NULL, 'x' },
	{ "json", no_argument, NULL, 'j' },
	{ "format", required_argument, NULL, 'f' },
	{ "no-snippets", no_argument, NULL, 'S' },
	{ NULL, 0, NULL, 0 },
};

static int
parse_options(struct search *s, int argc, char **argv, const char *usage)
{
	int c, status;
	uint64_t limit;
	/* a query has words like -this */
	while ((c = getopt_long(argc, argv, "+" ARCHIVE_PLACE_SHORT, options,
		    NULL)) != -1) {
		if (archive_place_option(&s->place, c, optarg, &status)) {
			if (status != EX_OK)
				return status;
			continue;
		}
		switch (c) {
		case 'l':
			if (str_to_u64(str_c(optarg), MAX_HITS, &limit) !=
				RES_OK ||
			    limit == 0)
				return cli_fail(EX_USAGE,
				    "--limit %s: a number from 1 to %d", optarg,
				    MAX_HITS);
			s->options.limit = (size_t)limit;
			break;
		case 'C':
			s->options.cursor = str_c(optarg);
			break;
		case 'n':
			s->count = true;
			break;
		case 'x':
			s->explain = true;
			break;
		case 'j':
			s->json = true;
			break;
		case 'f':
			s->format = optarg;
			break;
		case 'S':
			s->options.snippets = false;
			break;
		default:
			return cli_usage("archive", usage);
		}
	}
	return EX_OK;
}

/* --- one hit --- */

/* The snippet without its marks. */
static struct str
plain_snippet(struct arena *a, struct str s)
{
	char *p = arena_alloc(a, s.len + 1);
	size_t n = 0;
	for (size_t i = 0; p != NULL && i < s.len; i++)
		if (s.ptr[i] != SNIPPET_BEGIN && s.ptr[i] != SNIPPET_END)
			p[n++] = s.ptr[i];
	return str_of(p, n);
}

static void
json_highlights(struct json *j, struct str s)
{
	json_key(j, "highlights");
	json_open(j, '[');
	for (;;) {
		size_t from = str_chr(s, SNIPPET_BEGIN);
		if (from == SIZE_MAX)
			break;
		s = str_skip(s, from + 1);
		size_t to = str_chr(s, SNIPPET_END);
		json_str(j, str_sub(s, 0, to));
		s = str_skip(s, to);
	}
	json_close(j, ']');
}

static void
put_json(struct buf *b, struct arena *a, const struct search_hit *h)
{
	struct json j;
	json_init(&j, b);
	json_open(&j, '{');
	archive_json_head(&j, h->id, h->time_us);
	json_key_str(&j, "direction", h->direction);
	json_key_str(&j, "from", h->from);
	json_key(&j, "rcpts");
	json_open(&j, '[');
	for (size_t i = 0; i < h->rcpts_shown; i++)
		json_str(&j, h->rcpts[i]);
	json_close(&j, ']');
	json_key_int(&j, "rcpt_count", (int64_t)h->rcpt_count);
	json_key_str(&j, "subject", h->subject);
	json_key_int(&j, "bytes", (int64_t)h->bytes);
	json_key_str(&j, "queue_id", h->queue_id);
	if (h->snippet.len > 0) {
		json_key_str(&j, "snippet", plain_snippet(a, h->snippet));
		json_highlights(&j, h->snippet);
	}
	json_close(&j, '}');
	buf_add_char(b, '\n');
}

static void
put_rcpts(struct buf *b, const struct search_hit *h)
{
	for (size_t i = 0; i < h->rcpts_shown; i++) {
		if (i > 0)
			buf_add_c(b, ", ");
		archive_put_safe(b, h->rcpts[i]);
	}
	if (h->rcpt_count > h->rcpts_shown)
		buf_addf(b, " and %zu more", h->rcpt_count - h->rcpts_shown);
}

static void
put_snippet(struct buf *b, struct str s, bool terminal)
{
	while (s.len > 0) {
		size_t n = 0;
		while (n < s.len && s.ptr[n] != SNIPPET_BEGIN &&
		    s.ptr[n] != SNIPPET_END)
			n++;
		archive_put_safe(b, str_sub(s, 0, n));
		if (n < s.len && terminal)
			buf_add_c(b, s.ptr[n] == SNIPPET_BEGIN ? "\033[1m"
							       : "\033[0m");
		else if (n < s.len)
			buf_add_char(b, '*');
		s = str_skip(s, n < s.len ? n + 1 : n);
	}
}

static void
put_text(struct buf *b, const struct search *s, const struct search_hit *h)
{
	archive_id_format(b, h->id);
	buf_add_c(b, "  ");
	archive_put_time(b, h->time_us);
	buf_add_c(b, "  ");
	archive_put_safe(b, h->direction.len > 0 ? h->direction : STR("-"));
	buf_addf(b, "  %" PRIu64 " bytes\n    From: ", h->bytes);
	archive_put_safe(b, h->from);
	if (h->rcpt_count > 0) {
		buf_add_c(b, "\n    For:  ");
		put_rcpts(b, h);
	}
	buf_add_c(b, "\n    ");
	archive_put_safe(
	    b, h->subject.len > 0 ? h->subject : STR("(no subject)"));
	if (h->snippet.len > 0) {
		buf_add_c(b, "\n    ");
		put_snippet(b, h->snippet, s->terminal);
	}
	buf_add_char(b, '\n');
}

/* One word of --format; false: no such word. */
static bool
put_field(struct buf *b, struct str name, const struct search_hit *h)
{
	if (str_eq(name, STR("id")))
		archive_id_format(b, h->id);
	else if (str_eq(name, STR("time")))
		clock_format_us(b, h->time_us);
	else if (str_eq(name, STR("dir")))
		archive_put_safe(b, h->direction);
	else if (str_eq(name, STR("from")))
		archive_put_safe(b, h->from);
	else if (str_eq(name, STR("rcpts")))
		put_rcpts(b, h);
	else if (str_eq(name, STR("subject")))
		archive_put_safe(b, h->subject);
	else if (str_eq(name, STR("bytes")))
		buf_addf(b, "%" PRIu64, h->bytes);
	else if (str_eq(name, STR("qid")))
		archive_put_safe(b, h->queue_id);
	else if (str_eq(name, STR("snippet")))
		put_snippet(b, h->snippet, false);
	else
		return false;
	return true;
}

/* "{id} {subject}\n"; \n and \t may be written so. False: a wrong word. */
static bool
put_format(struct buf *b, const char *format, const struct search_hit *h)
{
	struct str f = str_c(format);
	while (f.len > 0) {
		size_t end = str_chr(f, '}');
		if (f.ptr[0] == '{' && end != SIZE_MAX) {
			if (!put_field(b, str_sub(f, 1, end - 1), h))
				return false;
			f = str_skip(f, end + 1);
			continue;
		}
		if (f.ptr[0] == '\\' && f.len > 1 &&
		    (f.ptr[1] == 'n' || f.ptr[1] == 't')) {
			buf_add_char(b, f.ptr[1] == 'n' ? '\n' : '\t');
			f = str_skip(f, 2);
			continue;
		}
		buf_add_char(b, f.ptr[0]);
		f = str_skip(f, 1);
	}
	buf_add_char(b, '\n');
	return true;
}

static int
put_hits(const struct search *s, struct arena *a, const struct search_hit *hits,
    size_t count)
{
	struct buf b;
	buf_init(&b, MAX_OUTPUT);
	for (size_t i = 0; i < count; i++) {
		if (s->json) {
			put_json(&b, a, &hits[i]);
		} else if (s->format == NULL) {
			put_text(&b, s, &hits[i]);
		} else if (!put_format(&b, s->format, &hits[i])) {
			buf_done(&b);
			return cli_fail(EX_USAGE, "--format: the words are {id} "
			    "{time} {dir} {from} {rcpts} {subject} {bytes} "
			    "{qid} {snippet}");
		}
	}
	return archive_print(&b);
}

/* --- the whole --- */

/* 0 found, 1 nothing, EX_TEMPFAIL nothing but not all was searched. */
static int
answer(bool found, const struct search_coverage *c)
{
	archive_say_coverage(c);
	if (found)
		return EX_OK;
	return archive_is_complete(c) ? 1 : EX_TEMPFAIL;
}

static int
run_search(const struct search *s, struct archive_reader *r, struct arena *a,
    const struct query *q)
{
	struct search_coverage coverage;
	struct err err = { "" };
	struct search_hit *hits;
	size_t count;
	struct str cursor;
	uint64_t total;
	enum res res;
	if (s->count)
		res = archive_count(r, a, q, &err, &total, &coverage);
	else
		res = archive_search(r, a, q, &s->options, &err, &hits, &count,
		    &cursor, &coverage);
	if (res != RES_OK)
		return cli_fail(res == RES_INVALID ? EX_USAGE : cli_status(res),
		    "%s", err.text[0] != '\0' ? err.text : res_text(res));
	if (s->count) {
		printf("%" PRIu64 "\n", total);
		return answer(total > 0, &coverage);
	}
	int status = put_hits(s, a, hits, count);
	if (status != EX_OK)
		return status;
	(void)fflush(stdout);
	status = answer(count > 0, &coverage);
	if (cursor.len > 0)
		fprintf(stderr, "hanaper: more with --cursor %.*s\n",
		    STR_ARG(cursor));
	return status;
}

static int
search_and_close(struct search *s, int argc, char **argv)
{
	struct arena *a = arena_new((size_t)1 << 30);
	int status = EX_OSERR;
	if (a == NULL)
		return cli_fail(EX_OSERR, "out of memory");
	struct query *q = archive_query(a, argc, argv, optind, &status);
	if (q != NULL && s->explain) {
		struct buf b;
		buf_init(&b, MAX_OUTPUT);
		query_explain(q, &b);
		status = archive_print(&b);
	} else if (q != NULL) {
		struct archive_reader *r =
		    archive_place_open(&s->place, a, &status);
		if (r != NULL)
			status = archive_event(&s->place,
			    q->text.len > 0 ? "search" : "list",
			    archive_reader_path(r), q->text, NULL, 0);
		if (r != NULL && status == EX_OK)
			status = run_search(s, r, a, q);
		archive_reader_close(&r);
	}
	arena_free(&a);
	return status;
}

int
archive_search_main(int argc, char **argv)
{
	struct search s = { .options = { .snippets = true },
		.terminal = isatty(STDOUT_FILENO) != 0 };
	int status = parse_options(&s, argc, argv, SEARCH_USAGE);
	if (status != EX_OK)
		return status;
	if (optind == argc)
		return cli_usage("archive", SEARCH_USAGE);
	return search_and_close(&s, argc, argv);
}

int
archive_list_main(int argc, char **argv)
{
	struct search s = { .terminal = isatty(STDOUT_FILENO) != 0 };
	int status = parse_options(&s, argc, argv, LIST_USAGE);
	if (status != EX_OK)
		return status;
	if (optind != argc)
		return cli_usage("archive", LIST_USAGE);
	return search_and_close(&s, argc, argv);
}
