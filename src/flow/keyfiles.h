/* Every key file that a configuration names: those of key_dir, and those that
 * the sign table names by path. */
#ifndef FLOW_KEYFILES_H
#define FLOW_KEYFILES_H

#include "config/config.h"
#include "keys/keydir.h"

/* Opened, as keydir_open() and keyfile_open() do it, sorted by domain and
 * selector. Nothing with mode = verify. RES_EXISTS also: two files for one
 * domain and selector. */
HN_CHECK enum res keyfiles_open(const struct config *c, struct arena *a,
    struct err *err, struct keydir *out);

/* The keys that sign for the archive (archive_keys): none when it is off or
 * the folder is not there. */
HN_CHECK enum res keyfiles_open_notes(const struct config *c, struct arena *a,
    struct err *err, struct keydir *out);

/* Only the second part: add those of the sign table to the ones of `d`. */
HN_CHECK enum res keyfiles_add_table(const struct config *c, struct arena *a,
    struct err *err, struct keydir *d);

#endif
