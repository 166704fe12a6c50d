/* hanaper archive resend: archived messages once more, through the MTA's
 * sendmail command. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/archive.h"
#include "cli/resent.h"
#include "cli/sendmail.h"

#define USAGE "resend " ARCHIVE_PLACE_USAGE "\n" \
	"       [--to ADDRESS ...] [--from ADDRESS] [--sender ADDRESS]\n" \
	"       [--edited] [--sendmail PATH] [--dry-run] ID ..."

#define DEFAULT_SENDMAIL "/usr/sbin/sendmail"
#define MAX_TO      1000
#define MAX_ADDRESS 500
#define MEMORY      ((size_t)512 << 20)

struct resend {
	struct archive_place place;
	const char *to[MAX_TO];
	size_t to_count;
	const char *from, *sender, *sendmail;
	bool edited, dry_run;
	struct archive_reader *reader;
};

static const struct option options[] = {
	ARCHIVE_PLACE_LONG,
	{ "to", required_argument, NULL, 't' },
	{ "from", required_argument, NULL, 'f' },
	{ "sender", required_argument, NULL, 's' },
	{ "edited", no_argument, NULL, 'e' },
	{ "sendmail", required_argument, NULL, 'S' },
	{ "dry-run", no_argument, NULL, 'n' },
	{ NULL, 0, NULL, 0 },
};

/* Nothing that could end an argument, a line or a field; a quoted local part
 * may hold all but that. */
static bool
is_address(struct str s)
{
	bool quoted = false;
	for (size_t i = 0; i < s.len; i++) {
		unsigned char c = (unsigned char)s.ptr[i];
		if (c < ' ' || c == 0x7f)
			return false;
		if (quoted && c == '\\' && i + 1 < s.len &&
		    (unsigned char)s.ptr[i + 1] >= ' ')
			i++;
		else if (c == '"')
			quoted = !quoted;
		else if (!quoted && strchr(" ,;<>()", c) != NULL)
			return false;
	}
	return s.len > 0 && s.len <= MAX_ADDRESS && !quoted;
}

static int
take_address(const char *text, const char **out)
{
	if (!is_address(str_c(text)))
		return cli_fail(EX_USAGE, "'%s' is no address", text);
	*out = text;
	return EX_OK;
}

static int
parse_options(struct resend *x, int argc, char **argv)
{
	int c, status;
	while ((c = getopt_long(argc, argv, ARCHIVE_PLACE_SHORT, options,
		    NULL)) != -1) {
		status = EX_OK;
		if (archive_place_option(&x->place, c, optarg, &status)) {
			;
		} else if (c == 't') {
			if (x->to_count == MAX_TO)
				status = cli_fail(EX_USAGE,
				    "more than %d addresses", MAX_TO);
			else
				status = take_address(
				    optarg, &x->to[x->to_count++]);
		} else if (c == 'f') {
			status = take_address(optarg, &x->from);
		} else if (c == 's') {
			x->sender = optarg;
			if (optarg[0] != '\0' && strcmp(optarg, "<>") != 0)
				status = take_address(optarg, &x->sender);
		} else if (c == 'e') {
			x->edited = true;
		} else if (c == 'S') {
			x->sendmail = optarg;
		} else if (c == 'n') {
			x->dry_run = true;
		} else {
			return cli_usage("archive", USAGE);
		}
		if (status != EX_OK)
			return status;
	}
	return optind < argc ? EX_OK : cli_usage("archive", USAGE);
}

/* --- one message ----------------------------------------------------------- */

/* Those of --to, or of the envelope as it was offered; NULL after a
 * complaint. */
static char **
recipients(const struct resend *x, struct arena *a, const char *id,
    struct str meta, size_t *out_count, size_t *out_left, int *out_status)
{
	struct record_reader r;
	struct str value;
	unsigned tag;
	size_t count = 0, cap = x->to_count;
	if (cap == 0 && record_open(meta, &r) == RES_OK)
		while (record_next(&r, &tag, &value))
			cap += tag == META_RCPT;
	char **list = arena_array(a, cap + 1, sizeof *list);
	for (size_t i = 0; list != NULL && i < x->to_count; i++)
		list[count++] = arena_cstr(a, str_c(x->to[i]));
	if (x->to_count == 0 && record_open(meta, &r) == RES_OK)
		while (list != NULL && record_next(&r, &tag, &value)) {
			if (tag == META_RCPT && is_address(value))
				list[count++] = arena_cstr(a, value);
			else if (tag == META_RCPT)
				++*out_left;
		}
	*out_count = count;
	if (list == NULL || (count > 0 && list[count - 1] == NULL)) {
		*out_status = cli_fail(EX_OSERR, "out of memory");
		return NULL;
	}
	if (count > 0)
		return list;
	*out_status = cli_fail(EX_USAGE,
	    "%s: no recipients were kept with it: give --to", id);
	return NULL;
}

static int
write_message(const struct resend *x, struct arena *a, const char *id,
    uint64_t number, const struct archived *m, FILE *out)
{
	const struct clock clock = CLOCK_SYSTEM;
	struct err err = { "" };
	char host[256] = "localhost";
	(void)gethostname(host, sizeof host - 1);
	struct str from = arena_printf(a, "postmaster@%s", host);
	const struct resent r = { .from = x->from != NULL ? x->from : from.ptr,
		.to = x->to,
		.to_count = x->to_count,
		.edits = x->edited ? m->edits : STR_EMPTY,
		.now_us = clock_now_us(&clock),
		.host = host };
	struct sink *s = from.ptr != NULL ? resent_sink(a, &r, out) : NULL;
	enum res res = RES_NOMEM;
	if (s != NULL)
		res = archive_get_body(x->reader, number, &err, s);
	if (res == RES_OK)
		return EX_OK;
	return cli_fail(cli_status(res), "%s: %s", id,
	    err.text[0] != '\0' ? err.text : res_text(res));
}

/* In groups, as a command line has its limits. */
static int
hand_over(const struct resend *x, const char *id, char **rcpts, size_t count,
    const char *sender, FILE *message)
{
	for (size_t done = 0; done < count;) {
		size_t n = count - done < SENDMAIL_MAX_RCPTS ?
		    count - done : SENDMAIL_MAX_RCPTS;
		int status = sendmail_run_to(
		    x->sendmail, sender, rcpts + done, n, message);
		if (status != EX_OK)
			return cli_fail(status, "%s: %s ended with status %d "
			    "(%zu of %zu recipients were handed over)", id,
			    x->sendmail, status, done, count);
		done += n;
	}
	fprintf(stderr, "hanaper: %s: handed over for %zu recipient%s\n", id,
	    count, count == 1 ? "" : "s");
	return EX_OK;
}

static int
send_archived(const struct resend *x, struct arena *a, const char *id,
    uint64_t number)
{
	struct archived m;
	struct err err = { "" };
	size_t count, left = 0;
	int status = EX_OK;
	enum res r = archive_get(x->reader, a, number, &err, &m);
	if (r != RES_OK)
		return cli_fail(cli_status(r), "%s: %s", id,
		    err.text[0] != '\0' ? err.text : res_text(r));
	char **rcpts = recipients(
	    x, a, id, m.meta, &count, &left, &status);
	if (rcpts == NULL)
		return status;
	if (x->dry_run) {
		for (size_t i = 0; i < count; i++)
			fprintf(stderr, "hanaper: %s: for %s\n", id, rcpts[i]);
		return write_message(x, a, id, number, &m, stdout);
	}
	FILE *f = tmpfile();
	if (f == NULL)
		return cli_fail(EX_OSERR, "temporary file: %s",
		    strerror(errno));
	status = write_message(x, a, id, number, &m, f);
	const char *sender = x->sender != NULL ? x->sender : x->from;
	char host[256] = "localhost", mine[300];
	if (sender == NULL) {
		(void)gethostname(host, sizeof host - 1);
		snprintf(mine, sizeof mine, "postmaster@%s", host);
		sender = mine;
	} else if (sender[0] == '\0') {
		sender = "<>";
	}
	if (status == EX_OK)
		status = hand_over(x, id, rcpts, count, sender, f);
	fclose(f);
	if (status == EX_OK && left > 0)
		status = cli_fail(EX_DATAERR, "%s: %zu of its recipients are "
		    "no addresses: nothing was sent to them", id, left);
	return status;
}

static int
send_one(const struct resend *x, const char *id)
{
	uint64_t number;
	if (archive_id_parse(str_c(id), &number) != RES_OK)
		return cli_fail(
		    EX_USAGE, "'%s' is no id (they look like 1.23)", id);
	struct arena *a = arena_new(MEMORY);
	if (a == NULL)
		return cli_fail(EX_OSERR, "out of memory");
	int status = send_archived(x, a, id, number);
	arena_free(&a);
	return status;
}

/* Which messages leave the archive, and to whom, before they do. */
static int
write_event(const struct resend *x, struct arena *a, int argc, char **argv)
{
	struct buf to;
	size_t count = 0;
	uint64_t *ids = arena_array(a, (size_t)argc, sizeof *ids);
	if (ids == NULL)
		return cli_fail(EX_OSERR, "out of memory");
	for (int i = optind; i < argc; i++)
		count += archive_id_parse(str_c(argv[i]), &ids[count]) ==
		    RES_OK;
	buf_init(&to, 16000);
	for (size_t i = 0; i < x->to_count; i++)
		buf_addf(&to, "%s%s", i > 0 ? " " : "", x->to[i]);
	int status = archive_event(&x->place, "resend",
	    archive_reader_path(x->reader), buf_str(&to), ids, count);
	buf_done(&to);
	return status;
}

int
archive_resend_main(int argc, char **argv)
{
	static struct resend x = { .sendmail = DEFAULT_SENDMAIL };
	int status = parse_options(&x, argc, argv);
	if (status != EX_OK)
		return status;
	struct arena *a = arena_new(0);
	if (a == NULL)
		return cli_fail(EX_OSERR, "out of memory");
	x.reader = archive_place_open(&x.place, a, &status);
	if (x.reader != NULL && !x.dry_run)
		status = write_event(&x, a, argc, argv);
	bool may = x.reader != NULL && status == EX_OK;
	for (int i = optind; may && i < argc; i++) {
		/* one that cannot be sent does not keep the others */
		int one = send_one(&x, argv[i]);
		if (status == EX_OK)
			status = one;
	}
	archive_reader_close(&x.reader);
	arena_free(&a);
	return status;
}
