/* Text of any character set to UTF-8, pushed in chunks: for the index and for
 * showing mail, never for judging it. Never fails on bad input: what cannot
 * be converted becomes U+FFFD. Any split of the input gives the same output.
 *
 * Only charsets of a fixed table reach iconv, under names of ours: the name
 * in a message is hostile, and some converters of C libraries have hung or
 * aborted on crafted input. No name, "us-ascii" or a name not in the table:
 * valid UTF-8 sequences are taken as such, other bytes as windows-1252
 * (what most undeclared 8-bit mail is). Latin-1 means windows-1252. */
#ifndef MAIL_CHARSET_H
#define MAIL_CHARSET_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/str.h"

/* Longest input sequence held back between two chunks. */
#define CHARSET_MAX_PENDING 16

enum charset_kind {
	CHARSET_GUESS,        /* UTF-8 where valid, else windows-1252 */
	CHARSET_UTF8,
	CHARSET_WINDOWS_1252,
	CHARSET_ICONV,
	CHARSET_HZ,           /* RFC 1843, which glibc lacks */
};

struct charset {
	enum charset_kind kind;
	void *handle;         /* iconv_t */
	bool hz_gb;           /* inside ~{ … ~} */
	size_t pending_len;
	unsigned char pending[CHARSET_MAX_PENDING];
};

/* `name` as a message declares it, any case, may be empty. Never fails: a
 * converter that cannot be had becomes CHARSET_GUESS. */
void charset_init(struct charset *c, struct str name);
void charset_push(
    struct charset *c, const char *bytes, size_t len, struct buf *out);
/* The end: an incomplete sequence becomes U+FFFD. */
void charset_finish(struct charset *c, struct buf *out);
void charset_done(struct charset *c);

/* All at once. */
void charset_decode(struct str name, struct str text, struct buf *out);

/* Whether `name` is in the table (or means ASCII). */
bool charset_known(struct str name);

#endif
