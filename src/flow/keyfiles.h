/* Every key file that a configuration names: those of key_dir, and those that
 * the sign table names by path. */
#ifndef FLOW_KEYFILES_H
#define FLOW_KEYFILES_H

#include "config/config.h"
#include "keys/keydir.h"

/* Opened, as keydir_open() and keyfile_open() do it; a key that key_dir holds
 * under the same domain and selector wins. Nothing with mode = verify. */
HN_CHECK enum res keyfiles_open(const struct config *c, struct arena *a,
    struct err *err, struct keydir *out);

#endif
