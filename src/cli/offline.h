/* Judging message files as mail takes its path through the daemon: what
 * `hanaper verify` and `hanaper explain` share. */
#ifndef CLI_OFFLINE_H
#define CLI_OFFLINE_H

#include <getopt.h>

#include "cli/cli.h"
#include "flow/message.h"

#define OFFLINE_MAX_RCPTS 100

struct offline {
	struct cli_settings settings;
	const char *zone, *ip, *helo, *from, *auth, *clock;
	const char *rcpts[OFFLINE_MAX_RCPTS]; /* each --rcpt */
	size_t rcpt_count;
	enum run_mode mode;
	struct flow_env env;
	struct err keys_error; /* why there is no signer */
	struct flow_counters counters;
	struct session_facts facts;
	/* the file under way */
	struct session *session;
	struct message *message;
};

#define OFFLINE_SHORT "c:o:"
#define OFFLINE_LONG                                     \
	{ "zone", required_argument, NULL, 'z' },        \
	{ "ip", required_argument, NULL, 'i' },          \
	{ "helo", required_argument, NULL, 'h' },        \
	{ "from", required_argument, NULL, 'f' },        \
	{ "rcpt", required_argument, NULL, 'r' },        \
	{ "auth", required_argument, NULL, 'a' },        \
	{ "clock", required_argument, NULL, 't' }
#define OFFLINE_USAGE                                                       \
	"[-c CONFIG] [-o NAME=VALUE] [--zone FILE] [--ip ADDRESS]\n"        \
	"       [--helo NAME] [--from ADDRESS] [--rcpt ADDRESS ...]\n"          \
	"       [--auth LOGIN] [--clock SECONDS|none]"

/* Take one of the options above; false: it is none of them, or a bad -o
 * (which has been complained about). */
bool offline_option(struct offline *o, int option, const char *argument);

/* Set the clock from its option; part of offline_prepare. */
int offline_clock(struct offline *o);

/* Load the configuration, open resolver and (unless mode is MODE_VERIFY) keys.
 * EX_OK, or what has been complained about. */
int offline_prepare(struct offline *o);

/* Judge one file ("-" is standard input). NULL after a complaint; the
 * decision is good until offline_next or offline_done. */
const struct decision *offline_judge(
    struct offline *o, const char *file, int *out_status);
void offline_next(struct offline *o);
void offline_done(struct offline *o);

#endif
