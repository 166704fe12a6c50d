/* Everything that can be known to be wrong before mail comes: keys, folders,
 * socket, zone file. The daemon refuses to start on a BAD finding, `hanaperd
 * -t` and `hanaper check` print them. Each finding is one line saying what is
 * wrong and what to do. */
#ifndef FLOW_PREFLIGHT_H
#define FLOW_PREFLIGHT_H

#include "base/res.h"
#include "config/config.h"

enum finding { FINDING_OK, FINDING_WARNING, FINDING_BAD };

typedef void (*preflight_report)(
    void *context, enum finding level, const char *line);

struct keydir;

/* `keys`: the configuration's key files, opened, which will be loaded soon
 * anyway; NULL: open and load them here. Look at files and folders as the calling user, and as root once more as the
 * daemon's user; forks for that. Changes nothing. Returns the worst
 * finding. */
enum finding preflight_run(const struct config *c, const struct keydir *keys,
    preflight_report report, void *context);

#endif
