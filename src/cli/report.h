/* What the files of `hanaper report` share: the options, the day, and one
 * domain's report of a day made from the decision store. */
#ifndef CLI_REPORT_H
#define CLI_REPORT_H

#include "archive/state/reports.h"
#include "cli/offline.h"
#include "flow/aggregate.h"

struct report_options {
	struct offline offline; /* configuration, clock and, to send, DNS */
	const char *domain, *day, *out, *sendmail;
	bool preview, list, dry_run, verbose, json;
	int64_t now_s, day_number; /* days since 1970; the day asked for */
	struct str submitter, org, email, decisions, reports;
	struct arena *arena;       /* of the command */
};
#define REPORT_DAY_S 86400

struct report {
	struct arena *arena;
	struct aggregate *aggregate;
	struct aggregate_facts facts;
	struct str file_name;
};

/* Read the day's rows for `domain`. RES_NOTFOUND: there are none. */
HN_CHECK enum res report_read(const struct report_options *o,
    struct str domain, int64_t day, struct err *err, struct report *out);
/* The compressed XML, small enough to be mailed; buf_done by the caller. */
HN_CHECK enum res report_compress(const struct report *r, struct buf *out);
void report_done(struct report *r);

/* The domains that asked for reports about mail of that day, sorted, at most
 * REPORT_MAX_DOMAINS. In o->arena. */
#define REPORT_MAX_DOMAINS 200000
struct report_domains {
	struct str *items;
	size_t count;
	uint64_t *messages;
};
HN_CHECK enum res report_domains(const struct report_options *o, int64_t day,
    struct err *err, struct report_domains *out);
bool report_excluded(const struct report_options *o, struct str domain);

/* "2026-11-30" */
struct str report_day_text(struct arena *a, int64_t day);

int report_list(struct report_options *o);
int report_send(struct report_options *o);

#endif
