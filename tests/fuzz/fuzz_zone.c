/* Any text as a zone file: read or refused with a place, and what was read can
 * be asked for. */
#include <stdint.h>
#include <stdlib.h>

#include "dns/zone.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
ask(struct resolver *r, struct str name, enum dns_type type)
{
	struct dns_query *q = NULL;
	if (r->start(r, name, type, &q) != RES_OK)
		return;
	struct dns_answer *a = r->wait(r, q, 0);
	if (a == NULL || (a->status == DNS_OK) != (a->count > 0))
		abort();
	dns_answer_unref(&a);
	r->release(r, &q);
	if (q != NULL)
		abort();
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const enum dns_type types[] = { DNS_TXT, DNS_A, DNS_MX,
		DNS_CNAME };
	struct resolver *r = NULL;
	struct err err = { "" };
	enum res res =
	    zone_from_text(str_of(data, size), "zone", false, &err, &r);
	if (res == RES_SYNTAX && err.text[0] == '\0')
		abort();
	if (res != RES_OK)
		return 0;
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		ask(r, STR("a"), types[i]);
		ask(r, STR("b.example"), types[i]);
		ask(r, STR("none"), types[i]);
	}
	resolver_free(&r);
	return 0;
}
