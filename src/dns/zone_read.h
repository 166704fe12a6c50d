/* Zone file text to entries; dns/zone.h says how it is written. Used by
 * dns/zone.c only. */
#ifndef DNS_ZONE_READ_H
#define DNS_ZONE_READ_H

#include "base/arena.h"
#include "base/err.h"
#include "dns/dns.h"

#define ZONE_MAX_BYTES   ((size_t)64 << 20) /* of zone text */
#define ZONE_MAX_RECORDS ((size_t)1 << 20)

#define ZONE_TYPE_ANY ((enum dns_type)255) /* the zone file's "*" */
#define ZONE_TYPE_SPF ((enum dns_type)99)  /* read, but never asked for */

/* One line. `status` is DNS_OK for data; a name with several lines of one
 * type keeps their order by `line`. */
struct zone_entry {
	struct str name;
	enum dns_type type;
	enum dns_status status;
	unsigned line;
	struct dns_record record;
};

/* The entries in the order of the text, in memory from malloc, to be freed
 * also after an error; what they point to is in the arena. Errors name
 * label:line. */
HN_CHECK enum res zone_read(struct arena *a, struct str text, const char *label,
    struct err *err, struct zone_entry **out_entries, size_t *out_count);

#endif
