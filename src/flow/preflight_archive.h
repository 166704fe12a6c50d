/* What the archive's sections say together, one line a family: where mail
 * goes and how long it stays. Part of preflight.h. */
#ifndef FLOW_PREFLIGHT_ARCHIVE_H
#define FLOW_PREFLIGHT_ARCHIVE_H

#include "flow/preflight.h"

/* Looks at the store's folder, changes nothing; RES_NOMEM. */
HN_CHECK enum res preflight_archive(
    const struct config *c, preflight_report report, void *context);

#endif
