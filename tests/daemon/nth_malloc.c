/* Preloaded into a daemon: the n-th allocation of any of its processes fails,
 * once. n stands in the first 8 bytes of the file that NTH_MALLOC names,
 * mapped by all; a test writes it, and sees by a negative number that it has
 * happened. */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static _Atomic long *shared;
#define NTH_MALLOC_LEFT shared
#include "nth_malloc.h"

__attribute__((constructor)) static void
begin(void)
{
	const char *path = getenv("NTH_MALLOC");
	int fd = path != NULL ? open(path, O_RDWR | O_CLOEXEC) : -1;
	if (fd < 0)
		return;
	void *p = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE,
	    MAP_SHARED, fd, 0);
	close(fd);
	if (p != MAP_FAILED)
		shared = p;
}
