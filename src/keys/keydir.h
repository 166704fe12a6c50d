/* key_dir/<domain>/<selector>.pem: a domain with a folder is signed.
 *
 * Key files must be regular, owned by root or by us (or, when we are root, by
 * the owner of key_dir: the daemon's user), with no access for others and no
 * write for the group; folders not writable by group or others. Each
 * complaint names path, mode and the chmod to run (P-38). Names are lower
 * case; a folder has the A-labels of its domain. Names beginning with a dot,
 * and files that are no *.pem, are passed over; a *.pem outside a domain's
 * folder and a domain's folder without a key are errors.
 *
 * key_dir/<domain>/state says what each key is for (keys/keystate.h). Without
 * it, and for keys it does not name, a key is ACTIVE. Two ACTIVE keys of one
 * type are an error that names `hanaper key rotate` (design §6). */
#ifndef KEYS_KEYDIR_H
#define KEYS_KEYDIR_H

#include "base/arena.h"
#include "base/err.h"
#include "base/res.h"
#include "base/str.h"
#include "keys/keystate.h"
#include "keys/privkey.h"

#define KEYDIR_MAX_DOMAINS         100000
#define KEYDIR_MAX_KEYS_PER_DOMAIN 64
#define KEYDIR_MAX_PATH            4096

struct keyfile {
	struct str domain;   /* normal form: the folder's name */
	struct str selector; /* the file's name without .pem */
	enum key_state state;
	int64_t since_s; /* of the state file; 0: not named there */
	bool by_rule;    /* key= of a sign table: signing_key.by_rule */
	bool notes;      /* of the archive: signing_key.notes */
	int fd; /* opened read-only by keydir_open, else -1; closed with the arena */
	struct str path; /* with a NUL behind it */
};

struct keydir {
	size_t count;
	struct keyfile *files; /* sorted by domain, selector */
};

/* List and open all key files. RES_NOTFOUND: no such folder, or a domain's
 * folder without a key; RES_DENIED: a mode or owner is too open, or we may
 * not read; RES_SYNTAX: a bad name or state file; RES_EXISTS: two active keys
 * of one type. `err` has the line to print. */
HN_CHECK enum res keydir_open(
    struct arena *a, const char *path, struct err *err, struct keydir *out);

/* The same for the folder of one domain, where two active keys of one type
 * are no error: for the command that says which one signs. RES_NOTFOUND also:
 * the domain has no folder. */
HN_CHECK enum res keydir_open_domain(struct arena *a, const char *path,
    struct str domain, struct err *err, struct keydir *out);

/* The archive's keys: TIME.pem in the folder `path`, with the same rules for
 * files and folder, sorted by time (seconds since 1970). Domain and selector
 * become SIGNER_NOTES and the time. RES_NOTFOUND: no folder, or none in it;
 * RES_SYNTAX: another name. */
HN_CHECK enum res keydir_open_notes(struct arena *a, const char *path,
    struct err *err, struct keydir *out);

/* A single key file anywhere (`key=PATH` of a sign table), with the same
 * rules for it and its folder. Its selector is `selector`, or the file's name
 * without .pem when that is empty. Opened, closed with the arena. */
HN_CHECK enum res keyfile_open(struct arena *a, struct str path,
    struct str domain, struct str selector, struct err *err,
    struct keyfile *out);

/* Read the key of an opened file, from its start whatever its offset is (a
 * descriptor that was passed to another process shares it). */
HN_CHECK enum res keyfile_load(
    const struct keyfile *f, struct err *err, struct privkey **out);

/* A folder's or a selector's name as above: lower-case letters, digits, '-',
 * '_' in labels of 1..63 joined by dots, at most 253 bytes. */
bool keydir_name_valid(struct str name);

#endif
