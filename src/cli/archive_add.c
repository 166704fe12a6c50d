/* hanaper archive add: one message from the standard input, durable before
 * exit 0; for pipe(8) and journaling addresses. Whatever goes wrong, the MTA
 * is told to keep the message and try again. */
#include <errno.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/importer.h"

#define USAGE                                  \
	"add " ARCHIVE_PLACE_USAGE "\n"        \
	"       [--from ADDR] [--rcpt ADDR ...] <MESSAGE"

#define MAX_RCPTS    10000 /* beyond that the message would wait for ever */
#define WAIT_SECONDS 30

struct add {
	struct archive_place place;
	struct str from;
	struct str rcpts[MAX_RCPTS];
	size_t rcpt_count;
};

static const struct option options[] = {
	ARCHIVE_PLACE_LONG,
	{ "from", required_argument, NULL, 'f' },
	{ "rcpt", required_argument, NULL, 'r' },
	{ NULL, 0, NULL, 0 },
};

/* "<a@b>" and "a@b" are the same. */
static struct str
address(const char *text)
{
	struct str s = str_trim(str_c(text));
	if (str_starts(s, STR("<")) && str_ends(s, STR(">")) && s.len > 1)
		s = str_sub(s, 1, s.len - 2);
	return s;
}

static int
take_recipient(struct add *x, const char *text)
{
	if (x->rcpt_count == MAX_RCPTS)
		return cli_fail(
		    EX_USAGE, "more than %d recipients", MAX_RCPTS);
	x->rcpts[x->rcpt_count++] = address(text);
	return EX_OK;
}

/* "--rcpt a@x b@x", as pipe(8) writes ${recipient}. Strangers choose these:
 * what has an @ behind a recipient is one, whatever it begins with. */
static bool
is_recipient(const struct add *x, const char *word)
{
	return x->rcpt_count > 0 &&
	    (word[0] != '-' || strchr(word, '@') != NULL);
}

static int
parse_option(struct add *x, int c)
{
	int status;
	if (archive_place_option(&x->place, c, optarg, &status))
		return status;
	if (c == 'r')
		return take_recipient(x, optarg);
	if (c != 'f')
		return cli_usage("archive", USAGE);
	x->from = address(optarg);
	return EX_OK;
}

static int
parse_options(struct add *x, int argc, char **argv)
{
	int c, status = EX_OK;
	while (status == EX_OK) {
		if (optind < argc && is_recipient(x, argv[optind])) {
			status = take_recipient(x, argv[optind++]);
			continue;
		}
		c = getopt_long(
		    argc, argv, "+" ARCHIVE_PLACE_SHORT, options, NULL);
		if (c == -1)
			break;
		status = parse_option(x, c);
	}
	while (status == EX_OK && optind < argc && x->rcpt_count > 0)
		status = take_recipient(x, argv[optind++]);
	if (status == EX_OK && optind < argc)
		status = cli_usage("archive", USAGE);
	return status;
}

static int
read_message(struct import_item *it)
{
	char bytes[65536];
	for (;;) {
		ssize_t n = read(STDIN_FILENO, bytes, sizeof bytes);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return cli_fail(EX_TEMPFAIL, "standard input: %s",
			    strerror(errno));
		if (n == 0)
			break;
		importer_push(it, bytes, (size_t)n);
	}
	if (it->bytes == 0)
		return cli_fail(EX_TEMPFAIL, "standard input is empty");
	return EX_OK;
}

static int
add_message(struct add *x, struct importer *im)
{
	const struct clock clock = CLOCK_SYSTEM;
	struct import_item *it = importer_item(im);
	if (it == NULL)
		return cli_fail(EX_TEMPFAIL, "out of memory");
	it->source = "add";
	it->time_us = clock_now_us(&clock);
	it->sender = x->from;
	it->rcpts = x->rcpts;
	it->rcpt_count = x->rcpt_count;
	int status = read_message(it);
	if (status == EX_OK)
		status = importer_lock(im, WAIT_SECONDS);
	return status == EX_OK ? importer_add(im, it) : status;
}

int
archive_add_main(int argc, char **argv)
{
	static struct add x;
	struct importer im = { .turn = -1, .lock = -1, .only = -1 };
	int status = parse_options(&x, argc, argv);
	if (status == EX_OK)
		status = importer_place(&im, &x.place);
	if (status == EX_OK)
		status = importer_open(&im, false);
	if (status == EX_OK)
		status = add_message(&x, &im);
	importer_close(&im);
	return status == EX_OK ? EX_OK : EX_TEMPFAIL;
}
