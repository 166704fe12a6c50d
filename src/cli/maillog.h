/* The log of Postfix or Sendmail, line by line: what happened to which queue
 * id. Pure but for the files; a line that says nothing of interest is no error.
 *
 * Time stamps: syslog's ("Nov 30 17:03:05", local time, without a year: the
 * latest year in which it is not after the file was written) and ISO 8601
 * ("2026-11-30T17:03:05.123456+01:00"). Queue ids: short and long ones. What
 * strangers can put into a line, an address or a server's reply, is told from
 * what the MTA says by its place. */
#ifndef CLI_MAILLOG_H
#define CLI_MAILLOG_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "base/str.h"

enum maillog_kind {
	MAILLOG_OTHER,     /* of this queue id, but nothing we look at */
	MAILLOG_CLIENT,    /* it came by SMTP: its life begins */
	MAILLOG_LOCAL,     /* from the sendmail command; value: the id it had
	                      before it was queued again */
	MAILLOG_MESSAGE_ID, /* value */
	MAILLOG_SENT,      /* value: the id it has in our queue now */
	MAILLOG_BOUNCED,
	MAILLOG_DEFERRED,
	MAILLOG_EXPIRED,
	MAILLOG_REFUSED,   /* by a milter or a check, as a whole */
	MAILLOG_DISCARDED, /* the same, silently */
	MAILLOG_HELD,
	MAILLOG_DELETED,   /* by the operator */
	MAILLOG_REMOVED,   /* its life ends */
};

struct maillog_event {
	enum maillog_kind kind;
	int64_t time_us;
	struct str host, service; /* "mx1", "postfix", "postfix-out",
	                             "sendmail" */
	struct str queue_id;
	struct str value;         /* views into the line */
	/* Sendmail's only: it uses no id twice, has the message id in the line
	 * of the beginning, and reports a failure as the end */
	struct str message_id;
	bool is_sendmail, reported;
};

/* `written_s`: when the file was written last. False: nothing for us;
 * *out_time_us is set where the line has a time, else untouched. */
bool maillog_parse(struct str line, int64_t written_s,
    struct maillog_event *out, int64_t *out_time_us);
bool maillog_is_queue_id(struct str s);

/* --- files --- */
#define MAILLOG_MAX_LINE ((size_t)64 << 10) /* the rest is passed over */

struct maillog_file {
	FILE *f;
	pid_t child;      /* that unpacks it; 0: none */
	int64_t written_s;
	char *line;
};
/* "-" is the standard input; .gz, .xz, .bz2 and .zst are unpacked by their
 * programs. EX_OK or a complaint. */
int maillog_open(const char *path, struct maillog_file *out);
/* False at the end. */
bool maillog_next(struct maillog_file *m, struct str *out_line);
/* Close without having read it all. */
void maillog_drop(struct maillog_file *m);
/* EX_DATAERR after a complaint: not all of it could be read. */
int maillog_close(struct maillog_file *m, const char *path);

#endif
