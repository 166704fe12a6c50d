/* Making the immutable key list of keys/signer.h: by the keyring from private
 * keys, by the remote signer from what it is sent. */
#ifndef KEYS_MANIFEST_H
#define KEYS_MANIFEST_H

#include "base/arena.h"
#include "keys/signer.h"

/* Takes over `*arena` (and clears it), where `keys` and all their text must
 * live; sorts `keys` in place. On RES_NOMEM the arena stays the caller's. */
HN_CHECK enum res manifest_new(struct arena **arena, struct signing_key *keys,
    size_t count, struct manifest **out);

/* The key of `m` that has the same domain, selector and public half as `key`
 * of another generation; NULL when it is gone. */
const struct signing_key *manifest_same(
    const struct manifest *m, const struct signing_key *key);

#endif
