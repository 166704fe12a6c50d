#include "auth/diagnose.h"

/* Whether the header is as signed, with the body hash that it claims. */
static bool
header_fits(const struct sig *s, const uint8_t digest[DIGEST_LEN])
{
	bool fits = false;
	return pubkey_verify(s->key, digest, s->signature, &fits) == RES_OK &&
	    fits;
}

enum res
diagnose_signature(struct sigcore *c, const struct sig *s,
    const uint8_t digest[DIGEST_LEN], struct str *out)
{
	if (s->key == NULL)
		return RES_OK;
	*out = header_fits(s, digest)
	    ? STR("the body was changed, the signed header was not")
	    : STR("the signed header was changed");
	return RES_OK;
}
