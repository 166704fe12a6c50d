/* A signer whose private keys are in this process. */
#ifndef KEYS_KEYRING_H
#define KEYS_KEYRING_H

#include "base/err.h"
#include "keys/keydir.h"
#include "keys/privkey.h"
#include "keys/signer.h"

/* From opened key files (pread: a passed descriptor shares its offset). Keys
 * whose state is NEXT or RETIRED are not offered. */
HN_CHECK enum res keyring_from_keydir(
    const struct keydir *d, struct err *err, struct signer **out);
/* A single key; takes it over. */
HN_CHECK enum res keyring_single(struct str domain, struct str selector,
    struct privkey **key, struct signer **out);
/* Swap the key set; running requests finish with the old one. */
HN_CHECK enum res keyring_reload(
    struct signer *s, const struct keydir *d, struct err *err);

#endif
