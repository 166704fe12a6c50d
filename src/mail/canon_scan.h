/* Finds the spots of a body that relaxed canonicalization may have to change,
 * 64 bytes at a time, and rewrites blocks that are full of them. Used by
 * canon_body.c alone. */
#ifndef MAIL_CANON_SCAN_H
#define MAIL_CANON_SCAN_H

#include <stddef.h>
#include <stdint.h>

#define CANON_SCAN_BLOCK 64

/* What stands in a block of 64 bytes; bit i is byte i. */
struct canon_marks {
	uint64_t spots; /* a HTAB, or SP, HTAB or CR behind a SP or HTAB */
	uint64_t blank; /* SP and HTAB */
};

#define CANON_SCAN_BLOCKS 64

/* The marks of up to 64 blocks at `p`. `*carry` is 1 when the byte before `p`
 * is a SP or HTAB, and is left for the next call. Gives which blocks have
 * spots: bit i is block i. */
typedef uint64_t canon_scan_fn(
    const char *p, size_t blocks, struct canon_marks *marks, uint64_t *carry);

/* The block at `p` without the bytes of `drop` and with SP for HTAB, to `out`,
 * which has room for 64 bytes. Gives how many it are. */
typedef size_t canon_pack_fn(const char *p, uint64_t drop, char *out);

struct canon_scanner {
	canon_scan_fn *scan;
	canon_pack_fn *pack;
};

/* The fastest variant this processor has. */
const struct canon_scanner *canon_scanner_best(void);

/* All variants usable here, for tests, from slow to fast; NULL past the
 * last. */
const struct canon_scanner *canon_scanner_variant(size_t i);

#endif
