/* Everything a decision rested on, as one record (archive/record.h): kept in
 * the decision store, and what `hanaper explain` renders, for a message of the
 * last days and for a file alike. */
#ifndef FLOW_TRACE_H
#define FLOW_TRACE_H

#include "archive/format/record.h"
#include "flow/message.h"

/* Never reuse a number. T = text, N = u64, R = nested record. */
enum trace_tag {
	TRACE_ID = 1,             /* T */
	TRACE_QUEUE_ID = 2,       /* T */
	TRACE_TIME = 3,           /* N µs */
	TRACE_DIRECTION = 4,      /* T in, out, seen */
	TRACE_DIRECTION_WHY = 5,  /* T */
	TRACE_MAIL_FROM = 6,      /* T */
	TRACE_RCPT = 7,           /* T, list, at most TRACE_MAX_RCPTS */
	TRACE_RCPT_COUNT = 8,     /* N */
	TRACE_CLIENT = 9,         /* T address */
	TRACE_CLIENT_NAME = 10,   /* T */
	TRACE_HELO = 11,          /* T */
	TRACE_AUTH = 12,          /* T */
	TRACE_AUTHOR_STATE = 13,  /* T from_state_text */
	TRACE_AUTHOR = 14,        /* T, list of author domains */
	TRACE_DKIM = 15,          /* R, list */
	TRACE_SPF = 16,           /* R, list */
	TRACE_ARC = 17,           /* R */
	TRACE_DMARC = 18,         /* R */
	TRACE_IPREV = 19,         /* R */
	TRACE_POLICY = 20,        /* R */
	TRACE_SIGNED = 21,        /* R, list */
	TRACE_UNSIGNED_WHY = 22,  /* T */
	TRACE_REPLY = 23,         /* T "550 5.7.26 …"; absent: accepted */
	TRACE_REFUSAL = 24,       /* T word of a refusal of ours */
	TRACE_RESULTS = 25,       /* T payload of Authentication-Results */
	TRACE_ARCHIVE_ID = 26,    /* N */
	TRACE_BYTES = 27,         /* N */
	TRACE_DISPOSITION = 28,   /* T accept, quarantine, hold, reject, tempfail */
	TRACE_SEALED = 29,        /* T sealing domain */
	TRACE_JUDGED_CLIENT = 31, /* T behind a trusted relay: the client that
	                             was judged, or "unknown" */
	TRACE_ARCHIVE_FAMILY = 32, /* T absent: not archived, for this reason */
	TRACE_ARCHIVE_WHY = 33,   /* T the setting that decided */
	TRACE_ARC_SEALED_FAIL = 30, /* N 1: the newest seal said cv=fail */
};

/* Inside the nested ones. */
enum trace_part {
	PART_RESULT = 1,      /* T result word */
	PART_REASON = 2,      /* T */
	PART_DOMAIN = 3,      /* T d=, SPF domain, author, sealing domain */
	PART_SELECTOR = 4,    /* T */
	PART_ALGORITHM = 5,   /* T */
	PART_IDENTITY = 6,    /* T i=, or SPF identity "helo" | "mailfrom" */
	PART_DIAGNOSIS = 7,   /* T */
	PART_BITS = 8,        /* N */
	PART_TESTING = 9,     /* N 1: t=y */
	PART_MECHANISM = 10,  /* T */
	PART_EXPLANATION = 11, /* T */
	PART_INSTANCES = 12,  /* N */
	PART_OLDEST_PASS = 13, /* N */
	PART_POLICY = 14,     /* T none, quarantine, reject */
	PART_POLICY_TAG = 15, /* T p, sp, np */
	PART_RECORD = 16,     /* T the record's text */
	PART_RECORD_DOMAIN = 17, /* T */
	PART_ORG_DOMAIN = 18, /* T */
	PART_DKIM_ALIGNED = 19, /* N 1 */
	PART_SPF_ALIGNED = 20, /* N 1 */
	PART_ALIGNED = 21,    /* T the aligned identifier */
	PART_ACTION = 22,     /* T */
	PART_CAUSE = 23,      /* T */
	PART_ASKED = 24,      /* T */
	PART_ASKED_CAUSE = 25, /* T */
	PART_SHADOWED = 26,   /* T */
	PART_OVERRIDE = 27,   /* T type */
	PART_OVERRIDE_REASON = 28, /* T */
	PART_DIFFER = 29,     /* N 1: recipients had different rules */
	PART_NAME = 30,       /* T iprev's name */
	PART_TEMPORARY = 31,  /* N 1 */
	PART_SETTING = 32,    /* T dmarc = … of the configuration */
	PART_RULE = 33,       /* T the name of an [override] section */
};
#define TRACE_MAX_RCPTS 20

/* The record of a finished message; the caller checks out->buf.error. */
void trace_encode(const struct message *m, struct record *out);

/* The DNS answers a message's verdicts rest on, as EVIDENCE (archive.md §3). */
void trace_evidence(const struct message *m, struct record *out);

#endif
