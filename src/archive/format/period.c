#include "archive/format/period.h"

#include <stdio.h>
#include <time.h>

#define MIN_MONTH (1 * 12)
#define MAX_MONTH (9999 * 12 + 11)

int64_t
period_of(int64_t time_us)
{
	int64_t s = time_us / 1000000;
	if (time_us % 1000000 < 0)
		s--;
	time_t t = (time_t)s;
	struct tm tm;
	if (gmtime_r(&t, &tm) == NULL)
		return time_us < 0 ? MIN_MONTH : MAX_MONTH;
	int64_t month = ((int64_t)tm.tm_year + 1900) * 12 + tm.tm_mon;
	if (month < MIN_MONTH)
		return MIN_MONTH;
	return month > MAX_MONTH ? MAX_MONTH : month;
}

int64_t
period_end_us(int64_t period)
{
	struct tm tm = { .tm_year = (int)(period / 12 - 1900),
		.tm_mon = (int)(period % 12 + 1),
		.tm_mday = 1 };
	return (int64_t)timegm(&tm) * 1000000;
}

void
period_format(int64_t period, char out[SHARD_MAX_PERIOD + 1])
{
	if (period < MIN_MONTH)
		period = MIN_MONTH;
	if (period > MAX_MONTH)
		period = MAX_MONTH;
	unsigned year = (unsigned)(period / 12), month = period % 12 + 1;
	snprintf(out, SHARD_MAX_PERIOD + 1, "%04u-%02u", year % 10000,
	    month % 100);
}

enum res
period_parse(struct str text, int64_t *out)
{
	uint64_t year, month;
	if (text.len != 7 || text.ptr[4] != '-' ||
	    str_to_u64(str_sub(text, 0, 4), 9999, &year) != RES_OK ||
	    str_to_u64(str_sub(text, 5, 2), 12, &month) != RES_OK ||
	    month == 0 || year == 0)
		return RES_SYNTAX;
	*out = (int64_t)(year * 12 + month - 1);
	return RES_OK;
}
