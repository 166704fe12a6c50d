/* Who signs, without saying where the private keys are: in this process
 * (keys/keyring.h: the CLI, tests, the signer process itself) or behind a
 * socket (keys/remote.h: the milter process). */
#ifndef KEYS_SIGNER_H
#define KEYS_SIGNER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/res.h"
#include "base/str.h"
#include "keys/pubkey.h"

/* One usable key, its private half elsewhere. */
struct signing_key {
	struct str domain;   /* normal form */
	struct str selector;
	enum key_type type;
	unsigned bits;
	bool by_rule; /* signs only where its selector is asked for by name */
	bool notes;   /* of the archive: signs notes and nothing else */
	struct str public_der; /* what p= holds, decoded */
	uint32_t id;         /* what the signer is asked with */
	uint32_t generation; /* of the key set: ids are good within one */
};

/* The archive's keys stand under this name, which is no domain's normal form;
 * the selector is the time (seconds) from which on a key signs. */
#define SIGNER_NOTES STR(".archive")
#define SIGNER_MAX_NOTE 512 /* bytes of a note's text */

#define SIGNER_MIN_RSA_BITS 2048 /* RFC 8301 §3.2: SHOULD, for signers */
/* An RSA key with less. */
bool signing_key_weak(const struct signing_key *k);

/* Immutable list of all keys, sorted by domain; reference-counted, so that a
 * reload does not take it from a message under way. */
struct manifest;
struct manifest *manifest_ref(struct manifest *m);
void manifest_unref(struct manifest **m);
/* The keys of a domain: RSA first, Ed25519 second (SIGN ALG-02). NULL and 0
 * when it has none. */
const struct signing_key *manifest_find(
    const struct manifest *m, struct str domain, size_t *out_count);
size_t manifest_count(const struct manifest *m);
const struct signing_key *manifest_at(const struct manifest *m, size_t i);

struct signer {
	/* The key set of now; a new reference. NULL: not known yet (a remote
	 * signer that was never heard of): nothing can be signed. */
	struct manifest *(*manifest)(struct signer *s);
	/* Append the signature over the digest. RES_AGAIN: the signer is not
	 * there now (tempfail); RES_NOTFOUND: no such key any more. May be
	 * called by many threads. */
	enum res (*sign)(struct signer *s, const struct signing_key *key,
	    const uint8_t digest[32], struct buf *out);
	/* The same for a note of the archive: Ed25519 over the text itself, by
	 * a key with `notes`. RES_INVALID: no note's text (signer_note_ok). */
	enum res (*sign_note)(struct signer *s, const struct signing_key *key,
	    struct str text, struct buf *out);
	void (*free)(struct signer *s);
};

void signer_free(struct signer **s);

/* What a key of the archive signs at all: 2 to SIGNER_MAX_NOTE bytes of
 * printable ASCII in lines that are not empty, the last one ended. Nothing
 * that a DKIM signature is made over looks like that. */
bool signer_note_ok(struct str text);

#endif
