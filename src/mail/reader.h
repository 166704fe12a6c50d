/* Splits a message pushed in chunks into header fields and body. For files
 * and standard input; the milter gets its fields from the MTA instead.
 *
 * The first line end decides LF or CRLF (`READER_AUTO`): in LF form every LF
 * without a CR before it becomes CRLF before anybody sees it. In CRLF form
 * bare CR and bare LF are data (RFC 5322 §2.3). Memory is bounded by the
 * header's limits: past them finish returns RES_LIMIT, and neither
 * end_of_header nor body is called any more. */
#ifndef MAIL_READER_H
#define MAIL_READER_H

#include "base/arena.h"
#include "base/sink.h"
#include "mail/header.h"

enum reader_line_ends {
	READER_AUTO,
	READER_CRLF,
	READER_LF
};

struct reader_ops {
	/* The header is complete: `h` as filled so far. Called once, before
	 * the first body byte. */
	enum res (*end_of_header)(void *context, struct header *h);
	/* Body bytes, CRLF form. */
	void (*body)(void *context, const char *bytes, size_t len);
};

struct reader;

/* Fields go to `h`. A leading mbox "From " line is dropped. A line in the
 * header that is neither field nor continuation ends the header: it and all
 * that follows is body, and reader_malformed() tells. */
struct reader *reader_new(struct arena *a, struct header *h,
    enum reader_line_ends ends, const struct reader_ops *ops, void *context);
/* The sink to push the message into; finish reports the first error. */
struct sink *reader_sink(struct reader *r);
bool reader_malformed(const struct reader *r);
/* Whether the input had LF line ends (known after the first line). */
bool reader_was_lf(const struct reader *r);

#endif
