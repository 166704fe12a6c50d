/* HTML to text for the index: a state machine that pushes on what a reader
 * would see, with constant memory and in linear time whatever the input. No
 * tree is built. Tokenized as the HTML standard says (§13.2.5) as far as text
 * goes:
 *
 *        <        letter or /letter         >
 *   TEXT → TAG_OPEN → NAME → ATTRIBUTES (quotes) → TEXT, RAW or PLAIN
 *           ! → MARKUP → COMMENT | DOCTYPE | CDATA        ? → BOGUS
 *   RAW (script, style): everything dropped until the end tag of its name;
 *   RCDATA (title, textarea): text, but no tags, until that end tag.
 *   PLAIN (plaintext): text to the end.
 *
 * Block elements and table cells separate words; white space is passed on as
 * it is. Lines of a blockquote begin with "> " as in plain text, so that what
 * is quoted can be told from what is new; they are words like any others. Differences on purpose: an entity that is cut off by the end of the
 * input is dropped, and so is a numeric reference without digits. */
#ifndef MAIL_HTML_H
#define MAIL_HTML_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/str.h"

/* Tag names longer than this are cut: none that matters is. */
#define HTML_MAX_NAME 16
/* Deeper quotations get no more marks. */
#define HTML_MAX_MARKS 5u

enum html_state {
	HTML_TEXT, HTML_ENTITY, HTML_TAG_OPEN, HTML_END_OPEN, HTML_NAME,
	HTML_ATTRIBUTES, HTML_VALUE_START, HTML_VALUE, HTML_DOUBLE_QUOTED,
	HTML_SINGLE_QUOTED, HTML_MARKUP, HTML_COMMENT, HTML_BOGUS, HTML_CDATA,
	HTML_RAW, HTML_RAW_LESS, HTML_RAW_END_NAME, HTML_PLAIN,
};

struct html {
	enum html_state state;
	bool end_tag;
	bool raw_shown;         /* RCDATA: the raw text is text */
	bool line_start;        /* a quotation's line has got no mark yet */
	unsigned quotes;        /* blockquotes open */
	size_t name_len, held_len, dashes;
	char name[HTML_MAX_NAME];     /* of the tag being read */
	char raw[HTML_MAX_NAME + 1];  /* of the element RAW waits for */
	char held[40];                /* "&entit", "<!-", "</scri" */
	struct buf *out;
};

/* UTF-8 in, UTF-8 appended to `out` (kept by the caller; its limit stops the
 * text, not the walk). */
void html_init(struct html *h, struct buf *out);
void html_push(struct html *h, const char *bytes, size_t len);
void html_finish(struct html *h);

#endif
