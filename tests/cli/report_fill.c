/* report_fill CONFIG ZONE CLOCK IP FROM RCPT COUNT <MESSAGE: the message COUNT
 * times through the path that mail takes in the daemon, into the decision
 * store of the configuration's state_dir. What report.py makes reports of. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "dns/zone.h"
#include "flow/env.h"
#include "flow/file.h"
#include "flow/message.h"

static void
need(enum res r, const struct err *err, const char *what)
{
	if (r == RES_OK)
		return;
	fprintf(stderr, "report_fill: %s: %s\n", what,
	    err->text[0] != '\0' ? err->text : res_text(r));
	exit(1);
}

static void
send_one(struct flow_env *env, char **argv, struct err *err)
{
	struct session_facts facts = { .helo = STR("helo.example"),
		.hostname = STR("mx.test.example"), .leading_space = true };
	struct envelope e = { .mail_from = str_c(argv[5]) };
	struct message *m = NULL;
	struct session *s = session_new(env);
	need(ip_parse(str_c(argv[4]), &facts.client), err, argv[4]);
	need(s != NULL ? RES_OK : RES_NOMEM, err, "session");
	session_set_facts(s, &facts);
	need(message_begin(s, &e, &m), err, "message");
	message_rcpt(m, str_c(argv[6]));
	lseek(STDIN_FILENO, 0, SEEK_SET);
	need(file_feed(m, STDIN_FILENO, NULL), err, "standard input");
	(void)message_finish(m, STR("QUEUEID"));
	message_free(&m);
	session_free(&s);
}

int
main(int argc, char **argv)
{
	static struct flow_counters counters;
	struct flow_env env = { .counters = &counters, .judge_age = true,
		.quiet = true };
	struct err err = { "" };
	char path[4096];
	if (argc != 8)
		return 64;
	env.clock = (struct clock){ atoll(argv[3]) * 1000000 };
	need(config_load(argv[1], &err, &env.config), &err, argv[1]);
	need(zone_open(argv[2], false, &err, &env.resolver), &err, argv[2]);
	snprintf(path, sizeof path, "%.*s/" DECISIONS_FILE,
	    STR_ARG(env.config->state_dir));
	struct decisions_options o = { .path = path,
		.keep_us = DECISIONS_KEEP_US,
		.max_bytes = DECISIONS_MAX_BYTES, .clock = env.clock };
	need(decisions_open(&o, &err, &env.decisions), &err, path);
	for (int i = atoi(argv[7]); i > 0; i--)
		send_one(&env, argv, &err);
	decisions_close(&env.decisions);
	resolver_free(&env.resolver);
	config_unref(&env.config);
	return 0;
}
