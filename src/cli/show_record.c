/* What was kept with a message, as text. */
#include <inttypes.h>
#include <stdio.h>
#include <sysexits.h>

#include "base/clock.h"
#include "base/codec.h"
#include "cli/show.h"

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
	buf_init(&b, SHOW_MAX_OUTPUT);
	if (record.len > 0 && record_open(record, &r) == RES_OK)
		while (record_next(&r, &tag, &value))
			put(&b, tag, value);
	return archive_print(&b);
}

int
show_records(const struct show *s)
{
	struct archived m;
	struct err err = { "" };
	enum res r = archive_get(s->reader, s->a, s->id, &err, &m);
	if (r != RES_OK)
		return show_complain(s, r, &err);
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
