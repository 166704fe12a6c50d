/* hanaper archive show: one message, as a person or byte for byte. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sysexits.h>

#include "cli/safe.h"
#include "cli/show.h"
#include "mail/mime.h"
#include "mail/text.h"

#define USAGE                                                            \
	"show " ARCHIVE_PLACE_USAGE "\n"                                 \
	"       [--raw | --headers | --structure | --attachment N | --meta |\n" \
	"       --evidence | --edits] [--unrecorded] ID|QUEUEID"

static const struct option options[] = {
	ARCHIVE_READ_LONG,
	{ "raw", no_argument, NULL, 'r' },
	{ "headers", no_argument, NULL, 'h' },
	{ "structure", no_argument, NULL, 's' },
	{ "attachment", required_argument, NULL, 'a' },
	{ "meta", no_argument, NULL, 'm' },
	{ "evidence", no_argument, NULL, 'e' },
	{ "edits", no_argument, NULL, 'E' },
	{ NULL, 0, NULL, 0 },
};

static int
parse_options(struct show *s, int argc, char **argv)
{
	static const struct {
		int option;
		enum show_what what;
	} ways[] = { { 'r', SHOW_RAW }, { 'h', SHOW_HEADERS },
		{ 's', SHOW_STRUCTURE }, { 'a', SHOW_ATTACHMENT },
		{ 'm', SHOW_META }, { 'e', SHOW_EVIDENCE },
		{ 'E', SHOW_EDITS } };
	int c, status;
	while ((c = getopt_long(argc, argv, ARCHIVE_PLACE_SHORT, options,
		    NULL)) != -1) {
		if (archive_place_option(&s->place, c, optarg, &status)) {
			if (status != EX_OK)
				return status;
			continue;
		}
		bool known = false;
		for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
			if (c == ways[i].option) {
				s->what = ways[i].what;
				known = true;
			}
		if (!known)
			return cli_usage("archive", USAGE);
		if (c == 'a' &&
		    str_to_u64(str_c(optarg), MIME_MAX_PARTS, &s->part) !=
			RES_OK)
			return cli_fail(EX_USAGE,
			    "--attachment %s: a part's number, as --structure "
			    "shows it", optarg);
	}
	return EX_OK;
}

int
show_complain(const struct show *s, enum res r, const struct err *err)
{
	return cli_fail(cli_status(r), "%" PRIu64 ".%" PRIu64 ": %s", s->id >> 32,
	    s->id & UINT32_MAX,
	    err->text[0] != '\0' ? err->text : res_text(r));
}

int
show_push_body(const struct show *s, struct sink *to)
{
	struct err err = { "" };
	enum res r = archive_get_body(s->reader, s->id, &err, to);
	return r == RES_OK ? EX_OK : show_complain(s, r, &err);
}

/* --- text --- */

static void
put_field(struct buf *out, const char *name, struct str value)
{
	if (value.len == 0)
		return;
	buf_addf(out, "%s: ", name);
	archive_put_safe(out, value);
	buf_add_char(out, '\n');
}

static void
put_lines(struct buf *out, struct str text)
{
	struct safe s = SAFE_LINES;
	safe_put(&s, text, out);
	safe_end(&s, out);
	if (text.len > 0 && text.ptr[text.len - 1] != '\n')
		buf_add_char(out, '\n');
}

static int
show_text(const struct show *s)
{
	struct text_extract *x = text_extract_new();
	if (x == NULL)
		return cli_fail(EX_OSERR, "out of memory");
	int status = show_push_body(s, text_extract_sink(x));
	if (status == EX_OK) {
		const struct text_doc *d = text_extract_doc(x);
		struct buf b;
		buf_init(&b, SHOW_MAX_OUTPUT);
		put_field(&b, "From", buf_str(&d->from));
		put_field(&b, "To", buf_str(&d->to));
		put_field(&b, "Cc", buf_str(&d->cc));
		put_field(&b, "Subject", buf_str(&d->subject));
		put_field(&b, "Message-ID", buf_str(&d->message_id));
		put_field(&b, "Attachments", buf_str(&d->filename));
		buf_add_char(&b, '\n');
		put_lines(&b, buf_str(&d->body));
		if (d->partial)
			fputs("hanaper: only a part of the text is shown\n",
			    stderr);
		status = archive_print(&b);
	}
	text_extract_free(&x);
	return status;
}

static int
show(const struct show *s)
{
	switch (s->what) {
	case SHOW_TEXT:
		return show_text(s);
	case SHOW_RAW:
		return show_raw(s);
	case SHOW_HEADERS:
		return show_headers(s);
	case SHOW_STRUCTURE:
		return show_structure(s);
	case SHOW_ATTACHMENT:
		return show_attachment(s);
	case SHOW_META:
	case SHOW_EVIDENCE:
	case SHOW_EDITS:
		break;
	}
	return show_records(s);
}

/* --- by queue id --- */

#define MAX_QUEUE_ID 64
#define MAX_LISTED   10000

/* Letters and digits: those of every MTA. */
static bool
is_queue_id(struct str text)
{
	for (size_t i = 0; i < text.len; i++)
		if (!ascii_is_alpha(text.ptr[i]) &&
		    !ascii_is_digit(text.ptr[i]))
			return false;
	return text.len > 0 && text.len <= MAX_QUEUE_ID;
}

static void
put_row(struct buf *b, const struct search_hit *h)
{
	archive_id_format(b, h->id);
	buf_add_c(b, "  ");
	archive_put_time(b, h->time_us);
	buf_add_c(b, "  ");
	archive_put_safe(b, h->direction);
	buf_add_c(b, "  ");
	archive_put_safe(b, h->from);
	buf_add_c(b, "  ");
	archive_put_safe(b, h->subject);
	buf_add_char(b, '\n');
}

/* All that used this queue id. One message goes to s->id, several are listed:
 * as the answer when a message was to be shown to a person, else as why there
 * is none. *out_one tells which. */
static int
find_by_queue_id(struct show *s, const char *queue_id, bool *out_one)
{
	struct query *q;
	struct err err = { "" };
	struct search_hit *hits;
	size_t count;
	struct str cursor, text = arena_printf(s->a, "qid:%s", queue_id);
	struct search_coverage coverage;
	const struct search_options o = { .limit = MAX_LISTED };
	*out_one = false;
	int status = archive_event(&s->place, "search",
	    archive_reader_path(s->reader), text, NULL, 0);
	if (status != EX_OK)
		return status;
	enum res r = text.ptr == NULL ? RES_NOMEM :
	    query_parse(s->a, text, 0, &err, &q);
	if (r == RES_OK)
		r = archive_search(s->reader, s->a, q, &o, &err, &hits, &count,
		    &cursor, &coverage);
	if (r != RES_OK)
		return cli_fail(cli_status(r), "%s",
		    err.text[0] != '\0' ? err.text : res_text(r));
	if (!archive_is_complete(&coverage))
		archive_say_coverage(&coverage);
	if (count == 0)
		return cli_fail(archive_is_complete(&coverage) ? EX_NOINPUT :
		    EX_TEMPFAIL, "no message with the queue id %s", queue_id);
	if (count == 1) {
		s->id = hits[0].id;
		*out_one = true;
		return EX_OK;
	}
	struct buf b;
	buf_init(&b, SHOW_MAX_OUTPUT);
	for (size_t i = 0; i < count; i++)
		put_row(&b, &hits[i]);
	if (s->what == SHOW_TEXT)
		return archive_print(&b);
	(void)buf_write(&b, stderr);
	buf_done(&b);
	return cli_fail(EX_USAGE, "%s: %zu messages: name one by its id",
	    queue_id, count);
}

int
archive_show_main(int argc, char **argv)
{
	struct show s = { .what = SHOW_TEXT };
	int status = parse_options(&s, argc, argv);
	if (status != EX_OK)
		return status;
	if (optind + 1 != argc)
		return cli_usage("archive", USAGE);
	const char *name = argv[optind];
	bool one = archive_id_parse(str_c(name), &s.id) == RES_OK;
	if (!one && !is_queue_id(str_c(name)))
		return cli_fail(EX_USAGE, "'%s' is no id (they look like "
		    "1.23) and no queue id", name);
	s.a = arena_new((size_t)1 << 30);
	if (s.a == NULL)
		return cli_fail(EX_OSERR, "out of memory");
	s.reader = archive_place_open(&s.place, s.a, &status);
	if (s.reader != NULL && !one)
		status = find_by_queue_id(&s, name, &one);
	if (s.reader != NULL && one)
		status = archive_event(&s.place, "show",
		    archive_reader_path(s.reader), STR_EMPTY, &s.id, 1);
	if (s.reader != NULL && one && status == EX_OK)
		status = show(&s);
	archive_reader_close(&s.reader);
	arena_free(&s.a);
	return status;
}
