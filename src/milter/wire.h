/* The milter protocol, version 6 and what older MTAs speak of it: packets of
 * a length (32 bits, network order), one byte of command or reply, and data.
 * Texts in data end with a NUL. */
#ifndef MILTER_WIRE_H
#define MILTER_WIRE_H

#include <stdint.h>

#include "base/buf.h"

#define WIRE_VERSION     6
#define WIRE_VERSION_MIN 2
#define WIRE_HEAD        4 /* the length, which counts the command byte */
/* An MTA may ask for 64 KiB, 256 KiB or 1 MiB of data; it does the first. */
#define WIRE_MAX_PACKET  ((size_t)(1 << 20) + 1)
/* All that is said at the end of one message: edits are few and bounded. */
#define WIRE_MAX_ANSWER  ((size_t)16 << 20)

enum wire_command {
	WIRE_ABORT = 'A',
	WIRE_BODY = 'B',
	WIRE_CONNECT = 'C',
	WIRE_MACROS = 'D',
	WIRE_END = 'E', /* of the message; may bring the last of the body */
	WIRE_HELO = 'H',
	WIRE_QUIT_NEXT = 'K', /* the connection goes on with another client */
	WIRE_HEADER = 'L',
	WIRE_MAIL = 'M',
	WIRE_END_OF_HEADER = 'N',
	WIRE_NEGOTIATE = 'O',
	WIRE_QUIT = 'Q',
	WIRE_RCPT = 'R',
	WIRE_DATA = 'T',
	WIRE_UNKNOWN = 'U',
};

enum wire_reply {
	REPLY_CODE_CONTINUE = 'c',
	REPLY_CODE_TEMPFAIL = 't',
	REPLY_CODE_TEXT = 'y', /* a refusal with code and text */
	REPLY_CODE_PROGRESS = 'p',
	REPLY_CODE_INSERT = 'i',
	REPLY_CODE_CHANGE = 'm',
	REPLY_CODE_QUARANTINE = 'q',
};

/* What we may do to a message. */
#define WIRE_ADD_HEADERS    0x001u
#define WIRE_CHANGE_HEADERS 0x010u
#define WIRE_QUARANTINE     0x020u
#define WIRE_SYMBOL_LIST    0x100u /* say which macros we want */

/* Which steps come, and which get no reply. */
#define WIRE_NO_UNKNOWN    0x000100u
#define WIRE_NO_DATA       0x000200u
#define WIRE_NR_HEADER     0x000080u
#define WIRE_NR_HELO       0x002000u
#define WIRE_NR_RCPT       0x008000u
#define WIRE_NR_UNKNOWN    0x020000u
#define WIRE_NR_DATA       0x010000u
#define WIRE_NR_END_HEADER 0x040000u
#define WIRE_NR_BODY       0x080000u
#define WIRE_LEADING_SPACE 0x100000u /* values with their leading space */

uint32_t wire_get32(const char *p);
void wire_add32(struct buf *b, uint32_t v);
void wire_add_text(struct buf *b, struct str s); /* and its NUL */

/* A packet being written: what `wire_open` gave is for `wire_close`. */
size_t wire_open(struct buf *b, char what);
void wire_close(struct buf *b, size_t mark);
void wire_simple(struct buf *b, char what);

#endif
