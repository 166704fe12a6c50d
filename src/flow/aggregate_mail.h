/* An aggregate report as a mail (RFC 9990 §3.5): names and the MIME form. A
 * report that is sent again has the same id and the same file name (RUA-07):
 * both follow from who reports, about whom and on which day. */
#ifndef FLOW_AGGREGATE_MAIL_H
#define FLOW_AGGREGATE_MAIL_H

#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/res.h"
#include "base/str.h"

/* 20 letters and digits; ptr NULL without memory. */
struct str aggregate_report_id(struct arena *a, struct str submitter,
    struct str domain, int64_t begin_s);
/* "receiver!domain!begin!end!id.xml.gz" (RUA-11). */
struct str aggregate_file_name(struct arena *a, struct str submitter,
    struct str domain, int64_t begin_s, int64_t end_s, struct str id);

struct aggregate_mail {
	struct str from, to;   /* addresses, plain ASCII */
	struct str org;        /* left out of From unless printable ASCII */
	struct str submitter, domain, report_id, file_name;
	struct str token;      /* makes the Message-ID unique */
	int64_t begin_s, now_s;
	uint64_t messages;
	struct str gzip;       /* the compressed XML */
};

/* The largest mail we send; what receivers commonly take. */
#define AGGREGATE_MAX_MAIL ((size_t)10 << 20)
/* So that the mail, base64 and all, stays below it. */
#define AGGREGATE_MAX_GZIP ((size_t)7 << 20)

/* Append the message with LF line ends, as sendmail takes it. */
HN_CHECK enum res aggregate_mail_write(
    const struct aggregate_mail *m, struct buf *out);

#endif
