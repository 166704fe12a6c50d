/* What DMARC aggregate reports (RFC 9990) need of one message, as a record of
 * texts in the decision store: one row for each author domain of an inbound
 * message (RUA-03) whose policy record asks for reports. A row has two parts: the policy as published, and
 * what was seen. Equal messages have equal bytes in the second part, so that
 * counting rows is comparing bytes (flow/aggregate.h).
 *
 * Never counted is mail to our own report address (bounces of reports,
 * automatic replies) and mail that is itself an aggregate report: two
 * reporters would go on for ever about each other's reports. */
#ifndef FLOW_AGGREGATE_ROW_H
#define FLOW_AGGREGATE_ROW_H

#include <stdbool.h>

#include "archive/format/record.h"

struct message;

/* Never reuse a number. */
enum row_tag { ROW_POLICY = 1, ROW_RECORD = 2 };
enum row_policy_tag {
	ROW_DOMAIN = 1, /* where the policy record stands */
	ROW_P = 2,
	ROW_SP = 3,
	ROW_NP = 4,
	ROW_ADKIM = 5,
	ROW_ASPF = 6,
	ROW_FO = 7,
	ROW_TESTING = 8,
	ROW_METHOD = 9, /* "psl", "treewalk" */
	ROW_RUA = 10,   /* list */
};
enum row_record_tag {
	ROW_SOURCE_IP = 1,
	ROW_HEADER_FROM = 2,
	ROW_ENVELOPE_FROM = 3, /* empty: null sender */
	ROW_DISPOSITION = 4,   /* "none", "pass", "quarantine", "reject" */
	ROW_DKIM_ALIGNED = 5,  /* "pass", "fail" */
	ROW_SPF_ALIGNED = 6,
	ROW_REASON = 7,        /* R, list */
	ROW_DKIM = 8,          /* R, list of at most ROW_MAX_DKIM */
	ROW_SPF = 9,           /* R */
};
enum row_auth_tag {
	ROW_AUTH_DOMAIN = 1,
	ROW_AUTH_SELECTOR = 2,
	ROW_AUTH_RESULT = 3,
	ROW_AUTH_HUMAN = 4,
};
enum row_reason_tag { ROW_REASON_TYPE = 1, ROW_REASON_COMMENT = 2 };

#define ROW_MAX_DKIM 100 /* RFC 9990 §3.1.1.13 */
#define ROW_MAX      ((size_t)256 << 10)

/* How many author domains of a finished message may have a row, at most
 * DMARC_MAX_FROM_DOMAINS. */
size_t aggregate_row_count(const struct message *m);
/* Append the row of one of them. False: it has none (`out` is then untouched);
 * the caller checks out->buf.error. *out_domain is the key of the decision
 * store. */
bool aggregate_row_encode(const struct message *m, size_t which,
    struct record *out, struct str *out_domain);

/* Reports are sent from report_from with "+TOKEN" behind the local part, a
 * random one each, so that what bounces tells which address is dead. Is this
 * message such a bounce? Its row is the token, under this domain. */
#define ROW_BOUNCE_DOMAIN "!bounce"
#define ROW_TOKEN_LEN     16
bool aggregate_row_bounce(const struct message *m, struct str *out_token);

#endif
