/* What both halves of keys/remote.h know of their packets. */
#ifndef KEYS_WIRE_H
#define KEYS_WIRE_H

#include "keys/pubkey.h"

enum wire_type {
	WIRE_LANES = 'L',
	WIRE_LIST_BEGIN = 'M',
	WIRE_LIST_KEYS = 'K',
	WIRE_LIST_END = 'E',
	WIRE_SIGN = 'S',
	WIRE_NOTE = 'N',
	WIRE_RESULT = 'R',
};

enum wire_outcome {
	WIRE_SIGNED,
	WIRE_STALE,   /* another generation is in use: ask again */
	WIRE_UNKNOWN, /* no such id */
	WIRE_FAILED,  /* libcrypto or memory */
};

#define WIRE_LIST_BEGIN_LEN 9
#define WIRE_LIST_END_LEN   5
#define WIRE_BY_RULE        0x80 /* of a key's type: signing_key.by_rule */
#define WIRE_KEY_HEAD       13 /* before domain, selector, public half */
#define WIRE_NOTES          0x40 /* … and signing_key.notes */
#define WIRE_SIGN_HEAD      13 /* before the digest, or a note's text */
#define WIRE_SIGN_LEN       (WIRE_SIGN_HEAD + 32)
#define WIRE_RESULT_HEAD    6
#define WIRE_MAX_RESULT     (WIRE_RESULT_HEAD + PUBKEY_MAX_RSA_BITS / 8)

#endif
