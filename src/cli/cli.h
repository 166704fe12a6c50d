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

struct command {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *summary; /* one line for `hanaper help` */
};

/* Print "hanaper: …" to stderr and return `status`. */
int cli_fail(int status, const char *fmt, ...) HN_PRINTF(2, 3);
/* The sysexits status that fits `r`: EX_CONFIG, EX_NOINPUT, EX_NOPERM, … */
int cli_status(enum res r);
/* "hanaper: unknown option …, see hanaper(1)" and EX_USAGE. */
int cli_usage(const char *command, const char *usage);

/* Load the configuration for a subcommand: `path` NULL means the default
 * file, and all defaults when that does not exist. Prints the complaint and
 * returns NULL (*out_status says how to exit). */
struct config *cli_config(const char *path, int *out_status);

#endif
