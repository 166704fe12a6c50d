/* Domain names: a normal form is valid, lower case, and its own. */
#include <stdint.h>
#include <stdlib.h>

#include "mail/domain.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str d = str_of(data, size), once, twice;
	struct arena *a = arena_new(0);
	if (domain_normalize(a, d, &once) == RES_OK) {
		if (!domain_valid(once) ||
		    domain_normalize(a, once, &twice) != RES_OK ||
		    !domain_equal(once, twice))
			abort();
		unsigned n = domain_labels(once);
		if (n == 0 || !domain_equal(domain_last_labels(once, n), once))
			abort();
		if (n > 1 &&
		    !domain_is_below(once, domain_last_labels(once, n - 1)))
			abort();
	} else if (domain_valid(d)) {
		abort();
	}
	arena_free(&a);
	return 0;
}
