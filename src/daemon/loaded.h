/* What a (re)start needs from disk, read by the supervisor with its rights
 * and kept, so that a role can be started again whatever has become of the
 * files: the configuration's text, its meaning, and opened key files. */
#ifndef DAEMON_LOADED_H
#define DAEMON_LOADED_H

#include "base/err.h"
#include "base/res.h"
#include "config/config.h"
#include "keys/keydir.h"

struct loaded {
	struct arena *arena;   /* holds the key files' descriptors */
	struct config *config;
	int text_fd;           /* memory file with the configuration's text */
	struct keydir keys;    /* of key_dir and the sign table */
	struct keydir notes;   /* of archive_keys */
	bool signs;            /* a signer is needed: for mail or the archive */
};

/* On failure `err` has the line to print: RES_IO, RES_SYNTAX, RES_DENIED, … */
HN_CHECK enum res loaded_read(
    const char *path, struct err *err, struct loaded **out);
void loaded_free(struct loaded **l);

/* The text behind a `text_fd`, in `a`. */
HN_CHECK enum res loaded_text(struct arena *a, int text_fd, struct str *out);

#endif
