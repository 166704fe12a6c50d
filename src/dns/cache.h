/* A cache of answers for their TTL: bounded in number and bytes, in shards
 * with a lock each, the least recently used one leaves first. All threads may
 * use it at once. */
#ifndef DNS_CACHE_H
#define DNS_CACHE_H

#include <stdint.h>

#include "dns/dns.h"

struct dns_cache;

#define DNS_CACHE_DEFAULT_ENTRIES 65536
#define DNS_CACHE_MAX_BYTES       ((size_t)64 << 20)
#define DNS_CACHE_MAX_NEGATIVE    900 /* seconds, RFC 2308 §5 */

/* max_entries 0 = the default; max_bytes 0 = DNS_CACHE_MAX_BYTES. NULL without
 * memory. */
struct dns_cache *dns_cache_new(size_t max_entries, size_t max_bytes);
void dns_cache_free(struct dns_cache **c);

/* A new reference, or NULL. `name` lower case; `now_us` is monotonic. */
struct dns_answer *dns_cache_get(
    struct dns_cache *c, struct str name, enum dns_type type, int64_t now_us);

/* Keep it until its TTL ends. Temporary failures and answers with TTL 0 are
 * not kept; an older answer to the same question is replaced. */
void dns_cache_put(struct dns_cache *c, struct dns_answer *a, int64_t now_us);

size_t dns_cache_count(struct dns_cache *c);

#endif
