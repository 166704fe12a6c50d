/* Address lists, author domains, envelope paths. */
#include <stdint.h>
#include <stdlib.h>

#include "base/codec.h"
#include "mail/address.h"
#include "mail/domain.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
check_list(const struct address_list *l)
{
	for (size_t i = 0; i < l->count; i++) {
		const struct address *x = &l->items[i];
		if (x->domain.len == 0 || !utf8_valid(x->local) ||
		    str_chr(x->local, '\0') != SIZE_MAX ||
		    str_chr(x->local, '\n') != SIZE_MAX)
			abort();
	}
	if (l->count == 0 && !l->groups)
		abort();
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str value = str_of(data, size);
	struct arena *a = arena_new(0);
	struct address_list l;
	struct from_domains f;
	enum res r = address_parse_list(a, value, &l);
	if (r == RES_OK)
		check_list(&l);
	if (address_from_value(a, value, &f) != RES_OK)
		abort();
	if (r != RES_OK && f.state != FROM_UNPARSABLE)
		abort();
	if (f.state == FROM_OK && f.count != 1)
		abort();
	for (size_t i = 0; i < f.count; i++)
		if (!domain_valid(f.domains[i]))
			abort();
	struct str address, local, domain;
	address_envelope(value, &address, &local, &domain);
	if (address.len > size || local.len + domain.len > address.len)
		abort();
	arena_free(&a);
	return 0;
}
