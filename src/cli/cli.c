#include "cli/cli.h"

#include <stdarg.h>
#include <stdio.h>
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
