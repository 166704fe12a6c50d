/* Notices body lines of more than 998 octets, which a later hop would break
 * (RFC 5322 §2.1.1, PF-02). Passes nothing on; constant memory. */
#ifndef FLOW_LONGLINE_H
#define FLOW_LONGLINE_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/sink.h"

#define LONGLINE_MAX_OCTETS 998 /* without its CRLF */

/* Sets *out_seen once such a line has come. NULL without memory. */
struct sink *longline_sink(struct arena *a, bool *out_seen);

#endif
