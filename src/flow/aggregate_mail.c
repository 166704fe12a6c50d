#include "flow/aggregate_mail.h"

#include <time.h>

#include "base/codec.h"
#include "keys/digest.h"

#define ID_BYTES   10
#define LINE_BYTES 57 /* 76 characters of base64 */

struct str
aggregate_report_id(struct arena *a, struct str submitter, struct str domain,
    int64_t begin_s)
{
	uint8_t digest[DIGEST_LEN];
	struct buf hex;
	struct str text = arena_printf(a, "%.*s!%.*s!%lld", STR_ARG(submitter),
	    STR_ARG(domain), (long long)begin_s);
	if (text.ptr == NULL ||
	    digest_sha256(text.ptr, text.len, digest) != RES_OK)
		return STR_EMPTY;
	buf_init(&hex, 2 * ID_BYTES);
	hex_encode(&hex, digest, ID_BYTES);
	struct str id = arena_dup(a, buf_str(&hex));
	buf_done(&hex);
	return id;
}

struct str
aggregate_file_name(struct arena *a, struct str submitter, struct str domain,
    int64_t begin_s, int64_t end_s, struct str id)
{
	return arena_printf(a, "%.*s!%.*s!%lld!%lld!%.*s.xml.gz",
	    STR_ARG(submitter), STR_ARG(domain), (long long)begin_s,
	    (long long)end_s, STR_ARG(id));
}

static bool
is_printable(struct str s)
{
	for (size_t i = 0; i < s.len; i++)
		if (s.ptr[i] < ' ' || s.ptr[i] > '~')
			return false;
	return s.len != 0;
}

static void
add_from(const struct aggregate_mail *m, struct buf *out)
{
	buf_add_c(out, "From: ");
	if (is_printable(m->org)) {
		buf_add_char(out, '"');
		for (size_t i = 0; i < m->org.len; i++) {
			if (m->org.ptr[i] == '"' || m->org.ptr[i] == '\\')
				buf_add_char(out, '\\');
			buf_add_char(out, m->org.ptr[i]);
		}
		buf_add_c(out, "\"\n ");
	}
	buf_addf(out, "<%.*s>\n", STR_ARG(m->from));
}

static struct tm
broken_down(int64_t s)
{
	time_t t = (time_t)s;
	struct tm tm = { .tm_mday = 1 };
	(void)gmtime_r(&t, &tm);
	return tm;
}

static void
add_header(const struct aggregate_mail *m, struct buf *out)
{
	char date[64];
	struct tm tm = broken_down(m->now_s);
	size_t at = str_rchr(m->from, '@');
	strftime(date, sizeof date, "%a, %d %b %Y %H:%M:%S +0000", &tm);
	add_from(m, out);
	buf_addf(out, "To: <%.*s>\nSubject: Report Domain: %.*s\n"
		      " Submitter: %.*s\n Report-ID: <%.*s>\n",
	    STR_ARG(m->to), STR_ARG(m->domain), STR_ARG(m->submitter),
	    STR_ARG(m->report_id));
	buf_addf(out, "Date: %s\nMessage-ID: <%.*s.%.*s%.*s>\n", date,
	    STR_ARG(m->report_id), STR_ARG(m->token),
	    STR_ARG(str_skip(m->from, at)));
	buf_addf(out, "Auto-Submitted: auto-generated\nMIME-Version: 1.0\n"
		      "Content-Type: multipart/mixed;\n boundary=\"=_%.*s\"\n",
	    STR_ARG(m->report_id));
}

static void
add_text_part(const struct aggregate_mail *m, struct buf *out)
{
	char day[32];
	struct tm tm = broken_down(m->begin_s);
	strftime(day, sizeof day, "%Y-%m-%d", &tm);
	buf_addf(out, "\n--=_%.*s\n"
		      "Content-Type: text/plain; charset=us-ascii\n\n",
	    STR_ARG(m->report_id));
	buf_addf(out, "This is a DMARC aggregate report (RFC 9990) on mail "
		      "that names\n%.*s\nas its author's domain, received by "
		      "%.*s\non %s (UTC): %llu messages.\n\n"
		      "It is sent because the domain's policy record asks for "
		      "it (rua=).\n",
	    STR_ARG(m->domain), STR_ARG(m->submitter), day,
	    (unsigned long long)m->messages);
}

static void
add_attachment(const struct aggregate_mail *m, struct buf *out)
{
	buf_addf(out, "\n--=_%.*s\nContent-Type: application/gzip;\n"
		      " name=\"%.*s\"\n",
	    STR_ARG(m->report_id), STR_ARG(m->file_name));
	buf_addf(out, "Content-Disposition: attachment;\n filename=\"%.*s\"\n"
		      "Content-Transfer-Encoding: base64\n\n",
	    STR_ARG(m->file_name));
	for (size_t at = 0; at < m->gzip.len; at += LINE_BYTES) {
		struct str part = str_sub(m->gzip, at, LINE_BYTES);
		base64_encode(out, part.ptr, part.len);
		buf_add_char(out, '\n');
	}
	buf_addf(out, "\n--=_%.*s--\n", STR_ARG(m->report_id));
}

enum res
aggregate_mail_write(const struct aggregate_mail *m, struct buf *out)
{
	add_header(m, out);
	add_text_part(m, out);
	add_attachment(m, out);
	return out->error;
}
