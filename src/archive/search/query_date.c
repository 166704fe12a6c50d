#include "archive/search/query.h"

#include <string.h>
#include <time.h>

#define SECOND 1000000
#define DAY    ((int64_t)86400 * SECOND)

/* Seconds since 1970 of a UTC date; month may be 13. */
static int64_t
day_us(int64_t year, int64_t month, int64_t day)
{
	struct tm tm = { .tm_year = (int)year - 1900,
		.tm_mon = (int)month - 1,
		.tm_mday = (int)day };
	return (int64_t)timegm(&tm) * SECOND;
}

static bool
number(struct str *s, size_t digits, int64_t low, int64_t high, int64_t *out)
{
	uint64_t n;
	struct str part = str_sub(*s, 0, digits);
	if (part.len < digits || str_to_u64(part, (uint64_t)high, &n) != RES_OK ||
	    (int64_t)n < low)
		return false;
	*s = str_skip(*s, digits);
	*out = (int64_t)n;
	return true;
}

static bool
literal(struct str *s, char c)
{
	if (s->len == 0 || s->ptr[0] != c)
		return false;
	*s = str_skip(*s, 1);
	return true;
}

static int64_t
days_in(int64_t year, int64_t month)
{
	return (day_us(year, month + 1, 1) - day_us(year, month, 1)) / DAY;
}

/* "2026", "2026-11", "2026-11-30", "2026-11-30T17:03[:05]": a span. */
static enum res
absolute(struct str s, int64_t *from, int64_t *to)
{
	int64_t year, month, day, hour, minute, second = 0;
	if (!number(&s, 4, 1970, 9999, &year))
		return RES_SYNTAX;
	*from = day_us(year, 1, 1);
	*to = day_us(year + 1, 1, 1);
	if (s.len == 0)
		return RES_OK;
	if (!literal(&s, '-') || !number(&s, 2, 1, 12, &month))
		return RES_SYNTAX;
	*from = day_us(year, month, 1);
	*to = day_us(year, month + 1, 1);
	if (s.len == 0)
		return RES_OK;
	if (!literal(&s, '-') || !number(&s, 2, 1, days_in(year, month), &day))
		return RES_SYNTAX;
	*from = day_us(year, month, day);
	*to = *from + DAY;
	if (s.len == 0)
		return RES_OK;
	if ((!literal(&s, 'T') && !literal(&s, 't')) ||
	    !number(&s, 2, 0, 23, &hour) || !literal(&s, ':') ||
	    !number(&s, 2, 0, 59, &minute))
		return RES_SYNTAX;
	bool seconds = literal(&s, ':');
	if (seconds && !number(&s, 2, 0, 60, &second))
		return RES_SYNTAX;
	(void)(literal(&s, 'Z') || literal(&s, 'z'));
	*from += (hour * 3600 + minute * 60 + second) * SECOND;
	*to = *from + (seconds ? 1 : 60) * (int64_t)SECOND;
	return s.len == 0 ? RES_OK : RES_SYNTAX;
}

/* "3d": from that long ago until ever; also today and yesterday. */
static enum res
relative(struct str s, int64_t now_s, int64_t *from, int64_t *to)
{
	static const struct {
		char unit;
		int64_t seconds;
	} units[] = { { 'h', 3600 }, { 'd', 86400 }, { 'w', 7 * 86400 },
		{ 'm', 30 * 86400 }, { 'y', 365 * 86400 } };
	int64_t now = now_s * SECOND, today = now - (now % DAY + DAY) % DAY;
	if (str_case_eq(s, STR("today"))) {
		*from = today;
		*to = today + DAY;
		return RES_OK;
	}
	if (str_case_eq(s, STR("yesterday"))) {
		*from = today - DAY;
		*to = today;
		return RES_OK;
	}
	uint64_t n;
	if (s.len < 2 ||
	    str_to_u64(str_sub(s, 0, s.len - 1), 100000, &n) != RES_OK)
		return RES_SYNTAX;
	for (size_t i = 0; i < sizeof units / sizeof *units; i++)
		if (ascii_lower(s.ptr[s.len - 1]) == units[i].unit) {
			*from = now - (int64_t)n * units[i].seconds * SECOND;
			*to = INT64_MAX;
			return RES_OK;
		}
	return RES_SYNTAX;
}

static enum res
one_date(struct str s, int64_t now_s, int64_t *from, int64_t *to)
{
	if (relative(s, now_s, from, to) == RES_OK)
		return RES_OK;
	return absolute(s, from, to);
}

/* An end of a range: "3d" is a moment there, not a span. */
static enum res
range_end(struct str s, int64_t now_s, int64_t *out_to)
{
	int64_t from, to;
	enum res r = one_date(s, now_s, &from, &to);
	if (r == RES_OK)
		*out_to = to == INT64_MAX ? from : to;
	return r;
}

enum res
query_date(struct str text, int64_t now_s, int64_t *out_from, int64_t *out_to)
{
	size_t dots = str_find(text, STR(".."));
	if (dots == SIZE_MAX)
		return one_date(text, now_s, out_from, out_to);
	struct str a = str_sub(text, 0, dots), b = str_skip(text, dots + 2);
	int64_t from = INT64_MIN, to = INT64_MAX, unused;
	if (a.len == 0 && b.len == 0)
		return RES_SYNTAX;
	if (a.len > 0 && one_date(a, now_s, &from, &unused) != RES_OK)
		return RES_SYNTAX;
	if (b.len > 0 && range_end(b, now_s, &to) != RES_OK)
		return RES_SYNTAX;
	*out_from = from;
	*out_to = to;
	return RES_OK;
}

enum res
query_size(struct str text, int64_t *out)
{
	int64_t unit = 1;
	if (text.len > 1 && ascii_lower(text.ptr[text.len - 1]) == 'b')
		text.len--;
	if (text.len > 0) {
		const char *units = "kmgt";
		const char *u = memchr(
		    units, ascii_lower(text.ptr[text.len - 1]), 4);
		if (u != NULL) {
			unit = (int64_t)1 << (10 * (u - units + 1));
			text.len--;
		}
	}
	uint64_t n;
	if (str_to_u64(text, 1000000000000, &n) != RES_OK ||
	    (int64_t)n > INT64_MAX / unit)
		return RES_SYNTAX;
	*out = (int64_t)n * unit;
	return RES_OK;
}
