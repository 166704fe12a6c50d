#include "cli/cli.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sysexits.h>

int
cli_fail(int status, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	fputs("hanaper: ", stderr);
	vfprintf(stderr, fmt, ap);
	fputc('\n', stderr);
	va_end(ap);
	return status;
}

int
cli_end(int status)
{
	bool before = ferror(stdout) != 0;
	errno = 0;
	if (fflush(stdout) == 0 && !before)
		return status;
	return cli_fail(EX_IOERR, "standard output: %s",
	    errno != 0 ? strerror(errno) : "not all could be written");
}

int
cli_status(enum res r)
{
	switch (r) {
	case RES_OK:
		return EX_OK;
	case RES_NOMEM:
		return EX_OSERR;
	case RES_LIMIT:
	case RES_SYNTAX:
	case RES_CORRUPT:
		return EX_DATAERR;
	case RES_IO:
		return EX_IOERR;
	case RES_AGAIN:
	case RES_TIMEOUT:
		return EX_TEMPFAIL;
	case RES_NOTFOUND:
		return EX_NOINPUT;
	case RES_DENIED:
		return EX_NOPERM;
	case RES_EXISTS:
		return EX_CANTCREAT;
	case RES_UNSUPPORTED:
	case RES_INVALID:
		return EX_USAGE;
	}
	return EX_SOFTWARE;
}

int
cli_usage(const char *command, const char *usage)
{
	fprintf(stderr, "usage: hanaper %s %s\n", command, usage);
	return EX_USAGE;
}
