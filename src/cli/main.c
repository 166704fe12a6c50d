#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sysexits.h>

#include "cli/cli.h"

static const struct command commands[] = {
	{ "archive", cmd_archive, "find, show and export archived mail" },
	{ "check", cmd_check, "is the set-up right?" },
	{ "explain", cmd_explain, "why was this message treated so?" },
	{ "key", cmd_key, "make keys, say what to publish, list them" },
	{ "report", cmd_report, "DMARC aggregate reports: make, list, send" },
	{ "sign", cmd_sign, "put DKIM signatures on message files" },
	{ "status", cmd_status, "what the running daemon does" },
	{ "verify", cmd_verify, "judge message files by all methods" },
	{ NULL, NULL, NULL },
};

static int
help(FILE *out)
{
	fputs("usage: hanaper COMMAND [ARGUMENT ...]\n\n", out);
	for (const struct command *c = commands; c->name != NULL; c++)
		fprintf(out, "  %-10s %s\n", c->name, c->summary);
	fputs("\nSee hanaper(1).\n", out);
	return out == stdout ? EX_OK : EX_USAGE;
}

static int
run(int argc, char **argv)
{
	if (argc < 2)
		return help(stderr);
	if (strcmp(argv[1], "help") == 0 || strcmp(argv[1], "--help") == 0)
		return help(stdout);
	if (strcmp(argv[1], "--version") == 0) {
		puts("hanaper " PACKAGE_VERSION);
		return EX_OK;
	}
	for (const struct command *c = commands; c->name != NULL; c++)
		if (strcmp(argv[1], c->name) == 0)
			return c->run(argc - 1, argv + 1);
	return cli_fail(EX_USAGE,
	    "unknown command '%s'; `hanaper help` lists them", argv[1]);
}

/* Nobody reading is an error like a full disk: it is told, and what a command
 * has under way (reports being sent, keys being changed) is brought to its
 * end. */
int
main(int argc, char **argv)
{
	signal(SIGPIPE, SIG_IGN);
	return cli_end(run(argc, argv));
}
