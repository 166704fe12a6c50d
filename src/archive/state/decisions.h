/* The decisions of the last days, in state_dir: what `hanaper explain` tells,
 * what DMARC reports count, where the token of re-injected mail is looked up.
 * One bounded SQLite file behind a queue in memory: mail never waits for it,
 * and a crash loses the newest explanations, not mail.
 *
 * Like the rest of this floor it knows no verdict types: records are bytes in
 * the encoding of archive/record.h, keys are texts. One process writes (the
 * milter process), any number read. */
#ifndef ARCHIVE_DECISIONS_H
#define ARCHIVE_DECISIONS_H

#include <stdint.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/res.h"
#include "base/str.h"

struct decisions;

struct decisions_options {
	const char *path;    /* the file */
	int64_t keep_us;     /* older entries go */
	uint64_t max_bytes;  /* the oldest go beyond it */
	struct clock clock;
};
#define DECISIONS_FILE      "decisions.db" /* in state_dir */
#define DECISIONS_GATHER_US 100000 /* a decision may wait so long to be kept */
#define DECISIONS_KEEP_US   ((int64_t)8 * 24 * 3600 * 1000000)
#define DECISIONS_MAX_BYTES ((uint64_t)1 << 30)
#define DECISIONS_MAX_QUEUE 4096 /* entries waiting; more are dropped, counted */

/* What a report counts: an aggregate row and the domain it is found by. */
struct decision_row {
	struct str domain, row;
};
#define DECISIONS_MAX_ROWS 8 /* of one message */

/* One message's decision. `trace` and `evidence` are records. */
struct decision_entry {
	struct str id;       /* unique */
	struct str queue_id; /* may come twice in the life of a queue */
	int64_t time_us;
	struct str trace, evidence;
	const struct decision_row *rows; /* not read back with an entry */
	size_t row_count;    /* at most DECISIONS_MAX_ROWS */
};

/* Create or open, start the writer thread. A damaged file is set aside as
 * PATH.bad and a new one begun. */
HN_CHECK enum res decisions_open(const struct decisions_options *o,
    struct err *err, struct decisions **out);
/* Writes what waits. Clears. */
void decisions_close(struct decisions **d);

/* Copies and returns at once. */
void decisions_put(struct decisions *d, const struct decision_entry *e);
uint64_t decisions_dropped(const struct decisions *d);
/* Wait until all that was put before is in the file. */
void decisions_flush(struct decisions *d);

/* By id, also among those that wait; texts in `a`. RES_NOTFOUND. */
HN_CHECK enum res decisions_get(struct decisions *d, struct arena *a,
    struct str id, struct decision_entry *out);

/* --- reading without being the writer --- */
/* All entries whose id or queue id is `key`, oldest first. RES_NOTFOUND: no
 * file, or no entry. */
HN_CHECK enum res decisions_find(const char *path, struct arena *a,
    struct str key, struct err *err, struct decision_entry **out,
    size_t *out_count);

/* The rows of [from, to) for `domain`, or for all when empty, in order of
 * domain and time, one call each; views are good during the call. */
typedef void (*decisions_row)(void *context, struct str domain,
    int64_t time_us, struct str row);
HN_CHECK enum res decisions_rows(const char *path, struct str domain,
    int64_t from_us, int64_t to_us, struct err *err, decisions_row fn,
    void *context);

#endif
