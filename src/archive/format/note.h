/* Signed notes (archive.md §6, archive-format(5)): what the archive's key
 * says about a tree or about another key. The form is the one that
 * transparency logs use: lines of text, an empty line, and signature lines
 * "— NAME BASE64(key id 4 ‖ Ed25519 signature 64)".
 *
 *   checkpoint   STORE/EPOCH/SHARD      key        STORE/EPOCH/SHARD/key
 *                SIZE                              NAME+ID+BASE64(1 ‖ key)
 *                BASE64(ROOT)                      time …
 *                time 2026-11-30T17:03:05.123456Z
 *
 * Pure functions, except that note_sign asks the signer. There is one way to
 * write each note: what does not come out again as it was read is refused. */
#ifndef ARCHIVE_NOTE_H
#define ARCHIVE_NOTE_H

#include <stdbool.h>
#include <stdint.h>

#include "archive/format/leaf.h"
#include "base/buf.h"
#include "keys/signer.h"

#define NOTE_MAX_SIGNATURES 4
#define NOTE_MAX_NAME       64
/* A key that was replaced goes on signing beside the new one. */
#define NOTE_BOTH_SIGN_S ((int64_t)30 * 86400)

/* Which tree. */
struct note_origin {
	uint8_t store[16];
	uint32_t epoch, shard;
};
bool note_origin_same(const struct note_origin *a, const struct note_origin *b);
/* That of a shard. */
struct note_origin note_origin_of(const struct shard_header *h);

/* A checkpoint: the tree had this head. */
struct note_head {
	struct note_origin origin;
	uint64_t size;
	uint8_t root[LEAF_HASH_BYTES];
	int64_t time_us;
};
void note_head_format(struct buf *out, const struct note_head *h);
/* RES_SYNTAX: no checkpoint. */
HN_CHECK enum res note_head_parse(struct str text, struct note_head *out);

/* A verification key: NAME+ID+BASE64(1 ‖ public key). */
struct note_key {
	char name[NOTE_MAX_NAME + 1];
	uint8_t id[4]; /* of SHA-256(name LF 1 key), the first bytes */
	uint8_t public[32];
};
/* The key of a store is named hanaper/UUID. RES_UNSUPPORTED: no Ed25519. */
HN_CHECK enum res note_key_of(const uint8_t store[16],
    const struct signing_key *k, struct note_key *out);
void note_key_format(struct buf *out, const struct note_key *k);
HN_CHECK enum res note_key_parse(struct str text, struct note_key *out);
bool note_key_same(const struct note_key *a, const struct note_key *b);

/* "The archive is signed with this key from now on." */
struct note_handover {
	struct note_origin origin;
	struct note_key key;
	int64_t time_us;
};
void note_handover_format(struct buf *out, const struct note_handover *h);
HN_CHECK enum res note_handover_parse(
    struct str text, struct note_handover *out);

/* --- signatures --- */

struct note_signature {
	struct str name; /* view */
	uint8_t id[4], bytes[64];
};
struct note {
	struct str text; /* view of what is signed */
	size_t count;
	struct note_signature signatures[NOTE_MAX_SIGNATURES];
};
/* RES_SYNTAX: no signed note, or something behind it. */
HN_CHECK enum res note_open(struct str bytes, struct note *out);
/* RES_OK: signed by this key; RES_NOTFOUND: it did not sign; RES_CORRUPT: its
 * signature does not fit. */
HN_CHECK enum res note_check(const struct note *n, const struct note_key *k);

/* The keys that sign at this time, newest first: the one with the latest time,
 * and those it replaced less than NOTE_BOTH_SIGN_S ago. Their number. */
size_t note_signers(const struct manifest *m, int64_t now_s,
    const struct signing_key *out[NOTE_MAX_SIGNATURES]);
/* Append the text with a signature of each key in force at `now_us`.
 * RES_NOTFOUND: there is no key; else what the signer says. */
HN_CHECK enum res note_sign(struct signer *s, const uint8_t store[16],
    struct str text, int64_t now_us, struct buf *out);
/* Which they are, newest first. RES_NOTFOUND: none is known. */
HN_CHECK enum res note_signing_keys(struct signer *s, const uint8_t store[16],
    int64_t now_us, struct note_key out[NOTE_MAX_SIGNATURES],
    size_t *out_count);
/* The newest of them. */
HN_CHECK enum res note_newest_key(struct signer *s, const uint8_t store[16],
    int64_t now_us, struct note_key *out);

#endif
