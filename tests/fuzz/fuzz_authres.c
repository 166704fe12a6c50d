/* Authentication-Results: what the strict reader takes, the lenient one takes
 * too and sees the same id; a field that bears our id in a form that parses
 * is recognized. */
#include <stdint.h>
#include <stdlib.h>

#include "auth/authres.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool
is_plain_word(struct str id)
{
	for (size_t i = 0; i < id.len; i++)
		if (!ascii_is_alpha(id.ptr[i]))
			return false;
	return id.len != 0;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str value = str_of(data, size);
	static const struct str ids[] = { { "mx.example.org", 14 },
		{ "m\xc3\xbcx.example", 12 } };
	struct str org = STR("example.org");
	struct arena *a = arena_new(0);
	struct authres_field strict, lenient;
	enum res s = authres_parse(a, value, AUTHRES_STRICT, &strict);
	enum res l = authres_parse(a, value, AUTHRES_LENIENT, &lenient);
	bool ours = authres_is_ours(a, value, ids, 2, org);
	if (s == RES_OK &&
	    (l != RES_OK || !str_eq(strict.id, lenient.id) ||
		strict.count != lenient.count || strict.none != lenient.none))
		abort();
	if (l == RES_OK && str_case_eq(lenient.id, ids[0]) && !ours)
		abort();
	if (l == RES_UNSUPPORTED && !ours)
		abort();
	/* a plain word is none of our ids, nor above or below them */
	if (s == RES_OK && ours && is_plain_word(strict.id))
		abort();
	arena_free(&a);
	return 0;
}
