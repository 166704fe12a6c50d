/* Any bytes as a DNS message: the first byte chooses the type asked for, the
 * name is "a.b". Records come only with DNS_OK, and their data is readable. */
#include <stdint.h>
#include <stdlib.h>

#include "dns/name.h"
#include "dns/wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
check(const struct dns_answer *a)
{
	static volatile unsigned char sum;
	if ((a->status == DNS_OK) != (a->count > 0) ||
	    a->count > DNS_MAX_RECORDS || a->ttl > WIRE_MAX_TTL ||
	    dns_status_temporary(a->status) != (a->detail != NULL))
		abort();
	for (size_t i = 0; i < a->count; i++) {
		struct str s = a->records[i].data;
		if (s.len > DNS_MAX_TXT)
			abort();
		for (size_t j = 0; j < s.len; j++) {
			unsigned char c = (unsigned char)s.ptr[j];
			sum = (unsigned char)(sum + c);
			if (a->type == DNS_MX && (c < 0x20 || c > 0x7e))
				abort();
		}
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const enum dns_type types[] = { DNS_TXT, DNS_A, DNS_AAAA, DNS_MX,
		DNS_PTR, DNS_NS, DNS_CNAME, DNS_SOA, DNS_DNSKEY };
	if (size < 1)
		return 0;
	struct dns_answer *a = wire_answer(data + 1, size - 1, STR("a.b"),
	    types[data[0] % (sizeof(types) / sizeof(types[0]))]);
	if (a != NULL)
		check(a);
	dns_answer_unref(&a);
	return 0;
}
