/* The thread that has a store's trees signed from time to time. It waits for
 * the signer, so that no writer has to. */
#ifndef ARCHIVE_NOTARY_H
#define ARCHIVE_NOTARY_H

#include <stdint.h>

#include "base/res.h"

struct store;
struct notary;

/* Every `every_us`, and once when it is stopped. */
HN_CHECK enum res notary_start(
    struct store *s, int64_t every_us, struct notary **out);
/* The writers are still there. Clears; NULL is fine. */
void notary_stop(struct notary **n);

#endif
