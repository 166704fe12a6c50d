/* hanaper archive show: one message, as a person or byte for byte. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sysexits.h>

#include "base/clock.h"
#include "base/codec.h"
#include "cli/archive.h"
#include "mail/encoded.h"
#include "mail/mime.h"
#include "mail/text.h"

#define USAGE                                                            \
	"show " ARCHIVE_PLACE_USAGE "\n"                                 \
	"       [--raw | --headers | --structure | --attachment N | --meta |\n" \
	"       --evidence | --edits] ID"

#define MAX_OUTPUT ((size_t)64 << 20)
#define MAX_HEADER ((size_t)4 << 20)

enum show_what { SHOW_TEXT, SHOW_RAW, SHOW_HEADERS, SHOW_STRUCTURE,
	SHOW_ATTACHMENT, SHOW_META, SHOW_EVIDENCE, SHOW_EDITS };

struct show {
	struct archive_place place;
	enum show_what what;
	uint64_t part; /* SHOW_ATTACHMENT */
	struct archive_reader *reader;
	struct arena *a;
	uint64_t id;
};

static const struct option options[] = {
	ARCHIVE_PLACE_LONG,
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

static int
complain(const struct show *s, enum res r, const struct err *err)
{
	return cli_fail(cli_status(r), "%" PRIu64 ".%" PRIu64 ": %s", s->id >> 32,
	    s->id & UINT32_MAX,
	    err->text[0] != '\0' ? err->text : res_text(r));
}

/* --- bytes to standard output --- */

static void
out_push(struct sink *sink, const char *bytes, size_t len)
{
	(void)sink;
	(void)fwrite(bytes, 1, len, stdout);
}

static enum res
out_finish(struct sink *sink)
{
	(void)sink;
	return RES_OK; /* cli_end looks */
}

static int
push_body(const struct show *s, struct sink *to)
{
	struct err err = { "" };
	enum res r = archive_get_body(s->reader, s->id, &err, to);
	return r == RES_OK ? EX_OK : complain(s, r, &err);
}

static int
show_raw(const struct show *s)
{
	struct sink out = { out_push, out_finish };
	return push_body(s, &out);
}

/* The header: all up to and with the empty line. */
struct header_sink {
	struct sink sink;
	struct buf *out;
	bool done;
};

static void
header_push(struct sink *sink, const char *bytes, size_t len)
{
	struct header_sink *h = (struct header_sink *)sink;
	for (size_t i = 0; i < len && !h->done; i++) {
		buf_add_char(h->out, bytes[i]);
		struct str all = buf_str(h->out);
		h->done = str_ends(all, STR("\n\r\n")) ||
		    str_ends(all, STR("\n\n")) || str_eq(all, STR("\r\n")) ||
		    h->out->error != RES_OK;
	}
}

static enum res
header_finish(struct sink *sink)
{
	(void)sink;
	return RES_OK;
}

static int
show_headers(const struct show *s)
{
	struct buf b;
	buf_init(&b, MAX_HEADER);
	struct header_sink h = { { header_push, header_finish }, &b, false };
	int status = push_body(s, &h.sink);
	if (status != EX_OK) {
		buf_done(&b);
		return status;
	}
	return archive_print(&b);
}

/* --- MIME --- */

struct parts {
	const struct show *show;
	struct buf out;
	uint64_t bytes;
	bool found;
};

static void
structure_begin(void *context, const struct mime_part *p)
{
	struct parts *x = context;
	x->bytes = 0;
	buf_addf(&x->out, "%*s%u  ", (int)(2 * p->depth), "", p->number);
	archive_put_safe(&x->out, p->type.len > 0 ? p->type : STR("text/plain"));
	if (p->charset.len > 0) {
		buf_add_c(&x->out, " charset=");
		archive_put_safe(&x->out, p->charset);
	}
	if (p->encoding.len > 0) {
		buf_add_c(&x->out, " ");
		archive_put_safe(&x->out, p->encoding);
	}
	if (p->disposition.len > 0) {
		buf_add_c(&x->out, " ");
		archive_put_safe(&x->out, p->disposition);
	}
	struct str name = p->filename.len > 0 ? p->filename : p->name;
	if (name.len > 0) {
		buf_add_c(&x->out, " \"");
		archive_put_safe(&x->out, name);
		buf_add_char(&x->out, '"');
	}
	if (p->kind == MIME_MULTIPART || p->kind == MIME_MESSAGE)
		buf_add_char(&x->out, '\n');
}

static void
structure_data(void *context, const struct mime_part *p, const char *bytes,
    size_t len)
{
	(void)p;
	(void)bytes;
	((struct parts *)context)->bytes += len;
}

static void
structure_end(void *context, const struct mime_part *p)
{
	struct parts *x = context;
	if (p->kind != MIME_MULTIPART && p->kind != MIME_MESSAGE)
		buf_addf(&x->out, "  %" PRIu64 " bytes\n", x->bytes);
}

static void
attachment_begin(void *context, const struct mime_part *p)
{
	struct parts *x = context;
	if (p->number == x->show->part && p->kind != MIME_MULTIPART &&
	    p->kind != MIME_MESSAGE)
		x->found = true;
}

static void
attachment_data(void *context, const struct mime_part *p, const char *bytes,
    size_t len)
{
	struct parts *x = context;
	if (p->number == x->show->part)
		(void)fwrite(bytes, 1, len, stdout);
}

static int
walk(const struct show *s, const struct mime_ops *ops, struct parts *x)
{
	struct mime *m = mime_new(ops, x);
	if (m == NULL)
		return cli_fail(EX_OSERR, "out of memory");
	int status = push_body(s, mime_sink(m));
	if (status == EX_OK && mime_partial(m))
		fputs("hanaper: not all of it was looked into: too many or "
		      "too deep parts\n", stderr);
	mime_free(&m);
	return status;
}

static int
show_structure(const struct show *s)
{
	static const struct mime_ops ops = { NULL, structure_begin,
		structure_data, structure_end };
	struct parts x = { .show = s };
	buf_init(&x.out, MAX_OUTPUT);
	int status = walk(s, &ops, &x);
	if (status != EX_OK) {
		buf_done(&x.out);
		return status;
	}
	return archive_print(&x.out);
}

static int
show_attachment(const struct show *s)
{
	static const struct mime_ops ops = { NULL, attachment_begin,
		attachment_data, NULL };
	struct parts x = { .show = s };
	int status = walk(s, &ops, &x);
	if (status == EX_OK && !x.found)
		return cli_fail(EX_NOINPUT, "no part %" PRIu64
		    " with bytes of its own; --structure lists the parts",
		    s->part);
	return status;
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

/* Text with its lines; other control bytes are not for terminals. */
static void
put_lines(struct buf *out, struct str text)
{
	for (size_t i = 0; i < text.len; i++) {
		size_t from = i;
		while (i < text.len && text.ptr[i] != '\r' &&
		    text.ptr[i] != '\n' && text.ptr[i] != '\t')
			i++;
		archive_put_safe(out, str_sub(text, from, i - from));
		if (i < text.len && text.ptr[i] != '\r')
			buf_add_char(out, text.ptr[i]);
	}
	if (text.len > 0 && text.ptr[text.len - 1] != '\n')
		buf_add_char(out, '\n');
}

static int
show_text(const struct show *s)
{
	struct text_extract *x = text_extract_new();
	if (x == NULL)
		return cli_fail(EX_OSERR, "out of memory");
	int status = push_body(s, text_extract_sink(x));
	if (status == EX_OK) {
		const struct text_doc *d = text_extract_doc(x);
		struct buf b;
		buf_init(&b, MAX_OUTPUT);
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

/* --- records --- */

static const struct {
	unsigned tag;
	const char *name;
} meta_names[] = {
	{ META_DIRECTION, "direction" },
	{ META_QUEUE_ID, "queue id" },
	{ META_MAIL_FROM, "mail from" },
	{ META_RCPT, "rcpt" },
	{ META_CLIENT_IP, "client ip" },
	{ META_CLIENT_NAME, "client name" },
	{ META_HELO, "helo" },
	{ META_AUTH, "auth" },
	{ META_TLS, "tls" },
	{ META_DAEMON_NAME, "daemon name" },
	{ META_AUTHSERV_ID, "authserv-id" },
	{ META_RESULTS, "results" },
	{ META_FACT, "fact" },
	{ META_DISPOSITION, "disposition" },
	{ META_REASON, "reason" },
	{ META_DECISION_ID, "decision id" },
	{ META_CONTENT_SHA256, "sha256" },
	{ META_HEADER_BYTES, "header bytes" },
	{ META_SOURCE, "source" },
	{ META_VERIFY_OPTIONS, "verify options" },
	{ META_FLAGS, "flags" },
	{ META_MAIL_ARGS, "mail argument" },
};

static void
put_number(struct buf *out, struct str value)
{
	uint64_t n = 0;
	for (size_t i = value.len < 8 ? value.len : 8; i > 0; i--)
		n = n << 8 | (uint8_t)value.ptr[i - 1];
	buf_addf(out, "%" PRIu64, n);
}

static void
put_meta(struct buf *out, unsigned tag, struct str value)
{
	const char *name = NULL;
	for (size_t i = 0; i < sizeof meta_names / sizeof *meta_names; i++)
		if (meta_names[i].tag == tag)
			name = meta_names[i].name;
	if (name != NULL)
		buf_addf(out, "%s: ", name);
	else
		buf_addf(out, "tag %u: ", tag);
	if (tag == META_CONTENT_SHA256)
		hex_encode(out, value.ptr, value.len);
	else if (tag == META_HEADER_BYTES || tag == META_FLAGS)
		put_number(out, value);
	else
		archive_put_safe(out, value);
	buf_add_char(out, '\n');
}

static void
put_answer(struct buf *out, struct str answer)
{
	struct str type = record_find(answer, EVIDENCE_TYPE);
	struct record_reader r;
	unsigned tag;
	struct str value;
	archive_put_safe(out, record_find(answer, EVIDENCE_NAME));
	buf_add_c(out, " type ");
	put_number(out, type);
	buf_add_char(out, ' ');
	archive_put_safe(out, record_find(answer, EVIDENCE_STATUS));
	buf_add_c(out, " ttl ");
	put_number(out, record_find(answer, EVIDENCE_TTL));
	struct str secure = record_find(answer, EVIDENCE_SECURE);
	if (secure.len == 1 && secure.ptr[0] != 0)
		buf_add_c(out, " secure");
	struct str when = record_find(answer, EVIDENCE_TIME);
	if (when.len == 8) {
		buf_add_c(out, " at ");
		clock_format_us(out,
		    (int64_t)get_le64((const uint8_t *)when.ptr));
	}
	buf_add_char(out, '\n');
	if (record_open(answer, &r) != RES_OK)
		return;
	while (record_next(&r, &tag, &value))
		if (tag == EVIDENCE_RECORD) {
			buf_add_c(out, "    ");
			archive_put_safe(out, value);
			buf_add_char(out, '\n');
		}
}

static void
put_evidence(struct buf *out, unsigned tag, struct str value)
{
	if (tag == EVIDENCE_DNS_ANSWER)
		put_answer(out, value);
	else
		buf_addf(out, "tag %u: %zu bytes\n", tag, value.len);
}

static void
put_edit(struct buf *out, unsigned tag, struct str value)
{
	static const char *const words[] = { NULL, "insert", "change",
		"delete" };
	if (tag < 1 || tag > 3) {
		buf_addf(out, "tag %u: %zu bytes\n", tag, value.len);
		return;
	}
	buf_addf(out, "%s ", words[tag]);
	put_number(out, record_find(value, EDIT_INDEX));
	buf_add_char(out, ' ');
	archive_put_safe(out, record_find(value, EDIT_NAME));
	buf_add_char(out, ':');
	/* folds as written, each behind a blank of its own */
	struct str rest = record_find(value, EDIT_VALUE), line;
	while (rest.len > 0 && str_split(&rest, '\n', &line)) {
		archive_put_safe(out, str_trim(line).len > 0 ? line : STR(" "));
		buf_add_char(out, '\n');
	}
	if (tag == EDIT_DELETE)
		buf_add_char(out, '\n');
}

static int
show_record(const struct show *s, struct str record,
    void (*put)(struct buf *out, unsigned tag, struct str value))
{
	struct buf b;
	struct record_reader r;
	unsigned tag;
	struct str value;
	buf_init(&b, MAX_OUTPUT);
	if (record.len > 0 && record_open(record, &r) == RES_OK)
		while (record_next(&r, &tag, &value))
			put(&b, tag, value);
	return archive_print(&b);
}

static int
show_records(const struct show *s)
{
	struct archived m;
	struct err err = { "" };
	enum res r = archive_get(s->reader, s->a, s->id, &err, &m);
	if (r != RES_OK)
		return complain(s, r, &err);
	switch (s->what) {
	case SHOW_EVIDENCE:
		return show_record(s, m.evidence, put_evidence);
	case SHOW_EDITS:
		return show_record(s, m.edits, put_edit);
	case SHOW_META:
	case SHOW_TEXT:
	case SHOW_RAW:
	case SHOW_HEADERS:
	case SHOW_STRUCTURE:
	case SHOW_ATTACHMENT:
		break;
	}
	printf("id: %" PRIu64 ".%" PRIu64 "\n", s->id >> 32,
	    s->id & UINT32_MAX);
	struct buf b;
	buf_init(&b, 256);
	buf_add_c(&b, "time: ");
	clock_format_us(&b, m.time_us);
	buf_addf(&b, "\nbytes: %" PRIu64 "\n", m.bytes);
	int status = archive_print(&b);
	return status == EX_OK ? show_record(s, m.meta, put_meta) : status;
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

int
archive_show_main(int argc, char **argv)
{
	struct show s = { .what = SHOW_TEXT };
	int status = parse_options(&s, argc, argv);
	if (status != EX_OK)
		return status;
	if (optind + 1 != argc)
		return cli_usage("archive", USAGE);
	if (archive_id_parse(str_c(argv[optind]), &s.id) != RES_OK)
		return cli_fail(EX_USAGE, "'%s' is no id (they look like 1.23)",
		    argv[optind]);
	s.a = arena_new(0);
	if (s.a == NULL)
		return cli_fail(EX_OSERR, "out of memory");
	s.reader = archive_place_open(&s.place, s.a, &status);
	if (s.reader != NULL)
		status = show(&s);
	archive_reader_close(&s.reader);
	arena_free(&s.a);
	return status;
}
