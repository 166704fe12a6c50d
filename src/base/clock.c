#include "base/clock.h"

#include <stdbool.h>
#include <time.h>

int64_t
clock_now_us(const struct clock *c)
{
	if (c->fixed_us >= 0)
		return c->fixed_us;
	struct timespec ts;
	clock_gettime(CLOCK_REALTIME, &ts);
	return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

int64_t
clock_now_s(const struct clock *c)
{
	return clock_now_us(c) / 1000000;
}

int64_t
clock_mono_us(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

void
clock_format_us(struct buf *out, int64_t us)
{
	time_t s = (time_t)(us / 1000000);
	long frac = (long)(us % 1000000);
	if (frac < 0) {
		frac += 1000000;
		s--;
	}
	struct tm tm;
	if (gmtime_r(&s, &tm) == NULL) {
		buf_addf(out, "@%lld", (long long)us);
		return;
	}
	buf_addf(out, "%04d-%02d-%02dT%02d:%02d:%02d.%06ldZ", tm.tm_year + 1900,
	    tm.tm_mon + 1, tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec, frac);
}

/* Seconds east of UTC. */
static bool
take_zone(struct str *s, int64_t *out)
{
	int hours, minutes;
	*out = 0;
	if (str_take_char(s, 'Z'))
		return true;
	bool west = str_take_char(s, '-');
	if ((!west && !str_take_char(s, '+')) || !str_take_digits(s, 2, &hours))
		return false;
	(void)str_take_char(s, ':');
	if (!str_take_digits(s, 2, &minutes))
		return false;
	*out = (hours * 60 + minutes) * (west ? -60 : 60);
	return true;
}

enum res
clock_parse_us(struct str s, int64_t *out)
{
	struct tm tm = { .tm_isdst = 0 };
	int64_t us = 0, scale = 100000, zone;
	if (!str_take_digits(&s, 4, &tm.tm_year) || !str_take_char(&s, '-') ||
	    !str_take_digits(&s, 2, &tm.tm_mon) || !str_take_char(&s, '-') ||
	    !str_take_digits(&s, 2, &tm.tm_mday) ||
	    !(str_take_char(&s, 'T') || str_take_char(&s, ' ')) ||
	    !str_take_digits(&s, 2, &tm.tm_hour) || !str_take_char(&s, ':') ||
	    !str_take_digits(&s, 2, &tm.tm_min) || !str_take_char(&s, ':') ||
	    !str_take_digits(&s, 2, &tm.tm_sec))
		return RES_SYNTAX;
	if (str_take_char(&s, '.'))
		for (int digit; str_take_digits(&s, 1, &digit); scale /= 10)
			us += digit * scale;
	if (!take_zone(&s, &zone) || s.len > 0 || tm.tm_mon < 1 ||
	    tm.tm_mon > 12 || tm.tm_mday < 1 || tm.tm_mday > 31 ||
	    tm.tm_hour > 23 || tm.tm_min > 59 || tm.tm_sec > 60)
		return RES_SYNTAX;
	tm.tm_year -= 1900;
	tm.tm_mon--;
	*out = ((int64_t)timegm(&tm) - zone) * 1000000 + us;
	return RES_OK;
}
