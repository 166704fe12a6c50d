/* What became of each message in the MTA's queue, put together from its log:
 * one life from the line that it came in to the line that it was removed. A
 * queue id is used again for other mail, by the same host and by others, so a
 * life is found by id and time. Mail that went through a content filter on
 * this host and came back, or was queued again by the operator, has several
 * lives, which are joined. */
#ifndef CLI_LIVES_H
#define CLI_LIVES_H

#include "base/arena.h"
#include "base/res.h"
#include "cli/maillog.h"

#define LIVES_MAX ((size_t)8 << 20)

enum life_source {
	LIFE_UNKNOWN,  /* began before the log did */
	LIFE_SMTP,
	LIFE_LOCAL,    /* the sendmail command */
	LIFE_INTERNAL, /* Postfix's own: bounces, notices, forwarded mail */
};

struct life {
	struct life *older;  /* in the chain of the table */
	struct str queue_id, host, service, message_id;
	int64_t begin_us, last_us;
	enum life_source source;
	bool done;           /* nothing more will happen to it */
	/* deliveries to somewhere else, not to ourselves again */
	unsigned sent;
	bool bounced, deferred, expired, refused, discarded, held, deleted;
	/* other lives of it */
	struct str from_id, to_id;
	struct life *parent;
	bool child_delivered;
	/* newest id, 0: none; the first is set by the caller */
	uint64_t archived, child_archived;
};

struct lives;

/* `memory`: bytes at most. NULL without memory. */
struct lives *lives_new(size_t memory);
void lives_free(struct lives **l);
/* RES_LIMIT, RES_NOMEM: the log is too long to be taken in at once. */
HN_CHECK enum res lives_add(
    struct lives *l, const struct maillog_event *e);
/* The life of this id at that time, with `slack_us` around it; NULL. */
struct life *lives_find(
    const struct lives *l, struct str queue_id, int64_t at_us,
    int64_t slack_us);
/* Once `archived` is set: join the lives of one message. */
void lives_join(struct lives *l);
size_t lives_count(const struct lives *l);
/* In the order of their beginning in the log. */
struct life *lives_at(const struct lives *l, size_t i);

bool life_delivered(const struct life *f);
/* The id, also of another life of it; 0: never. */
uint64_t life_archived(const struct life *f);
/* Why it was not delivered: "refused", "deleted", …; "queued". */
const char *life_fate(const struct life *f);
const char *life_source_word(enum life_source s);

#endif
