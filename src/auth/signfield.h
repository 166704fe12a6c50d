/* Builds one signature field, DKIM's or ARC's: tags in the order given,
 * folded below SIGNFIELD_WIDTH columns where folding is legal, b= last and
 * filled in by the signer. Folds are CRLF + HTAB while it is hashed, as on the
 * wire, and LF + HTAB in what is handed out, as a milter inserts them. */
#ifndef AUTH_SIGNFIELD_H
#define AUTH_SIGNFIELD_H

#include "auth/sigcore.h"
#include "keys/signer.h"

#define SIGNFIELD_WIDTH 76
#define SIGNFIELD_MAX   32768 /* bytes of one field */

struct signfield;

/* `name` is the field's, static text. */
HN_CHECK enum res signfield_new(struct arena *a, const char *name,
    const struct header *h, struct signfield **out);

/* One more name for h=, written in lower case; each occurrence takes the next
 * field bottom-up. RES_LIMIT past SIG_MAX_NAMES: nobody would verify it. */
HN_CHECK enum res signfield_name(struct signfield *f, struct str name);

/* Tags; errors show when it is signed. */
void signfield_tag(struct signfield *f, const char *tag, struct str value);
void signfield_quoted(struct signfield *f, const char *tag, struct str value);
void signfield_number(struct signfield *f, const char *tag, int64_t n);
void signfield_algorithm(struct signfield *f, enum key_type type);
void signfield_canon(struct signfield *f, enum canon header, enum canon body);
void signfield_names(struct signfield *f); /* h= */
void signfield_body_hash(struct signfield *f, const uint8_t digest[DIGEST_LEN]);

/* Add b= over the fields named, then this one. *out_value: with leading space
 * and LF folds. Errors are the signer's, RES_NOMEM, RES_LIMIT. */
HN_CHECK enum res signfield_sign(struct signfield *f, enum canon c,
    struct signer *signer, const struct signing_key *key,
    struct str *out_value);

/* The same with octets of the caller's before the field (ARC-Seal). */
HN_CHECK enum res signfield_sign_after(struct signfield *f, enum canon c,
    struct str before, struct signer *signer, const struct signing_key *key,
    struct str *out_value);

/* A value with CRLF folds as the field will be on the wire, for hashing it
 * into a further signature, and back to LF folds. ptr NULL without memory. */
struct str signfield_to_crlf(struct arena *a, struct str value);

#endif
