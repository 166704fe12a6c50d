/* What became of the aggregate reports of the last weeks, in state_dir: which
 * mail was sent, which is to be tried again, which addresses bounce. A small
 * SQLite file of one writer at a time, the command that sends. */
#ifndef ARCHIVE_REPORTS_H
#define ARCHIVE_REPORTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/res.h"
#include "base/str.h"

struct reports;

#define REPORTS_FILE    "reports.db"       /* in state_dir */
#define REPORTS_KEEP_S  ((int64_t)60 * 86400)
#define REPORTS_MAX_TRIES 12
#define REPORTS_TOKEN_MAX 32

/* Open for sending: creates the file, and keeps others from sending at the
 * same time (RES_AGAIN). With `read_only` RES_NOTFOUND when there is none. */
HN_CHECK enum res reports_open(const char *path, bool read_only,
    struct err *err, struct reports **out);
void reports_close(struct reports **r);
/* Forget what is older than REPORTS_KEEP_S. */
HN_CHECK enum res reports_trim(struct reports *r, int64_t now_s);

enum report_state {
	REPORT_DUE,      /* never tried, or to be tried again at next_s */
	REPORT_SENT,     /* handed to the MTA */
	REPORT_GIVEN_UP, /* refused for good, or tried too often */
};
/* One mail: a domain's report of one day for one address. */
struct report_mail {
	struct str domain, address; /* the key, with the day */
	int64_t day;                /* days since 1970-01-01 */
	enum report_state state;
	unsigned tries;
	int64_t next_s;
	char token[REPORTS_TOKEN_MAX + 1]; /* of its envelope sender */
};

/* Fill state, tries, next_s and token from the file: REPORT_DUE with no tries
 * when nothing is known. */
HN_CHECK enum res reports_get(struct reports *r, struct report_mail *m);
HN_CHECK enum res reports_put(
    struct reports *r, const struct report_mail *m, int64_t now_s);
/* When to try again after `tries` failures: 15 minutes, doubled up to 6 h. */
int64_t reports_next_s(unsigned tries, int64_t now_s);

/* The mail with this token came back. The second one in a row makes its
 * address dead for two days, each further one twice as long, up to 64 days;
 * four days without one after that, and it counts as well again. RES_NOTFOUND: no such mail, or known to
 * have come back. */
HN_CHECK enum res reports_bounced(
    struct reports *r, struct str token, int64_t now_s);
/* Nothing goes to `address` before *out_until_s (0: it is well). */
HN_CHECK enum res reports_dead_until(
    struct reports *r, struct str address, int64_t *out_until_s);

#endif
