/* The month a message belongs to, as shards are named: "2026-11". */
#ifndef ARCHIVE_PERIOD_H
#define ARCHIVE_PERIOD_H

#include <stdint.h>

#include "archive/format/segment.h"

/* Months since year 0 (UTC); times outside years 1–9999 are clamped. */
int64_t period_of(int64_t time_us);
/* The first moment behind it. */
int64_t period_end_us(int64_t period);
void period_format(int64_t period, char out[SHARD_MAX_PERIOD + 1]);
/* RES_SYNTAX unless YYYY-MM. */
HN_CHECK enum res period_parse(struct str text, int64_t *out);

#endif
