#include "base/clock.h"

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
