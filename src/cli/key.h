/* What the files of `hanaper key` share: key.c takes the arguments, lists and
 * prints records; key_make.c makes keys; key_check.c compares them with the
 * DNS; key_rotate.c lets a new one take over. */
#ifndef CLI_KEY_H
#define CLI_KEY_H

#include "cli/cli.h"
#include "dns/dns.h"
#include "flow/published.h"
#include "keys/keydir.h"

struct key_options {
	struct arena *arena;
	struct cli_settings settings;
	struct config *config; /* NULL: --key-dir was enough */
	const char *key_dir;   /* --key-dir, or the configuration's */
	bool has_key_dir;      /* it was --key-dir */
	const char *zone;      /* --zone */
	struct str domain;     /* normal form; empty: all */
	const char *selector;  /* NULL: made from the date */
	enum key_type type;
	unsigned bits;
	bool has_type, json, prune;
	int64_t wait_s, age_s, now_s;
	uid_t uid; /* for what is made, as root; else KEY_NO_ID */
	gid_t gid;
};

#define KEY_NO_ID ((uid_t)-1)
#define KEY_NAME  "%.*s._domainkey.%.*s" /* with KEY_NAME_ARG(file) */
#define KEY_NAME_ARG(f) STR_ARG((f)->selector), STR_ARG((f)->domain)

/* Functions below return EX_OK, or what they have complained about. */

/* One key as the record to publish, or as a row of the list. */
enum key_form { KEY_FORM_ZONE, KEY_FORM_ROW };
int key_print(const struct key_options *o, const struct keyfile *f,
    enum key_form form);

/* All keys of key_dir and, without --key-dir, of the sign table, or those of
 * o->domain, which must have one. */
int key_open(const struct key_options *o, struct keydir *out);

/* Only one process changes a domain's folder at a time: until *out_fd, the
 * folder, is closed. */
int key_lock(const char *path, int *out_fd);

/* As root: what is made belongs to whom key_dir belongs. */
void key_own(struct key_options *o);

/* Make a key in the locked folder `path` beside those of `d`, and print its
 * record. It is next when there is an active one of its type. */
int key_make(struct key_options *o, const struct keydir *d, int folder,
    const char *path);

/* A folder of the right mode and owner, made when missing. */
int key_make_folder(const struct key_options *o, const char *path);
/* A key file, whole on disk or not there; errno says why not. */
bool key_write_new(const struct key_options *o, int folder, struct str text,
    const char *name);

/* "r20261130": free in `folder` when that is not -1. NULL without memory. */
const char *key_selector(const struct key_options *o, int folder);

struct key_look {
	enum key_type type;
	unsigned bits;
	struct published_record record; /* when a resolver was given */
};
int key_look(const struct key_options *o, struct resolver *resolver,
    const struct keyfile *f, struct key_look *out);
int key_resolver(const struct key_options *o, struct resolver **out);

/* How long the record of a retired key must stay: signatures expire, and mail
 * that was signed last may wait in a queue before it is judged. */
int64_t key_keep_s(const struct config *c, struct str domain);

int key_generate(struct key_options *o);
int key_check(struct key_options *o);
int key_rotate(struct key_options *o);

#endif
