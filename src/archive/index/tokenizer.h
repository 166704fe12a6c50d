/* The FTS5 tokenizer `hanaper1`: what a word of mail is. Built on FTS5's
 * unicode61 (case and diacritics folded), and beyond it:
 *
 *  - full- and half-width forms are folded to the usual ones
 *  - runs of CJK characters become overlapping pairs, and the last character
 *    alone, so that a single one can be found as a prefix
 *  - addresses and domain names are one token each, with parent domains of at
 *    least two labels, and their parts too (at positions of their own)
 *  - runs that look like base64 (60 or more letters of its alphabet, of both
 *    cases and with digits) are left out; tokens are cut at 64 bytes
 *  - a word that begins with U+E000 is one token to the next blank: facts
 *    about a message, which therefore never equal words of its text (which
 *    has U+E000 taken out, see mail/text.h)
 *
 * In queries a text that begins with U+E001 is a word on its own: if all of it
 * is an address or a domain name, it is that one token. Other query texts are
 * split into parts only, whose positions follow each other. */
#ifndef ARCHIVE_TOKENIZER_H
#define ARCHIVE_TOKENIZER_H

#include <stdbool.h>

#include <sqlite3.h>

#include "base/buf.h"
#include "base/res.h"
#include "base/str.h"

#define TOKENIZER_NAME       "hanaper1"
#define TOKENIZER_MAX_TOKEN  64
#define TOKENIZER_MAX_MARKED 200 /* of marked words, the mark included */
#define TOKENIZER_BASE64_RUN 60
/* A run of word characters is looked at in pieces of at most this. */
#define TOKENIZER_MAX_RUN    4096
#define TOKENIZER_MAX_LABELS 16  /* of a domain name kept whole */

#define TOKENIZER_FACT_MARK "\xee\x80\x80" /* U+E000 */
#define TOKENIZER_WORD_MARK "\xee\x80\x81" /* U+E001 */

/* Make the tokenizer known to a connection. */
HN_CHECK enum res tokenizer_register(sqlite3 *db);

/* Whether a query for `text` could match anything: it holds a token. */
bool tokenizer_has_token(struct str text);
/* One CJK character and nothing else: a query for it is a prefix query. */
bool tokenizer_is_single_cjk(struct str text);

/* Append the marked word for a fact: "key=value", lower case, blanks and
 * control bytes as '_', cut at TOKENIZER_MAX_MARKED. The same for index and
 * query. */
void tokenizer_fact(struct buf *out, struct str key, struct str value);
/* One such fact for each word of a sentence, with a blank between them, so
 * that words and phrases of it are found. */
void tokenizer_fact_words(struct buf *out, struct str key, struct str value);

#endif
