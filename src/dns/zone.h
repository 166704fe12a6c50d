/* A resolver over a fixed zone file: tests, the demo, `--zone`.
 *
 * One record a line: `name TYPE data`, TXT with master-file quoting (several
 * "strings" are joined, \DDD and \x escapes), or `name TYPE !SERVFAIL`,
 * `!NXDOMAIN`, `!NODATA`, `!TIMEOUT`. TYPE `*` stands for every type that is
 * not listed for the name. `#` and `;` begin a comment at the start of a line
 * or after blanks outside quotes. A TTL and "IN" may stand before TYPE and
 * mean nothing, so that lines of a master file fit. CNAMEs are followed (at most 8). TTL is
 * 300. A name listed with other types only is NODATA, a name not listed is
 * NXDOMAIN. */
#ifndef DNS_ZONE_H
#define DNS_ZONE_H

#include "base/err.h"
#include "dns/dns.h"

/* `timeout_waits`: !TIMEOUT makes `wait` last until its deadline (daemon);
 * else the answer is DNS_TIMEOUT at once (CLI). Errors name file:line. */
HN_CHECK enum res zone_open(const char *path, bool timeout_waits,
    struct err *err, struct resolver **out);
/* The same from memory; `label` stands for the file name in errors. */
HN_CHECK enum res zone_from_text(struct str text, const char *label,
    bool timeout_waits, struct err *err, struct resolver **out);

#endif
