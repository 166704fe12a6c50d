/* DKIM key records (RFC 6376 §3.6, RFC 8301, RFC 8463), shared by DKIM and
 * ARC; parsed ones are cached by record text. */
#ifndef AUTH_KEY_RECORD_H
#define AUTH_KEY_RECORD_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/res.h"
#include "base/str.h"
#include "keys/pubkey.h"

enum key_record_state {
	KEY_RECORD_OK,
	KEY_RECORD_SYNTAX,   /* not a key record, p= missing, bad DER … */
	KEY_RECORD_REVOKED,  /* p= empty */
	KEY_RECORD_INAPPROPRIATE, /* unknown k=, s= without email, h= without sha256 */
	KEY_RECORD_UNUSABLE, /* too large, odd exponent */
};

struct key_record {
	enum key_record_state state;
	const char *reason;     /* static text when state is not OK */
	struct pubkey *key;     /* owned by the arena it was parsed into */
	enum key_type type;
	bool testing;           /* t=y */
	bool strict_identity;   /* t=s */
};

/* `text`: all strings of one TXT record joined (KEY-01). RES_NOMEM only. */
HN_CHECK enum res key_record_parse(
    struct arena *a, struct str text, struct key_record *out);

#endif
