/* A report for a terminal. */
#include "base/clock.h"
#include "flow/aggregate.h"
#include "flow/aggregate_row.h"

#define MAX_SHOWN 300 /* bytes of one text */

static void
show(struct buf *out, struct str s)
{
	s = str_sub(s, 0, MAX_SHOWN);
	for (size_t i = 0; i < s.len; i++) {
		unsigned char c = (unsigned char)s.ptr[i];
		buf_add_char(out, c < 0x20 || c >= 0x7f ? '?' : (char)c);
	}
}

static void
show_of(struct buf *out, const char *before, struct str record, unsigned tag)
{
	struct str value = record_find(record, tag);
	if (value.len == 0)
		return;
	buf_add_c(out, before);
	show(out, value);
}

static void
show_auth(struct buf *out, const char *method, struct str r)
{
	buf_addf(out, "             %s=", method);
	show(out, record_find(r, ROW_AUTH_RESULT));
	show_of(out, " ", r, ROW_AUTH_DOMAIN);
	show_of(out, " selector ", r, ROW_AUTH_SELECTOR);
	show_of(out, ": ", r, ROW_AUTH_HUMAN);
	buf_add_char(out, '\n');
}

#define MAX_POLICY 4096

static void
show_earlier(struct buf *out, const struct aggregate *g,
    const struct aggregate_record *record)
{
	struct buf text;
	buf_init(&text, MAX_POLICY);
	if (aggregate_earlier(g, record, &text)) {
		buf_add_c(out, "             by the policy of that time, ");
		show(out, buf_str(&text));
		buf_add_char(out, '\n');
	}
	buf_done(&text);
}

static void
show_record(struct buf *out, const struct aggregate *g,
    const struct aggregate_record *record)
{
	struct record_reader r;
	unsigned tag;
	struct str v, all = record->bytes;
	buf_addf(out, "%8llu  ", (unsigned long long)record->count);
	show(out, record_find(all, ROW_SOURCE_IP));
	show_of(out, "  from ", all, ROW_HEADER_FROM);
	show_of(out, ", envelope ", all, ROW_ENVELOPE_FROM);
	show_of(out, "\n          disposition ", all, ROW_DISPOSITION);
	show_of(out, ", aligned dkim ", all, ROW_DKIM_ALIGNED);
	show_of(out, ", spf ", all, ROW_SPF_ALIGNED);
	buf_add_char(out, '\n');
	show_earlier(out, g, record);
	if (record_open(all, &r) != RES_OK)
		return;
	while (record_next(&r, &tag, &v)) {
		if (tag == ROW_REASON) {
			show_of(out, "             because ", v,
			    ROW_REASON_TYPE);
			show_of(out, ": ", v, ROW_REASON_COMMENT);
			buf_add_char(out, '\n');
		} else if (tag == ROW_DKIM) {
			show_auth(out, "dkim", v);
		} else if (tag == ROW_SPF) {
			show_auth(out, "spf", v);
		}
	}
}

static void
show_head(struct buf *out, const struct aggregate *g,
    const struct aggregate_facts *f)
{
	struct str uris[AGGREGATE_MAX_URIS], p = aggregate_policy(g);
	size_t n = aggregate_rua(g, uris, AGGREGATE_MAX_URIS);
	buf_add_c(out, "Report on ");
	show(out, aggregate_domain(g));
	buf_add_c(out, " by ");
	show(out, f->org_name);
	buf_add_c(out, " <");
	show(out, f->email);
	buf_add_c(out, ">, id ");
	show(out, f->report_id);
	buf_add_c(out, "\n  from ");
	clock_format_us(out, f->begin_s * 1000000);
	buf_add_c(out, " to ");
	clock_format_us(out, f->end_s * 1000000);
	show_of(out, "\n  policy: p=", p, ROW_P);
	show_of(out, " sp=", p, ROW_SP);
	show_of(out, " np=", p, ROW_NP);
	show_of(out, " adkim=", p, ROW_ADKIM);
	show_of(out, " aspf=", p, ROW_ASPF);
	show_of(out, " fo=", p, ROW_FO);
	show_of(out, " t=", p, ROW_TESTING);
	show_of(out, ", found by ", p, ROW_METHOD);
	buf_add_c(out, "\n  wanted by:");
	for (size_t i = 0; i < n; i++) {
		buf_add_char(out, ' ');
		show(out, uris[i]);
	}
	buf_add_char(out, '\n');
}

enum res
aggregate_preview(const struct aggregate *g, const struct aggregate_facts *f,
    struct buf *out)
{
	struct aggregate_counts n = aggregate_count(g);
	size_t count;
	const struct aggregate_record *records = aggregate_sorted(g, &count);
	if (records == NULL)
		return count == 0 ? RES_NOTFOUND : RES_NOMEM;
	show_head(out, g, f);
	buf_addf(out, "  %llu messages in %llu records",
	    (unsigned long long)n.messages, (unsigned long long)n.records);
	if (n.left_out != 0)
		buf_addf(out, ", %llu messages left out",
		    (unsigned long long)n.left_out);
	buf_add_c(out, "\n\n");
	for (size_t i = 0; i < count; i++)
		show_record(out, g, &records[i]);
	return out->error;
}
