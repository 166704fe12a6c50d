/* Whatever a stranger puts into values, the field we write has the results
 * and properties we wrote, no more. Values are the input cut at NULs. */
#include <stdint.h>
#include <stdlib.h>

#include "auth/authres.h"
#include "mail/header.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MAX_PARTS 32

static size_t
write_all(struct authres *w, struct str rest)
{
	struct str part;
	size_t n = 0;
	while (n < MAX_PARTS && str_split(&rest, '\0', &part)) {
		authres_result(w, "dkim", AUTH_FAIL);
		authres_comment(w, "test mode");
		authres_reason(w, "signature did not verify");
		authres_value(w, "header", "b", part);
		authres_address(w, "header", "i", part);
		n++;
	}
	return n;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arena *a = arena_new(0);
	struct authres *w = authres_begin(a, STR("mx.example.org"));
	size_t n = write_all(w, str_of(data, size));
	struct str text = authres_finish(w);
	struct header *h = header_new(a, 0);
	struct authres_field f;
	if (text.ptr == NULL ||
	    header_add(h, STR("Authentication-Results"), text) != RES_OK)
		abort();
	if (authres_parse(a, header_at(h, 0)->value, AUTHRES_STRICT, &f) !=
		RES_OK ||
	    f.count != n || !str_eq(f.id, STR("mx.example.org")))
		abort();
	for (size_t i = 0; i < n; i++)
		if (f.items[i].property_count != 2)
			abort();
	struct str ids[1] = { STR("mx.example.org") };
	if (!authres_is_ours(a, header_at(h, 0)->value, ids, 1, STR_EMPTY))
		abort();
	arena_free(&a);
	return 0;
}
