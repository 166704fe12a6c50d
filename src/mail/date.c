#include "mail/date.h"

#include <stdbool.h>
#include <time.h>

#define MAX_DATE 512 /* bytes looked at */

struct date {
	int day, month, year;        /* 0: not seen */
	int hour, minute, second;    /* hour -1: not seen */
	int zone_s;
};

/* The next word; comments, blanks and commas stand between words. */
static struct str
next_word(struct str *rest)
{
	size_t at = 0, depth = 0, from;
	for (; at < rest->len; at++) {
		char c = rest->ptr[at];
		if (c == '(')
			depth++;
		else if (c == ')' && depth > 0)
			depth--;
		else if (depth == 0 && c != ',' && c != '\r' && c != '\n' &&
		    !ascii_is_wsp(c))
			break;
	}
	for (from = at; at < rest->len; at++) {
		char c = rest->ptr[at];
		if (c == '(' || c == ',' || c == '\r' || c == '\n' ||
		    ascii_is_wsp(c))
			break;
	}
	struct str word = str_sub(*rest, from, at - from);
	*rest = str_skip(*rest, at);
	return word;
}

static int
month_of(struct str word)
{
	static const char names[] = "janfebmaraprmayjunjulaugsepoctnovdec";
	if (word.len < 3)
		return 0;
	for (int i = 0; i < 12; i++)
		if (str_case_starts(word, str_of(names + (size_t)i * 3, 3)))
			return i + 1;
	return 0;
}

static bool
digits(struct str *s, size_t most, int *out)
{
	size_t n = 0;
	int value = 0;
	while (n < most && n < s->len && ascii_is_digit(s->ptr[n]))
		value = value * 10 + (s->ptr[n++] - '0');
	*s = str_skip(*s, n);
	*out = value;
	return n > 0;
}

static bool
colon(struct str *s)
{
	if (s->len == 0 || s->ptr[0] != ':')
		return false;
	*s = str_skip(*s, 1);
	return true;
}

/* "9:55", "09:55:06". */
static bool
take_time(struct date *d, struct str word)
{
	int hour, minute, second = 0;
	if (!digits(&word, 2, &hour) || !colon(&word) ||
	    !digits(&word, 2, &minute))
		return false;
	if (colon(&word) && !digits(&word, 2, &second))
		return false;
	if (word.len > 0 || hour > 23 || minute > 59 || second > 60)
		return false;
	d->hour = hour;
	d->minute = minute;
	d->second = second;
	return true;
}

/* "-0600", and the names of RFC 5322 §4.3. */
static void
take_zone(struct date *d, struct str word)
{
	static const struct {
		const char *name;
		int hours;
	} zones[] = { { "edt", -4 }, { "est", -5 }, { "cdt", -5 },
		{ "cst", -6 }, { "mdt", -6 }, { "mst", -7 }, { "pdt", -7 },
		{ "pst", -8 } };
	int value;
	for (size_t i = 0; i < sizeof zones / sizeof *zones; i++)
		if (str_case_eq(word, str_c(zones[i].name)))
			d->zone_s = zones[i].hours * 3600;
	if (word.len != 5 || (word.ptr[0] != '+' && word.ptr[0] != '-'))
		return;
	bool west = word.ptr[0] == '-';
	word = str_skip(word, 1);
	if (!digits(&word, 4, &value) || word.len > 0 || value % 100 > 59)
		return;
	d->zone_s = value / 100 * 3600 + value % 100 * 60;
	if (west)
		d->zone_s = -d->zone_s;
}

/* A day, then a year; years of two and three digits as §4.3 says. */
static void
take_number(struct date *d, struct str word)
{
	size_t len = word.len;
	int value;
	if (len > 4 || !digits(&word, 4, &value) || word.len > 0)
		return;
	if (len <= 2 && d->day == 0) {
		d->day = value;
	} else if (d->year == 0) {
		if (len <= 2 && value < 50)
			value += 2000;
		else if (len <= 3)
			value += 1900;
		d->year = value;
	}
}

static void
take_word(struct date *d, struct str word)
{
	if (str_chr(word, ':') != SIZE_MAX) {
		if (d->hour < 0)
			(void)take_time(d, word);
	} else if (ascii_is_digit(word.ptr[0])) {
		take_number(d, word);
	} else if (ascii_is_alpha(word.ptr[0]) && d->month == 0 &&
	    month_of(word) != 0) {
		d->month = month_of(word);
	} else if (d->hour >= 0) {
		take_zone(d, word);
	}
}

enum res
date_parse(struct str text, int64_t *out_s)
{
	struct date d = { .hour = -1 };
	struct str rest = str_sub(text, 0, MAX_DATE), word;
	while ((word = next_word(&rest)).len > 0)
		take_word(&d, word);
	if (d.day == 0 || d.month == 0 || d.year == 0 || d.hour < 0)
		return RES_SYNTAX;
	struct tm tm = { .tm_year = d.year - 1900,
		.tm_mon = d.month - 1,
		.tm_mday = d.day,
		.tm_hour = d.hour,
		.tm_min = d.minute,
		.tm_sec = d.second };
	int64_t s = (int64_t)timegm(&tm);
	if (d.day > 31 || tm.tm_mon != d.month - 1)
		return RES_INVALID; /* the 30th of February */
	*out_s = s - d.zone_s;
	return RES_OK;
}
