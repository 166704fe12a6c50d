/* Retention (archive.md §7): shards go as a whole once the month they are of
 * has been over for as long as their family keeps mail. What a hold wants of
 * them is first copied to family "hold" (held.h); shards of that family go
 * when nothing in them is held any more. What goes is written down in the
 * audit family before it goes. A shard goes by one rename, so that after a
 * crash it is there whole or not at all. */
#ifndef ARCHIVE_EXPIRE_H
#define ARCHIVE_EXPIRE_H

#include "archive/keeping/audit.h"
#include "archive/store/store.h"

struct expire_rule {
	const char *family;
	int64_t keep_s;
};

enum expire_fate {
	EXPIRE_GONE,  /* or, in a plan, due */
	EXPIRE_LATER, /* plan: at `due_us` */
	EXPIRE_STAYS, /* is due, but `why` */
};
struct expire_item {
	struct str dir, family, period, why;
	uint32_t number;
	enum expire_fate fate;
	int64_t due_us;
	uint64_t bytes;  /* on disk: what comes back */
	uint64_t frames; /* unknown without looking into it: 0 */
	uint64_t held;   /* of them copied to family "hold" */
};

struct expire_request {
	const struct expire_rule *rules;
	size_t rule_count;
	bool plan;       /* change nothing */
	int64_t now_us;
	struct audit_who who;
};

/* Items in `a`: families with a rule and the hold family, oldest first. What
 * one shard has against it does not stop the others. RES_AGAIN with a line:
 * somebody else is at it. */
HN_CHECK enum res archive_expire(struct store *s,
    const struct expire_request *rq, struct arena *a, struct err *err,
    struct expire_item **out, size_t *out_count);

/* At start: remove what a crash left of shards that are gone. */
void expire_clean(struct store *s);

#endif
