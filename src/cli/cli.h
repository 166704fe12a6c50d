/* hanaper: the operator's command, one file per subcommand. A subcommand gets
 * its own argv (argv[0] is its name), prints results to stdout, complaints to
 * stderr as "hanaper: …" saying what is wrong and what to do, and returns the
 * exit status: 0 done (and all good), 1 done but the answer is no, else
 * sysexits(3). */
#ifndef CLI_CLI_H
#define CLI_CLI_H

#include "base/err.h"
#include "base/res.h"
#include "config/config.h"
#include "dns/dns.h"

struct command {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *summary; /* one line for `hanaper help` */
};

/* Print "hanaper: …" to stderr and return `status`. */
int cli_fail(int status, const char *fmt, ...) HN_PRINTF(2, 3);
/* What was printed is on its way: `status`, or a complaint and EX_IOERR. Every
 * subcommand ends in it; nobody need look at what printf says. */
int cli_end(int status);
/* The sysexits status that fits `r`: EX_CONFIG, EX_NOINPUT, EX_NOPERM, … */
int cli_status(enum res r);
/* "hanaper: unknown option …, see hanaper(1)" and EX_USAGE. */
int cli_usage(const char *command, const char *usage);

/* The configuration for a subcommand: `-c FILE` and any `-o NAME=VALUE`, which
 * stand in front of what the file says, as with Postfix's commands. */
#define CLI_MAX_SETTINGS 64
struct cli_settings {
	const char *path; /* NULL: the default file, or all defaults without it */
	size_t count;
	struct config_setting items[CLI_MAX_SETTINGS];
};
/* False when `text` is not NAME=VALUE or there are too many. */
bool cli_settings_add(struct cli_settings *s, const char *text);
/* Prints the complaint and returns NULL (*out_status says how to exit). */
struct config *cli_settings_load(const struct cli_settings *s, int *out_status);
/* The same with only a file. */
struct config *cli_config(const char *path, int *out_status);

/* Who answers: `zone` (may be NULL), else the zone file or the name servers of
 * the configuration. */
HN_CHECK enum res cli_resolver(const struct config *c, const char *zone,
    struct err *err, struct resolver **out);

/* What a command run by root makes in `dir` must be the user's to whom `dir`
 * belongs, or the daemon could not write it: when root runs us, go on as that
 * user, for good. */
int cli_become_owner(const char *dir);

int cmd_archive(int argc, char **argv);
int cmd_status(int argc, char **argv);
int cmd_verify(int argc, char **argv);
int cmd_sign(int argc, char **argv);
int cmd_check(int argc, char **argv);
int cmd_explain(int argc, char **argv);
int cmd_key(int argc, char **argv);
int cmd_report(int argc, char **argv);

#endif
