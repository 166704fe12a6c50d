/* What libmilter calls. */
#ifndef MILTER_CALLBACKS_H
#define MILTER_CALLBACKS_H

#include <libmilter/mfapi.h>

#include "milter/connection.h"

/* The description to register; its callbacks work on `m`, which must live as
 * long as the process. */
void callbacks_describe(struct milter *m, struct smfiDesc *out);

#endif
