/* Time comes in as an argument: the wall clock for verdicts and records, the
 * monotonic one for deadlines. Tests and `--clock` pass a fixed wall clock. */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include <stdint.h>

#include "base/buf.h"

struct clock {
	int64_t fixed_us; /* < 0: the system's clock */
};

#define CLOCK_SYSTEM ((struct clock){ -1 })

/* Microseconds since 1970-01-01 UTC. */
int64_t clock_now_us(const struct clock *c);
/* Seconds since 1970-01-01 UTC. */
int64_t clock_now_s(const struct clock *c);
/* Monotonic microseconds; only differences mean something. Never fixed. */
int64_t clock_mono_us(void);

/* Append "2026-11-30T17:03:05.123456Z" (RFC 3339). */
void clock_format_us(struct buf *out, int64_t us);
/* The same back, and what else ISO 8601 has of it: a blank for the T, seconds
 * with any fraction or none, "Z" or "+01:00" or "+0100". All of `text`.
 * RES_SYNTAX. */
HN_CHECK enum res clock_parse_us(struct str text, int64_t *out);

#endif
