/* Finds the spots of a body that relaxed canonicalization may have to change,
 * 64 bytes at a time. Used by canon_body.c alone. */
#ifndef MAIL_CANON_SCAN_H
#define MAIL_CANON_SCAN_H

#include <stddef.h>
#include <stdint.h>

#define CANON_SCAN_BLOCK 64

/* For each of `blocks` blocks of 64 bytes at `p` one mask: bit i is set when
 * byte i is a HTAB, or is SP, HTAB or CR behind a SP or HTAB. `*carry` is 1
 * when the byte before `p` is such a blank, and is left for the next call. */
typedef void canon_scan_fn(
    const char *p, size_t blocks, uint64_t *masks, uint64_t *carry);

/* The fastest variant this processor has. */
canon_scan_fn *canon_scan_best(void);

/* All variants usable here, for tests; NULL past the last. */
canon_scan_fn *canon_scan_variant(size_t i);

#endif
