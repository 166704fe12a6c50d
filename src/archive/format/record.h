/* What is kept with a message besides its bytes: META, EVIDENCE and EDITS
 * (archive.md §3). One encoding for all: version u8 = 1, then records `tag
 * u16, length u32, bytes`, little endian; unknown tags are skipped; lists are
 * repeated tags. archive-format(5) has the tables.
 *
 * The archive knows no verdict types: it gets text. Facts ("dkim=fail",
 * "dir=in") are what search terms like dkim:fail look for. */
#ifndef ARCHIVE_RECORD_H
#define ARCHIVE_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/res.h"
#include "base/str.h"

/* META tags. Never reuse a number. */
enum meta_tag {
	META_DIRECTION = 1,    /* "in", "out", "import" */
	META_QUEUE_ID = 2,
	META_MAIL_FROM = 3,    /* without <>; empty for the null sender */
	META_RCPT = 4,         /* list; every recipient offered, Bcc too */
	META_CLIENT_IP = 5,    /* text */
	META_CLIENT_NAME = 6,
	META_HELO = 7,
	META_AUTH = 8,         /* login name */
	META_TLS = 9,          /* "TLSv1.3 …" */
	META_DAEMON_NAME = 10,
	META_AUTHSERV_ID = 11,
	META_RESULTS = 12,     /* authres payload: "spf=pass …; dkim=…" */
	META_FACT = 13,        /* list: "dkim=fail", "dkim.d=example.org", … */
	META_DISPOSITION = 14, /* "accept", "quarantine", … */
	META_REASON = 15,      /* list: why signatures fail, in words */
	META_DECISION_ID = 16,
	META_CONTENT_SHA256 = 17, /* 32 bytes, of the presented message */
	META_HEADER_BYTES = 18,   /* u64: header incl. the empty line */
	META_SOURCE = 19,      /* imports: file and offset */
	META_VERIFY_OPTIONS = 20, /* clock, limits, engine version of then */
	META_FLAGS = 21,       /* u32, META_FLAG_… */
	META_MAIL_ARGS = 22,   /* list: ESMTP parameters of MAIL */
};
#define META_FLAG_AS_READ   1u /* imported as read, not presented by an MTA */
#define META_FLAG_SMTPUTF8  2u

/* EVIDENCE tags: one DNS_ANSWER record per answer, nested records inside. */
enum evidence_tag { EVIDENCE_DNS_ANSWER = 1 };
enum evidence_answer_tag {
	EVIDENCE_NAME = 1,
	EVIDENCE_TYPE = 2,    /* u16 */
	EVIDENCE_STATUS = 3,  /* text: "OK", "NXDOMAIN", … */
	EVIDENCE_SECURE = 4,  /* u8 */
	EVIDENCE_TTL = 5,     /* u32 */
	EVIDENCE_TIME = 6,    /* i64 µs */
	EVIDENCE_RECORD = 7,  /* list: TXT, name, "pref name" or address text */
};

/* EDITS tags, in the order applied. */
enum edit_tag { EDIT_INSERT = 1, EDIT_CHANGE = 2, EDIT_DELETE = 3 };
enum edit_part_tag {
	EDIT_INDEX = 1,       /* u32: position, or occurrence of the name */
	EDIT_NAME = 2,
	EDIT_VALUE = 3,
};

/* --- writing --- */
struct record {
	struct buf buf; /* sticky error inside */
};
void record_init(struct record *r, size_t max_bytes);
void record_done(struct record *r);
void record_add(struct record *r, unsigned tag, struct str value);
void record_add_u16(struct record *r, unsigned tag, uint16_t v);
void record_add_u32(struct record *r, unsigned tag, uint32_t v);
void record_add_u64(struct record *r, unsigned tag, uint64_t v);
/* What was made in `b`, its error included; `b` ends here. */
void record_add_buf(struct record *r, unsigned tag, struct buf *b);
/* Nest another record's bytes (its version byte included). */
void record_add_record(struct record *r, unsigned tag, const struct record *in);

/* --- reading --- */
struct record_reader {
	struct str rest;
	enum res error; /* RES_CORRUPT when lengths do not fit */
};
/* Empty bytes (an absent block) are a record without entries.
 * RES_UNSUPPORTED: another version. */
HN_CHECK enum res record_open(struct str bytes, struct record_reader *out);
/* Next record; false at the end or on damage (see error). The value points
 * into the bytes given to record_open. */
bool record_next(struct record_reader *r, unsigned *out_tag, struct str *out);
/* The first value of `tag`, ptr NULL when absent. */
struct str record_find(struct str bytes, unsigned tag);

#endif
