#include "keys/remote_list.h"

#include "base/codec.h"
#include "keys/manifest.h"
#include "keys/remote.h"
#include "keys/wire.h"

#define MAX_ARENA ((size_t)1 << 30)

void
remote_list_drop(struct remote_list *in)
{
	arena_free(&in->arena);
	*in = (struct remote_list){ 0 };
}

bool
remote_list_begin(struct remote_list *in, const uint8_t *p, size_t len)
{
	remote_list_drop(in);
	if (len != WIRE_LIST_BEGIN_LEN)
		return false;
	in->wire_generation = get_le32(p + 1);
	in->expected = get_le32(p + 5);
	if (in->expected > REMOTE_MAX_KEYS)
		return false;
	in->arena = arena_new(MAX_ARENA);
	if (in->arena != NULL)
		in->keys = arena_array(
		    in->arena, in->expected + 1, sizeof *in->keys);
	return in->keys != NULL;
}

static size_t
list_key(struct remote_list *in, const uint8_t *p, size_t len)
{
	if (in->count == in->expected || len < WIRE_KEY_HEAD ||
	    (p[4] & ~(WIRE_BY_RULE | WIRE_NOTES)) > 1)
		return 0;
	size_t domain = get_le16(p + 7), selector = get_le16(p + 9),
	       public = get_le16(p + 11);
	if (domain + selector + public > len - WIRE_KEY_HEAD)
		return 0;
	const uint8_t *text = p + WIRE_KEY_HEAD;
	struct signing_key *k = &in->keys[in->count];
	k->id = get_le32(p);
	k->type = (p[4] & 1) == 0 ? KEY_RSA : KEY_ED25519;
	k->notes = (p[4] & WIRE_NOTES) != 0;
	k->by_rule = (p[4] & WIRE_BY_RULE) != 0;
	k->bits = get_le16(p + 5);
	k->domain = arena_dup(in->arena, str_of(text, domain));
	k->selector = arena_dup(in->arena, str_of(text + domain, selector));
	k->public_der = arena_dup(
	    in->arena, str_of(text + domain + selector, public));
	if (k->domain.ptr == NULL || k->selector.ptr == NULL ||
	    k->public_der.ptr == NULL)
		return 0;
	in->count++;
	return WIRE_KEY_HEAD + domain + selector + public;
}

bool
remote_list_keys(struct remote_list *in, const uint8_t *p, size_t len)
{
	if (in->arena == NULL)
		return false;
	for (size_t at = 1; at < len;) {
		size_t used = list_key(in, p + at, len - at);
		if (used == 0)
			return false;
		at += used;
	}
	return true;
}

bool
remote_list_end(struct remote_list *in, const uint8_t *p, size_t len,
    uint32_t generation, struct manifest **out)
{
	if (len != WIRE_LIST_END_LEN || in->arena == NULL ||
	    get_le32(p + 1) != in->wire_generation ||
	    in->count != in->expected)
		return false;
	for (size_t i = 0; i < in->count; i++)
		in->keys[i].generation = generation;
	return manifest_new(&in->arena, in->keys, in->count, out) == RES_OK;
}
