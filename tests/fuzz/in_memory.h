/* The one segment that a fuzzer's archive_io has, in memory. */
#ifndef FUZZ_IN_MEMORY_H
#define FUZZ_IN_MEMORY_H

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "archive/store/io.h"

static int in_memory = -1;

/* For archive_io.open. */
static int
in_memory_open(
    const struct archive_io *io, const char *path, int flags, unsigned mode)
{
	(void)io;
	(void)flags;
	(void)mode;
	size_t len = strlen(path);
	if (len >= 8 && strcmp(path + len - 8, "/segment") == 0)
		return dup(in_memory);
	errno = ENOENT;
	return -1;
}

static void
in_memory_put(const void *bytes, size_t len)
{
	if (in_memory < 0)
		in_memory = memfd_create("segment", 0);
	if (in_memory < 0 || ftruncate(in_memory, 0) < 0 ||
	    pwrite(in_memory, bytes, len, 0) != (ssize_t)len)
		abort();
}

#endif
