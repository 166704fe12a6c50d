#include "cli/maillog_inside.h"

#include <string.h>
#include <time.h>

#include "base/clock.h"

#define DAY_S 86400
#define MIN_QUEUE_ID 5
#define MAX_QUEUE_ID 32

/* --- time ------------------------------------------------------------------ */

static bool
take_clock(struct str *s, struct tm *tm)
{
	return str_take_digits(s, 2, &tm->tm_hour) && str_take_char(s, ':') &&
	    str_take_digits(s, 2, &tm->tm_min) && str_take_char(s, ':') &&
	    str_take_digits(s, 2, &tm->tm_sec) && tm->tm_hour < 24 &&
	    tm->tm_min < 60 && tm->tm_sec <= 60;
}

/* "Nov 30 17:03:05 ": the day has a blank where it has one digit. */
static bool
take_syslog_time(struct str *s, int64_t written_s, int64_t *out_us)
{
	static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
	struct tm tm = { .tm_isdst = -1 }, now;
	size_t month = str_find(STR("JanFebMarAprMayJunJulAugSepOctNovDec"),
	    str_sub(*s, 0, 3));
	time_t written = (time_t)written_s;
	if (s->len < 16 || month >= sizeof months - 1 || month % 3 != 0)
		return false;
	*s = str_skip(*s, 3);
	if (!str_take_char(s, ' '))
		return false;
	size_t digits = str_take_char(s, ' ') ? 1 : 2;
	if (s->len > 1 && s->ptr[1] == ' ')
		digits = 1; /* "Nov 3", as some write */
	if (!str_take_digits(s, digits, &tm.tm_mday) || !str_take_char(s, ' ') ||
	    !take_clock(s, &tm) || !str_take_char(s, ' ') ||
	    localtime_r(&written, &now) == NULL)
		return false;
	tm.tm_mon = (int)month / 3;
	for (int back = 0; back < 2; back++) {
		struct tm try = tm;
		try.tm_year = now.tm_year + 1 - back;
		time_t t = mktime(&try);
		if (t != (time_t)-1 && (int64_t)t <= written_s + DAY_S) {
			*out_us = (int64_t)t * 1000000;
			return true;
		}
	}
	tm.tm_year = now.tm_year - 1;
	time_t t = mktime(&tm);
	*out_us = (int64_t)t * 1000000;
	return t != (time_t)-1;
}

/* "2026-11-30T17:03:05.123456+01:00 " */
static bool
take_iso_time(struct str *s, int64_t *out_us)
{
	size_t blank = str_chr(*s, ' ');
	if (blank == SIZE_MAX ||
	    clock_parse_us(str_sub(*s, 0, blank), out_us) != RES_OK)
		return false;
	*s = str_skip(*s, blank + 1);
	return true;
}

/* --- who says it ----------------------------------------------------------- */

static bool
all_of(struct str s, const char *set)
{
	for (size_t i = 0; i < s.len; i++)
		if (s.ptr[i] == '\0' || strchr(set, s.ptr[i]) == NULL)
			return false;
	return true;
}

/* Short ids are hexadecimal; long ones have no vowels, and a z before the
 * inode number. So no word of Postfix's is one ("warning:", "statistics:"). */
bool
maillog_is_queue_id(struct str s)
{
	if (s.len < MIN_QUEUE_ID || s.len > MAX_QUEUE_ID)
		return false;
	if (all_of(s, "0123456789ABCDEF"))
		return true;
	return s.len >= 10 && str_chr(s, 'z') != SIZE_MAX &&
	    all_of(s, "0123456789BCDFGHJKLMNPQRSTVWXYZ"
		      "bcdfghjklmnpqrstvwxyz");
}

/* As its daemons call themselves. */
static bool
is_sendmail(struct str program)
{
	static const char *const names[] = { "sendmail", "sm-mta", "sm-queue",
		"sm-msp-queue", "sm-acceptingconnections" };
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (str_eq(program, str_c(names[i])))
			return true;
	return false;
}

/* "postfix/smtpd[123]: " gives "postfix" and "smtpd"; what stands between is
 * of no interest ("postfix/submission/smtpd"). "sm-mta[123]: " is Sendmail's. */
static bool
take_program(struct str *s, struct str *out_service, struct str *out_daemon)
{
	size_t colon = str_find(*s, STR(": "));
	if (colon == SIZE_MAX)
		return false;
	struct str program = str_sub(*s, 0, colon);
	program = str_sub(program, 0, str_chr(program, '['));
	size_t first = str_chr(program, '/'), last = str_rchr(program, '/');
	*s = str_skip(*s, colon + 2);
	if (first == SIZE_MAX) {
		*out_service = *out_daemon = STR("sendmail");
		return is_sendmail(program);
	}
	*out_service = str_sub(program, 0, first);
	*out_daemon = str_skip(program, last + 1);
	return str_chr(program, ' ') == SIZE_MAX;
}

/* --- what happened --------------------------------------------------------- */

bool
maillog_skip_address(struct str *s)
{
	size_t i = 1;
	if (s->len < 2 || s->ptr[0] != '<')
		return false;
	if (s->ptr[1] == '"')
		for (i = 2; i < s->len && s->ptr[i] != '"'; i++)
			if (s->ptr[i] == '\\')
				i++;
	while (i < s->len && s->ptr[i] != '>')
		i++;
	if (i >= s->len)
		return false;
	*s = str_skip(*s, i + 1);
	return true;
}

bool
maillog_is_local(struct str relay)
{
	return str_find(relay, STR("[127.")) != SIZE_MAX ||
	    str_find(relay, STR("[::1]")) != SIZE_MAX ||
	    str_find(relay, STR("[private/")) != SIZE_MAX;
}

/* The name behind "queued as", of a server on this host: any other's queue
 * ids are none of ours. */
static struct str
queued_as(struct str before, struct str reply)
{
	struct str relay = str_skip(before, str_find(before, STR("relay=")));
	relay = str_sub(relay, 0, str_chr(relay, ','));
	size_t at = str_find(reply, STR("queued as "));
	if (at == SIZE_MAX || !maillog_is_local(relay))
		return STR_EMPTY;
	struct str id = str_skip(reply, at + 10);
	size_t n = 0;
	while (n < id.len &&
	    (ascii_is_alpha(id.ptr[n]) || ascii_is_digit(id.ptr[n])))
		n++;
	id = str_sub(id, 0, n);
	return maillog_is_queue_id(id) ? id : STR_EMPTY;
}

/* "to=<…>, orig_to=<…>, relay=…, dsn=2.0.0, status=sent (…)". The reply in
 * parentheses is a stranger's, so only the first "status=" counts. */
static bool
parse_delivery(struct str s, struct maillog_event *out)
{
	static const struct {
		const char *word;
		enum maillog_kind kind;
	} words[] = { { "sent", MAILLOG_SENT }, { "bounced", MAILLOG_BOUNCED },
		{ "undeliverable", MAILLOG_OTHER },
		{ "deferred", MAILLOG_DEFERRED },
		{ "expired", MAILLOG_EXPIRED } };
	s = str_skip(s, 3);
	if (!maillog_skip_address(&s))
		return false;
	if (str_starts(s, STR(", orig_to="))) {
		s = str_skip(s, 10);
		if (!maillog_skip_address(&s))
			return false;
	}
	size_t at = str_find(s, STR(", status="));
	if (at == SIZE_MAX)
		return false;
	struct str before = str_sub(s, 0, at);
	struct str word = str_skip(s, at + 9);
	struct str reply = word;
	word = str_sub(word, 0, str_chr(word, ' '));
	out->kind = MAILLOG_OTHER;
	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		if (str_eq(word, str_c(words[i].word)))
			out->kind = words[i].kind;
	if (out->kind == MAILLOG_SENT)
		out->value = queued_as(before, reply);
	return true;
}

struct str
maillog_in_brackets(struct str s)
{
	if (s.len > 2 && s.ptr[0] == '<')
		s = str_sub(s, 1, str_rchr(s, '>') - 1);
	return s;
}

static bool
parse_cleanup(struct str s, struct maillog_event *out)
{
	static const struct {
		const char *begin;
		enum maillog_kind kind;
	} words[] = {
		{ "milter-reject: END-OF-MESSAGE", MAILLOG_REFUSED },
		{ "milter-discard: END-OF-MESSAGE", MAILLOG_DISCARDED },
		{ "milter-hold: END-OF-MESSAGE", MAILLOG_HELD },
		{ "milter-reject: ", MAILLOG_REFUSED },
		{ "milter-discard: ", MAILLOG_DISCARDED },
		{ "reject: ", MAILLOG_REFUSED },
		{ "discard: ", MAILLOG_DISCARDED },
		{ "hold: ", MAILLOG_HELD },
	};
	if (str_starts(s, STR("message-id="))) {
		out->kind = MAILLOG_MESSAGE_ID;
		out->value = maillog_in_brackets(str_skip(s, 11));
		return true;
	}
	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		if (str_starts(s, str_c(words[i].begin))) {
			out->kind = words[i].kind;
			return true;
		}
	return true;
}

static bool
parse_text(struct str daemon, struct str s, struct maillog_event *out)
{
	if (str_starts(s, STR("to=<")))
		return parse_delivery(s, out);
	if (str_eq(daemon, STR("smtpd")) || str_eq(daemon, STR("qmqpd"))) {
		if (str_starts(s, STR("client=")))
			out->kind = MAILLOG_CLIENT;
	} else if (str_eq(daemon, STR("pickup"))) {
		size_t before = str_find(s, STR(" orig_id="));
		if (str_starts(s, STR("uid=")))
			out->kind = MAILLOG_LOCAL;
		if (before != SIZE_MAX)
			out->value = str_trim(str_skip(s, before + 9));
	} else if (str_eq(daemon, STR("cleanup"))) {
		return parse_cleanup(s, out);
	} else if (str_eq(daemon, STR("postsuper"))) {
		if (str_starts(s, STR("removed")))
			out->kind = MAILLOG_DELETED;
		else if (str_starts(s, STR("placed on hold")))
			out->kind = MAILLOG_HELD;
	} else if (str_eq(daemon, STR("qmgr"))) {
		if (str_starts(s, STR("removed")))
			out->kind = MAILLOG_REMOVED;
		else if (str_starts(s, STR("from=<")) &&
		    str_ends(str_trim(s),
			STR("status=expired, returned to sender")))
			out->kind = MAILLOG_EXPIRED;
	}
	return true;
}

bool
maillog_parse(struct str s, int64_t written_s, struct maillog_event *out,
    int64_t *out_time_us)
{
	struct maillog_event e = { .kind = MAILLOG_OTHER };
	struct str daemon;
	if (s.len > 0 && s.ptr[0] == '<') /* a priority */
		s = str_skip(s, str_chr(s, '>') + 1);
	bool timed = s.len > 0 && ascii_is_digit(s.ptr[0]) ?
	    take_iso_time(&s, &e.time_us) :
	    take_syslog_time(&s, written_s, &e.time_us);
	if (!timed)
		return false;
	*out_time_us = e.time_us;
	if (!str_split(&s, ' ', &e.host) || s.ptr == NULL ||
	    !take_program(&s, &e.service, &daemon))
		return false;
	if (str_eq(e.service, STR("sendmail"))) {
		if (!maillog_parse_sendmail(s, &e))
			return false;
		*out = e;
		return true;
	}
	size_t colon = str_find(s, STR(": "));
	e.queue_id = str_sub(s, 0, colon);
	if (colon == SIZE_MAX || !maillog_is_queue_id(e.queue_id) ||
	    !parse_text(daemon, str_skip(s, colon + 2), &e))
		return false;
	*out = e;
	return true;
}
