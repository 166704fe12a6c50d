/* The XML of RFC 9990, appendix A: elements in the order of its schema. */
#include <limits.h>

#include "base/codec.h"
#include "flow/aggregate.h"
#include "flow/aggregate_row.h"

#define NAMESPACE  "urn:ietf:params:xml:ns:dmarc-2.0"
#define MAX_RECORD ((size_t)4 << 20) /* one record's XML */
#define MAX_HEAD   ((size_t)64 << 10)
#define MAX_TEXT   1024              /* one text, before escaping */

/* XML 1.0 §2.2; line ends and tabs become blanks. */
static bool
is_char(uint32_t c)
{
	return (c >= 0x20 && c <= 0x7e) || (c >= 0xa0 && c <= 0xd7ff) ||
	    (c >= 0xe000 && c <= 0xfffd) || (c >= 0x10000 && c <= 0x10ffff);
}

static void
add_char(struct buf *out, uint32_t c)
{
	switch (c) {
	case '&':
		buf_add_c(out, "&amp;");
		return;
	case '<':
		buf_add_c(out, "&lt;");
		return;
	case '>':
		buf_add_c(out, "&gt;");
		return;
	case '"':
		buf_add_c(out, "&quot;");
		return;
	case '\t':
	case '\n':
	case '\r':
		c = ' ';
		break;
	}
	if (is_char(c))
		utf8_encode(out, c);
}

/* What is no UTF-8 is dropped byte by byte. */
static void
add_text(struct buf *out, struct str s)
{
	s = str_sub(s, 0, MAX_TEXT);
	while (s.len != 0) {
		uint32_t c;
		size_t n = utf8_decode(s, &c);
		if (n != 0)
			add_char(out, c);
		s = str_skip(s, n != 0 ? n : 1);
	}
}

static void
element(struct buf *out, const char *name, struct str value)
{
	buf_addf(out, "<%s>", name);
	add_text(out, value);
	buf_addf(out, "</%s>", name);
}

/* Of a record, when it is there. */
static void
element_of(struct buf *out, const char *name, struct str record, unsigned tag)
{
	struct str value = record_find(record, tag);
	if (value.len != 0)
		element(out, name, value);
}

/* --- one record -------------------------------------------------------------- */

/* What stands in an xs:enumeration must be one of its values. */
static bool
is_one_of(struct str value, const char *const *words)
{
	for (; *words != NULL; words++)
		if (str_eq(value, str_c(*words)))
			return true;
	return false;
}

static void
enumerated(struct buf *out, const char *name, struct str value,
    const char *const *words)
{
	element(out, name, is_one_of(value, words) ? value : str_c(words[0]));
}

/* The first one stands for what is none of them. */
static const char *const dispositions[] = { "none", "pass", "quarantine",
	"reject", NULL };
static const char *const aligned[] = { "fail", "pass", NULL };
static const char *const reasons[] = { "other", "local_policy", "mailing_list",
	"policy_test_mode", "trusted_forwarder", NULL };
static const char *const dkim_results[] = { "none", "pass", "fail", "policy",
	"neutral", "temperror", "permerror", NULL };
static const char *const spf_results[] = { "none", "pass", "fail", "softfail",
	"policy", "neutral", "temperror", "permerror", NULL };

static void
add_reason(struct buf *out, struct str r)
{
	buf_add_c(out, "<reason>");
	enumerated(out, "type", record_find(r, ROW_REASON_TYPE), reasons);
	element_of(out, "comment", r, ROW_REASON_COMMENT);
	buf_add_c(out, "</reason>");
}

static void
add_dkim(struct buf *out, struct str r)
{
	buf_add_c(out, "<dkim>");
	element(out, "domain", record_find(r, ROW_AUTH_DOMAIN));
	element(out, "selector", record_find(r, ROW_AUTH_SELECTOR));
	enumerated(
	    out, "result", record_find(r, ROW_AUTH_RESULT), dkim_results);
	element_of(out, "human_result", r, ROW_AUTH_HUMAN);
	buf_add_c(out, "</dkim>");
}

static void
add_spf(struct buf *out, struct str r)
{
	buf_add_c(out, "<spf>");
	element(out, "domain", record_find(r, ROW_AUTH_DOMAIN));
	buf_add_c(out, "<scope>mfrom</scope>");
	enumerated(
	    out, "result", record_find(r, ROW_AUTH_RESULT), spf_results);
	element_of(out, "human_result", r, ROW_AUTH_HUMAN);
	buf_add_c(out, "</spf>");
}

static void
add_each(struct buf *out, struct str record, unsigned wanted, unsigned max,
    void (*add)(struct buf *, struct str))
{
	struct record_reader r;
	unsigned tag;
	struct str value;
	if (record_open(record, &r) != RES_OK)
		return;
	while (max > 0 && record_next(&r, &tag, &value))
		if (tag == wanted) {
			add(out, value);
			max--;
		}
}

/* "p=none sp=none np=none adkim=r aspf=r t=n", each value as it came. */
#define MAX_EARLIER ((size_t)64 << 10)

static void
add_earlier(struct buf *out, const struct aggregate *g,
    const struct aggregate_record *record)
{
	struct buf text;
	buf_init(&text, MAX_EARLIER);
	buf_add_c(&text, "judged by the policy of that time, ");
	if (aggregate_earlier(g, record, &text)) {
		buf_add_c(out, "<reason><type>other</type>");
		element(out, "comment", buf_str(&text));
		buf_add_c(out, "</reason>");
	}
	buf_done(&text);
}

static void
add_record(struct buf *out, const struct aggregate *g,
    const struct aggregate_record *record)
{
	struct str r = record->bytes;
	buf_add_c(out, "  <record>\n    <row>");
	element(out, "source_ip", record_find(r, ROW_SOURCE_IP));
	buf_addf(out, "<count>%llu</count><policy_evaluated>",
	    (unsigned long long)record->count);
	enumerated(out, "disposition", record_find(r, ROW_DISPOSITION),
	    dispositions);
	enumerated(out, "dkim", record_find(r, ROW_DKIM_ALIGNED), aligned);
	enumerated(out, "spf", record_find(r, ROW_SPF_ALIGNED), aligned);
	add_each(out, r, ROW_REASON, UINT_MAX, add_reason);
	add_earlier(out, g, record);
	buf_add_c(out, "</policy_evaluated></row>\n    <identifiers>");
	element(out, "header_from", record_find(r, ROW_HEADER_FROM));
	element(out, "envelope_from", record_find(r, ROW_ENVELOPE_FROM));
	buf_add_c(out, "</identifiers>\n    <auth_results>");
	add_each(out, r, ROW_DKIM, ROW_MAX_DKIM, add_dkim);
	add_each(out, r, ROW_SPF, 1, add_spf);
	buf_add_c(out, "</auth_results>\n  </record>\n");
}

/* --- the whole --------------------------------------------------------------- */

static void
add_metadata(struct buf *out, const struct aggregate_facts *f, uint64_t missing)
{
	buf_add_c(out, "  <report_metadata>\n    ");
	element(out, "org_name", f->org_name);
	element(out, "email", f->email);
	element(out, "report_id", f->report_id);
	buf_addf(out, "\n    <date_range><begin>%lld</begin><end>%lld</end>"
		      "</date_range>\n",
	    (long long)f->begin_s, (long long)f->end_s);
	if (missing != 0)
		buf_addf(out,
		    "    <error>%llu messages are not in this report: it "
		    "would be too large</error>\n",
		    (unsigned long long)missing);
	buf_add_c(out, "    <generator>hanaper " PACKAGE_VERSION
		       "</generator>\n  </report_metadata>\n");
}

static void
add_policy(struct buf *out, struct str p)
{
	static const char *const policies[] = { "none", "quarantine", "reject",
		NULL };
	static const char *const modes[] = { "r", "s", NULL };
	static const char *const methods[] = { "treewalk", "psl", NULL };
	static const char *const flags[] = { "n", "y", NULL };
	buf_add_c(out, "  <policy_published>\n    ");
	element(out, "domain", record_find(p, ROW_DOMAIN));
	enumerated(out, "discovery_method", record_find(p, ROW_METHOD), methods);
	enumerated(out, "p", record_find(p, ROW_P), policies);
	enumerated(out, "sp", record_find(p, ROW_SP), policies);
	enumerated(out, "np", record_find(p, ROW_NP), policies);
	enumerated(out, "adkim", record_find(p, ROW_ADKIM), modes);
	enumerated(out, "aspf", record_find(p, ROW_ASPF), modes);
	element_of(out, "fo", p, ROW_FO);
	enumerated(out, "testing", record_find(p, ROW_TESTING), flags);
	buf_add_c(out, "\n  </policy_published>\n");
}

/* As many records as fit, whole ones; the others' messages are counted. */
static enum res
add_records(struct buf *out, const struct aggregate *g, uint64_t *out_missing)
{
	size_t count;
	const struct aggregate_record *records = aggregate_sorted(g, &count);
	struct buf one;
	bool full = false;
	if (records == NULL)
		return count == 0 ? RES_NOTFOUND : RES_NOMEM;
	buf_init(&one, MAX_RECORD);
	*out_missing = aggregate_count(g).left_out;
	for (size_t i = 0; i < count; i++) {
		buf_reset(&one);
		if (!full)
			add_record(&one, g, &records[i]);
		full = full || one.error != RES_OK ||
		    one.len > out->max - out->len;
		if (full)
			*out_missing += records[i].count;
		else
			buf_add_str(out, buf_str(&one));
	}
	buf_done(&one);
	return out->len != 0 ? out->error : RES_LIMIT;
}

enum res
aggregate_xml(const struct aggregate *g, const struct aggregate_facts *f,
    size_t max_bytes, struct buf *out)
{
	struct buf records;
	uint64_t missing = 0;
	if (max_bytes <= MAX_HEAD)
		return RES_LIMIT;
	buf_init(&records, max_bytes - MAX_HEAD);
	enum res r = add_records(&records, g, &missing);
	if (r == RES_OK) {
		buf_add_c(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
			       "<feedback xmlns=\"" NAMESPACE "\">\n"
			       "  <version>1.0</version>\n");
		add_metadata(out, f, missing);
		add_policy(out, aggregate_policy(g));
		buf_add_str(out, buf_str(&records));
		buf_add_c(out, "</feedback>\n");
		r = out->error;
	}
	buf_done(&records);
	return r;
}
