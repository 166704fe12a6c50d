/* A keyed hash (SipHash-1-3) for tables whose keys come from strangers: the
 * key is random per process, so nobody can prepare names that all fall into
 * one slot. Values mean nothing outside this process. */
#ifndef BASE_HASH_H
#define BASE_HASH_H

#include <stdint.h>

#include "base/str.h"

uint64_t hash_bytes(struct str s);
/* The same for all ASCII case variants of `s`. */
uint64_t hash_lower(struct str s);

#endif
