/* Sendmail's log. A message has a line "from=" when it is taken in, a line
 * "to=" for each attempt at recipients, and none when it leaves the queue: it
 * is over when a report of its failure was made. Milters and rulesets are told
 * under its queue id, reports under its id and their own. */
#include "cli/maillog_inside.h"

#define TIME_LEN 8 /* of the queue id: when and the how many-th */
#define MIN_PID  5
#define MAX_PID  10

/* "4AUH35bK012345" */
static bool
is_queue_id(struct str s)
{
	size_t i = 0;
	while (i < TIME_LEN && i < s.len &&
	    (ascii_is_digit(s.ptr[i]) || ascii_is_alpha(s.ptr[i])))
		i++;
	struct str pid = str_skip(s, i);
	if (i < TIME_LEN || pid.len < MIN_PID || pid.len > MAX_PID)
		return false;
	for (i = 0; i < pid.len; i++)
		if (!ascii_is_digit(pid.ptr[i]))
			return false;
	return true;
}

/* "from=<…>, size=1, class=0, nrcpts=1, msgid=<…>, proto=ESMTP, relay=…" */
static void
parse_from(struct str s, struct maillog_event *out)
{
	s = str_skip(s, 5);
	if (!maillog_skip_address(&s))
		s = str_skip(s, str_find(s, STR(", size=")));
	out->kind = str_ends(s, STR("@localhost")) ? MAILLOG_LOCAL :
						     MAILLOG_CLIENT;
	size_t at = str_find(s, STR(", msgid="));
	if (at == SIZE_MAX)
		return;
	struct str id = str_skip(s, at + 8);
	size_t end = str_find(id, STR(", proto="));
	if (end == SIZE_MAX)
		end = str_find(id, STR(", relay="));
	out->message_id = maillog_in_brackets(str_sub(id, 0, end));
}

/* "(4AUH35bK012345 Message accepted for delivery)", by a server here. */
static struct str
accepted_as(struct str relay, struct str reply)
{
	size_t open = str_chr(reply, '(');
	if (open == SIZE_MAX || !maillog_is_local(relay))
		return STR_EMPTY;
	struct str id = str_skip(reply, open + 1);
	size_t blank = str_chr(id, ' ');
	if (blank == SIZE_MAX ||
	    !str_starts(str_skip(id, blank), STR(" Message accepted")))
		return STR_EMPTY;
	id = str_sub(id, 0, blank);
	return is_queue_id(id) ? id : STR_EMPTY;
}

/* "to=<…>,<…>, delay=…, mailer=…, relay=…, dsn=2.0.0, stat=Sent (…)": what
 * comes behind "stat=" is a stranger's. */
static void
parse_to(struct str s, struct maillog_event *out)
{
	s = str_skip(s, 3);
	while (maillog_skip_address(&s) && str_starts(s, STR(",<")))
		s = str_skip(s, 1);
	size_t at = str_find(s, STR(", stat="));
	if (at == SIZE_MAX)
		return;
	struct str before = str_sub(s, 0, at), stat = str_skip(s, at + 7);
	size_t dsn = str_find(before, STR(", dsn="));
	char class = dsn != SIZE_MAX && dsn + 6 < before.len ?
	    before.ptr[dsn + 6] : '\0';
	if (str_starts(stat, STR("Sent"))) {
		out->kind = MAILLOG_SENT;
		out->value = accepted_as(
		    str_skip(before, str_find(before, STR(", relay="))), stat);
	} else if (str_starts(stat, STR("Deferred")) || class == '4') {
		out->kind = MAILLOG_DEFERRED;
	} else if (class == '5') {
		out->kind = MAILLOG_BOUNCED;
	}
}

/* Behind the id of a report: what it tells the sender. */
static void
parse_report(struct str s, struct maillog_event *out)
{
	size_t at = str_find(s, STR(": "));
	struct str what = str_sub(s, 0, at), why = str_skip(s, at);
	why = str_skip(why, 2);
	bool is_dsn = str_eq(what, STR("DSN"));
	if (at == SIZE_MAX || str_eq(why, STR("Return receipt")) ||
	    str_starts(why, STR("Warning:")))
		return;
	if (str_starts(why, STR("Cannot send message")))
		out->kind = MAILLOG_EXPIRED;
	else if (is_dsn || str_eq(what, STR("return to sender")))
		out->kind = MAILLOG_BOUNCED;
	out->reported = out->kind != MAILLOG_OTHER;
}

static void
parse_milter(struct str s, struct maillog_event *out)
{
	static const struct {
		const char *begin;
		enum maillog_kind kind;
	} words[] = {
		{ "reject", MAILLOG_REFUSED },
		{ "discard", MAILLOG_DISCARDED },
		{ "quarantine=", MAILLOG_HELD },
	};
	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		if (str_starts(s, str_c(words[i].begin)))
			out->kind = words[i].kind;
}

static void
parse_text(struct str s, struct maillog_event *out)
{
	size_t colon = str_find(s, STR(": "));
	if (str_starts(s, STR("from=")))
		parse_from(s, out);
	else if (str_starts(s, STR("to=")))
		parse_to(s, out);
	else if (str_starts(s, STR("Milter: data, ")))
		parse_milter(str_skip(s, 14), out);
	else if (str_starts(s, STR("Milter: cmd=data, ")))
		parse_milter(str_skip(s, 18), out);
	else if (str_starts(s, STR("milter=")))
		parse_milter(str_skip(s, str_find(s, STR(", ")) + 2), out);
	else if (str_eq(s, STR("discarded")))
		out->kind = MAILLOG_DISCARDED;
	else if (colon != SIZE_MAX && is_queue_id(str_sub(s, 0, colon)))
		parse_report(str_skip(s, colon + 2), out);
}

bool
maillog_parse_sendmail(struct str s, struct maillog_event *out)
{
	size_t colon = str_find(s, STR(": "));
	if (colon == SIZE_MAX || !is_queue_id(str_sub(s, 0, colon)))
		return false;
	out->queue_id = str_sub(s, 0, colon);
	out->is_sendmail = true;
	parse_text(str_trim(str_skip(s, colon + 2)), out);
	return true;
}
