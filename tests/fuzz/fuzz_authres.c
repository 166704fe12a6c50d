/* Authentication-Results: what the strict reader takes, the lenient one takes
 * too and sees the same id; a field that bears our id in a form that parses
 * is recognized. */
#include <stdint.h>
#include <stdlib.h>

#include "auth/authres.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

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
	if (s == RES_OK && (l != RES_OK || !str_eq(strict.id, lenient.id) ||
	    strict.count != lenient.count || strict.none != lenient.none))
		abort();
	if (l == RES_OK && str_case_eq(lenient.id, ids[0]) && !ours)
		abort();
	if (l == RES_UNSUPPORTED && !ours)
		abort();
	/* no id of ours in it in any spelling without U-labels, no "xn--" */
	if (l == RES_OK && ours && str_case_find(value, STR("e")) == SIZE_MAX &&
	    lenient.id.len != 0 && str_chr(lenient.id, '/') == SIZE_MAX &&
	    str_chr(lenient.id, '.') == SIZE_MAX)
		abort();
	arena_free(&a);
	return 0;
}
