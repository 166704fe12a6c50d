/* judge_fill STORE CONFIG ZONE SECONDS [IP HELO FROM RCPT FILE] ...: messages
 * as the daemon judges and archives them, DNS answers and all, for the tests
 * of what looks at them afterwards. Prints id and disposition of each. */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "dns/zone.h"
#include "flow/file.h"
#include "flow/state.h"

static void
need(bool good, const char *what)
{
	if (good)
		return;
	fprintf(stderr, "judge_fill: %s\n", what);
	exit(1);
}

static void
judge(struct flow_env *env, char **args)
{
	struct session_facts facts = { .helo = str_c(args[1]),
		.leading_space = true };
	struct envelope e = { .mail_from = str_c(args[2]) };
	struct message *m;
	int fd = open(args[4], O_RDONLY);
	need(fd >= 0, args[4]);
	need(ip_parse(str_c(args[0]), &facts.client) == RES_OK, args[0]);
	struct session *s = session_new(env);
	need(s != NULL, "session");
	session_set_facts(s, &facts);
	need(message_begin(s, &e, &m) == RES_OK, "message");
	message_rcpt(m, str_c(args[3]));
	need(file_feed(m, fd, NULL) == RES_OK, args[4]);
	close(fd);
	const struct decision *d = message_finish(m, STR("4F1A2B3C"));
	printf("%" PRIu64 ".%" PRIu64 " %s\n", d->archive_id >> 32,
	    d->archive_id & UINT32_MAX, message_disposition(m));
	message_free(&m);
	session_free(&s);
}

int
main(int argc, char **argv)
{
	struct err err = { "" };
	struct flow_counters counters = { 0 };
	struct flow_env env = { .counters = &counters,
		.judge_age = true,
		.quiet = true };
	need(argc >= 5 && argc % 5 == 0, "usage: see the source");
	need(config_load(argv[2], &err, &env.config) == RES_OK, err.text);
	need(zone_open(argv[3], false, &err, &env.resolver) == RES_OK,
	    err.text);
	env.clock = (struct clock){ (int64_t)atoll(argv[4]) * 1000000 };
	const struct store_options o = { .path = argv[1],
		.clock = env.clock };
	need(store_open(&o, &err, &env.store) == RES_OK, err.text);
	for (int i = 5; i < argc; i += 5)
		judge(&env, argv + i);
	store_close(&env.store);
	resolver_free(&env.resolver);
	config_unref(&env.config);
	return 0;
}
