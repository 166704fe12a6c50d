/* An archived message as it is sent once more: fields that say so on top (RFC
 * 5322 §3.6.6), then the bytes as presented, or as they became by our edits,
 * with LF line ends as the sendmail command takes them. */
#ifndef CLI_RESENT_H
#define CLI_RESENT_H

#include <stdio.h>

#include "base/arena.h"
#include "base/sink.h"

#define RESENT_MAX_HEADER ((size_t)64 << 20)

struct resent {
	const char *from;        /* Resent-From */
	const char *const *to;   /* Resent-To; none: the field is left out */
	size_t to_count;
	struct str edits;        /* decoded EDITS to be made; may be empty */
	int64_t now_us;
	const char *host;        /* of the new Message-ID */
};

/* A sink for the presented bytes; what comes of them is written to `file`.
 * finish: RES_LIMIT when the header is larger than RESENT_MAX_HEADER and
 * there are edits, RES_IO. NULL without memory. */
struct sink *resent_sink(
    struct arena *a, const struct resent *r, FILE *file);

#endif
