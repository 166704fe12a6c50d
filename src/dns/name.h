/* Domain names in text form: labels of bytes with dots between, lower case,
 * without the final dot; the root is the empty name. Bytes that would be
 * ambiguous in text (a dot or a backslash inside a label, control and 8-bit
 * bytes) appear as \DDD in names that come from the wire, so that they never
 * equal a name that was asked for. */
#ifndef DNS_NAME_H
#define DNS_NAME_H

#include <stdbool.h>

#include "base/str.h"

#define DNS_MAX_NAME  253 /* RFC 1035 §2.3.4: 255 octets on the wire */
#define DNS_MAX_LABEL 63

/* Whether a question can be made of it: 1..253 bytes, no label empty or over
 * 63, only SP and printable ASCII. (Mail's macros make names with odd bytes,
 * RFC 7208 §7.3; host name rules are not applied here.) */
bool dns_name_ok(struct str name);

/* Without one final dot. */
struct str dns_name_chop(struct str name);

#endif
