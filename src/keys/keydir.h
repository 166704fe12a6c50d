/* key_dir/<domain>/<selector>.pem: a domain with a folder is signed.
 *
 * Key files must be regular, owned by root or by us, with no access for
 * others and no write for the group; folders not writable by group or others.
 * Each complaint names path, mode and the chmod to run (P-38).
 * Two keys of one type without a `state` file are an error that names
 * `hanaper key rotate` (design §6). */
#ifndef KEYS_KEYDIR_H
#define KEYS_KEYDIR_H

#include "base/arena.h"
#include "base/err.h"
#include "base/res.h"
#include "base/str.h"

#define KEYDIR_MAX_DOMAINS 100000
#define KEYDIR_MAX_KEYS_PER_DOMAIN 64

enum key_state { KEY_STATE_ACTIVE, KEY_STATE_NEXT, KEY_STATE_RETIRED };

struct keyfile {
	struct str domain;   /* normal form: the folder's name */
	struct str selector; /* the file's name without .pem */
	enum key_state state;
	int fd; /* opened read-only by keydir_open, else -1; closed with the arena */
	struct str path;
};

struct keydir {
	size_t count;
	struct keyfile *files; /* sorted by domain, selector */
};

/* List and open all key files. RES_NOTFOUND: no such folder; RES_DENIED: a
 * mode or owner is too open; RES_SYNTAX: a bad name or state file; RES_EXISTS:
 * two keys of one type and no state. `err` has the line to print. */
HN_CHECK enum res keydir_open(
    struct arena *a, const char *path, struct err *err, struct keydir *out);

#endif
