/* The MANIFEST beside messages written out: one line a message, separated by
 * tabs, so that what was written can be checked years later:
 *
 *   id  SHA-256  bytes  file  direction  sender  results  time  recipients
 *   and, of an export, proof
 *
 * Control bytes are '?'; recipients are separated by blanks; proof is a file
 * (archive/proof.h), empty when there is none. */
#ifndef CLI_MANIFEST_H
#define CLI_MANIFEST_H

#include <stdio.h>

#include "base/str.h"
#include "keys/digest.h"

struct manifest_line {
	struct str id;
	const uint8_t *sha256;
	uint64_t bytes;
	struct str file;
	struct str meta;         /* decoded; may be empty */
	int64_t time_us;
	const char *proof; /* NULL: no such column */
};

/* Errors are the stream's. */
void manifest_put(FILE *f, const struct manifest_line *l);

#endif
