/* Who did what with the archive: events, one frame each, in the family
 * "audit", which does not expire with mail. Searching, showing, exporting,
 * erasing, holding, releasing and expiring are written down before they are
 * done. The texts lie in META and are salted like everything there, so that a
 * leaf tells nothing of what somebody searched for. */
#ifndef ARCHIVE_AUDIT_H
#define ARCHIVE_AUDIT_H

#include "archive/format/record.h"
#include "archive/store/store.h"

#define AUDIT_MAX_IDS    10000
#define AUDIT_MAX_RECORD ((size_t)1 << 20)
#define AUDIT_TOKEN      16

/* META tags of an event. Never reuse a number. */
enum event_tag {
	EVENT_ACTION = 1, /* "search", "erase", "expire", … */
	EVENT_UID = 2,    /* u32 */
	EVENT_LOGIN = 3,
	EVENT_QUERY = 4,  /* search text, or that of a hold */
	EVENT_ID = 5,     /* u64, list: messages it is about */
	EVENT_REASON = 6,
	EVENT_NAME = 7,   /* of a hold */
	EVENT_SHARD = 8,  /* list of records, see expire.c */
	EVENT_TOKEN = 9,  /* 16 bytes: of an erasure */
	EVENT_LEAF = 10,  /* list: frame number u64, leaf 32: what is erased */
	EVENT_INTENT = 11, /* u64: id of the intent that this ends */
};
enum event_shard_tag {
	EVENT_SHARD_NUMBER = 1, /* u32 */
	EVENT_SHARD_FAMILY = 2,
	EVENT_SHARD_PERIOD = 3,
	EVENT_SHARD_FRAMES = 4, /* u64 */
	EVENT_SHARD_BYTES = 5,  /* u64, on disk */
	EVENT_SHARD_HELD = 6,   /* u64: frames kept in family "hold" */
};

/* Who asks. */
struct audit_who {
	uint32_t uid;
	struct str login;
};
struct audit_event {
	struct str action;
	struct audit_who who;
	struct str query, reason, name;
	const uint64_t *ids;
	size_t id_count;       /* more than AUDIT_MAX_IDS: RES_LIMIT */
	/* further records, written as they are; may be NULL */
	const struct record *more;
};

/* Durable when it returns RES_OK. `is_intent`: a tombstone, which a restart
 * finds without reading every event. */
HN_CHECK enum res audit_write(struct store *s, const struct audit_event *e,
    bool is_intent, int64_t now_us, uint64_t *out_id);

struct audit_entry {
	uint64_t id;
	int64_t time_us;
	bool is_intent;
	struct audit_event event; /* `more` NULL */
	struct str meta;          /* all of it */
};
/* Every event from shard `shard` (0: the first), frame `frame` on, oldest
 * first. Goes on while `each` returns true. What cannot be read is passed
 * over and counted. */
HN_CHECK enum res audit_walk(const char *store_path, uint32_t shard,
    uint64_t frame, bool only_intents,
    bool (*each)(void *context, const struct audit_entry *e), void *context,
    uint64_t *out_unreadable, struct err *err);
/* Where the family ends now. */
HN_CHECK enum res audit_end(const char *store_path, struct err *err,
    uint32_t *out_shard, uint64_t *out_frames);

#endif
