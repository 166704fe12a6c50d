/* The key list of a connection while it arrives (keys/remote.h has the
 * packets). Every function but remote_list_drop returns false for a packet
 * that cannot be, or without memory: the connection is of no use then. */
#ifndef KEYS_REMOTE_LIST_H
#define KEYS_REMOTE_LIST_H

#include "keys/signer.h"

struct remote_list {
	struct arena *arena; /* NULL: none has begun */
	struct signing_key *keys;
	size_t count, expected;
	uint32_t wire_generation; /* as the signing side counts */
};

void remote_list_drop(struct remote_list *l);

HN_CHECK bool remote_list_begin(
    struct remote_list *l, const uint8_t *p, size_t len);
HN_CHECK bool remote_list_keys(
    struct remote_list *l, const uint8_t *p, size_t len);
/* Complete: its keys get `generation`. */
HN_CHECK bool remote_list_end(struct remote_list *l, const uint8_t *p,
    size_t len, uint32_t generation, struct manifest **out);

#endif
