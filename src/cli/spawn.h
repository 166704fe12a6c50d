/* Starting another program as a shell would, but without a shell: arguments
 * are what they are. */
#ifndef CLI_SPAWN_H
#define CLI_SPAWN_H

#include <sys/types.h>

/* Run `program` (searched in PATH when it has no slash) with `in` and, unless
 * it is -1, `out` as its standard input and output. 0 or an errno. */
int spawn_program(const char *program, char *const *argv, int in, int out,
    pid_t *out_child);

#endif
