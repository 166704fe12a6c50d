/* Content-transfer-encodings undone (RFC 2045 §6), pushed in chunks. Lenient,
 * as reading old mail needs: base64 passes over what is not in its alphabet,
 * but when its first line has blanks between words it is plain text under a
 * wrong label, and stays as it is; quoted-printable keeps an escape that is
 * none. Any split of the input gives the same bytes. */
#ifndef MAIL_TRANSFER_H
#define MAIL_TRANSFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

/* Blanks at a line's end are dropped in quoted-printable, unless there are
 * more than this. */
#define TRANSFER_MAX_BLANKS 128

enum transfer_kind {
	TRANSFER_IDENTITY, /* 7bit, 8bit, binary, none, unknown */
	TRANSFER_BASE64,
	TRANSFER_QUOTED_PRINTABLE,
};

struct transfer {
	enum transfer_kind kind;
	void (*emit)(void *context, const char *bytes, size_t len);
	void *context;
	uint32_t bits;   /* base64: collected so far */
	unsigned count;  /* base64: characters in `bits` */
	bool undecided;  /* base64: whether it is any */
	size_t held_len;
	/* quoted-printable: blanks, or an open escape; base64, undecided: what
	 * came so far, the beginning of the first line in it */
	char held[TRANSFER_MAX_BLANKS + 4];
};

/* The value of a Content-Transfer-Encoding field, any case. */
enum transfer_kind transfer_kind(struct str name);

void transfer_init(struct transfer *t, enum transfer_kind kind,
    void (*emit)(void *context, const char *bytes, size_t len), void *context);
void transfer_push(struct transfer *t, const char *bytes, size_t len);
/* The end: what was held back comes out. */
void transfer_finish(struct transfer *t);

#endif
