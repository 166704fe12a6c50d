/* Aggregate reports (RFC 9990) from rows (flow/aggregate_row.h): equal ones
 * are counted, the whole is written as XML or as text for a person. Pure: no
 * clock, no DNS, no files. Rows come from a file and are not trusted: damaged
 * ones are counted and left out, bytes that XML cannot hold are dropped.
 *
 * One report is about one policy domain and one day. Should the policy change
 * during the day, the report tells the one of the newest row (RUA-02), and a
 * reason at each record that was judged by an earlier one tells that one. */
#ifndef FLOW_AGGREGATE_H
#define FLOW_AGGREGATE_H

#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/res.h"
#include "base/str.h"

struct aggregate;

/* Distinct records of one report; what comes beyond is only counted. Enough
 * for any sender, and what a forger with many addresses can cost us. */
#define AGGREGATE_MAX_RECORDS 50000
#define AGGREGATE_MAX_URIS    64
/* Memory for one report's rows: the arena's maximum for aggregate_new. */
#define AGGREGATE_MEMORY ((size_t)256 << 20)
/* The XML before compression; the records of the fewest messages are left
 * out beyond it, and the report's `error` says so. */
#define AGGREGATE_MAX_XML ((size_t)32 << 20)

/* NULL without memory. */
struct aggregate *aggregate_new(struct arena *a);
/* Rows in order of time. Copies what it keeps. */
void aggregate_add(struct aggregate *g, struct str row);

struct aggregate_counts {
	uint64_t messages, records;
	uint64_t damaged;  /* rows that could not be read */
	uint64_t left_out; /* messages beyond the maximum */
};
struct aggregate_counts aggregate_count(const struct aggregate *g);

/* The policy's domain; empty when there is no record at all. */
struct str aggregate_domain(const struct aggregate *g);
/* The URIs of the newest policy's rua, up to `max`. */
size_t aggregate_rua(
    const struct aggregate *g, struct str *out_uris, size_t max);

struct aggregate_facts {
	struct str org_name, email;
	struct str report_id;    /* letters and digits */
	int64_t begin_s, end_s;  /* both within the day */
};

/* Append the XML, at most `max_bytes` of it. RES_NOTFOUND without a record. */
HN_CHECK enum res aggregate_xml(const struct aggregate *g,
    const struct aggregate_facts *f, size_t max_bytes, struct buf *out);
/* The same for a terminal. */
HN_CHECK enum res aggregate_preview(const struct aggregate *g,
    const struct aggregate_facts *f, struct buf *out);

/* --- between the files of this module --- */

struct aggregate_record {
	uint64_t count;
	struct str bytes;  /* ROW_RECORD */
	struct str policy; /* ROW_POLICY of the first of them */
};
/* The most frequent first, then by bytes. NULL without memory or records. */
const struct aggregate_record *aggregate_sorted(
    const struct aggregate *g, size_t *out_count);
struct str aggregate_policy(const struct aggregate *g); /* the newest */
/* Judged by another policy than the report tells: append which one, "p=none
 * sp=none …". False: by the same. */
bool aggregate_earlier(const struct aggregate *g,
    const struct aggregate_record *record, struct buf *out);

#endif
