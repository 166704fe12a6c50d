/* Is a folder on a file system of the network? Locks and syncs are promises
 * there that depend on a server and its mount options, and SQLite's WAL needs
 * memory that all of its users share: a store that is written must not rest
 * on them. Reading one, and backups, are another matter. */
#ifndef ARCHIVE_NETFS_H
#define ARCHIVE_NETFS_H

#include "archive/store/io.h"

enum netfs {
	NETFS_LOCAL,   /* or nothing known against it */
	NETFS_UNSURE,  /* depends on what is behind it: told, not refused */
	NETFS_REFUSED,
};

/* By statfs's f_type; *out_name is constant, "" for local ones. */
enum netfs netfs_of(uint64_t type, const char **out_name);
/* Of `path`, or where it is not there yet, of the nearest folder above. */
enum netfs netfs_at(
    const struct archive_io *io, const char *path, const char **out_name);

#endif
