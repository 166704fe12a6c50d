/* key_dir/<domain>/state: which selector is for what. One line per selector,
 *
 *     SELECTOR active|next|retired SINCE [SEEN]
 *
 * SINCE in seconds since 1970-01-01 UTC, and so SEEN, when the record of a
 * next key was first found in the DNS; '#' begins a comment line. Only the
 * command `hanaper key` writes it, as a new file renamed over the old one:
 * a reader sees one or the other. */
#ifndef KEYS_KEYSTATE_H
#define KEYS_KEYSTATE_H

#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/res.h"
#include "base/str.h"

#define KEYSTATE_FILE      "state"
#define KEYSTATE_MAX_FILE  ((size_t)64 << 10)
#define KEYSTATE_MAX_LINES 256

enum key_state {
	KEY_STATE_ACTIVE,  /* signs */
	KEY_STATE_NEXT,    /* made, not yet seen in the DNS */
	KEY_STATE_RETIRED, /* published until old signatures have expired */
};

struct keystate_line {
	struct str selector;
	enum key_state state;
	int64_t since_s;
	int64_t seen_s; /* 0: not yet */
};
struct keystate {
	size_t count;
	struct keystate_line *lines;
};

const char *key_state_word(enum key_state s); /* "active", … */

/* `label` stands for the file in errors ("LABEL:LINE: …"). RES_SYNTAX: a bad
 * line or a selector named twice; RES_LIMIT: too many lines. */
HN_CHECK enum res keystate_parse(struct arena *a, struct str text,
    const char *label, struct err *err, struct keystate *out);

/* Read the one of an opened domain folder; count 0 when there is none.
 * `folder` is its path, for errors. RES_DENIED: group or others may write. */
HN_CHECK enum res keystate_read(struct arena *a, int folder_fd,
    const char *folder, struct err *err, struct keystate *out);

/* Replace it, durably, with the owner and group of the folder. */
HN_CHECK enum res keystate_write(int folder_fd, const char *folder,
    const struct keystate *s, struct err *err);

/* NULL when it is not named. */
const struct keystate_line *keystate_find(
    const struct keystate *s, struct str selector);

#endif
