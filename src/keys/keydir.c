#include "keys/keydir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <openssl/crypto.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "keys/signer.h"

#define MAX_NAME  253
#define MAX_LABEL 63

static const struct str suffix = { ".pem", 4 };

bool
keydir_name_valid(struct str name)
{
	size_t label = 0;
	if (name.len > MAX_NAME)
		return false;
	for (size_t i = 0; i < name.len; i++) {
		char c = name.ptr[i];
		if (c == '.') {
			if (label == 0)
				return false;
			label = 0;
			continue;
		}
		if (!((c >= 'a' && c <= 'z') || ascii_is_digit(c) ||
			c == '-' || c == '_') ||
		    ++label > MAX_LABEL)
			return false;
	}
	return label > 0;
}

/* --- modes and owners --- */

struct walk {
	struct arena *a;
	struct err *err;
	const char *top;
	uid_t owner; /* of key_dir, when we are root: it may own the rest */
	bool undecided; /* two active keys of a type are no error */
	size_t count, room;
	struct keyfile *files;
};

static bool
owner_ok(const struct walk *w, const struct stat *st)
{
	return st->st_uid == 0 || st->st_uid == geteuid() ||
	    (geteuid() == 0 && st->st_uid == w->owner);
}

/* `forbidden` are the mode bits that must not be set. */
static enum res
check_access(const struct walk *w, const char *path, const struct stat *st,
    mode_t forbidden)
{
	unsigned mode = st->st_mode & 07777;
	if ((mode & forbidden) != 0) {
		err_set(w->err, "%s: mode %04o is too open for %s; run: chmod "
				"%04o %s", path, mode,
		    S_ISDIR(st->st_mode) ? "a key folder" : "a private key",
		    mode & ~(unsigned)forbidden & 0777, path);
		return RES_DENIED;
	}
	if (!owner_ok(w, st)) {
		err_set(w->err, "%s: owned by user %u, not by root or by user "
				"%u, who reads it; run: chown root %s", path,
		    (unsigned)st->st_uid, (unsigned)geteuid(), path);
		return RES_DENIED;
	}
	return RES_OK;
}

static enum res
cannot_open(const struct walk *w, const char *path)
{
	err_set(w->err, "%s: cannot open: %s", path, strerror(errno));
	if (errno == ENOENT)
		return RES_NOTFOUND;
	return errno == EACCES || errno == EPERM ? RES_DENIED : RES_IO;
}

static void
close_fd(void *arg)
{
	close((int)(intptr_t)arg);
}

/* Open below `at`; closed with the arena. */
static enum res
open_kept(const struct walk *w, int at, const char *name, const char *path,
    int flags, struct stat *out_st, int *out_fd)
{
	int fd = openat(at, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | flags);
	if (fd < 0)
		return cannot_open(w, path);
	if (arena_on_free(w->a, close_fd, (void *)(intptr_t)fd) != RES_OK) {
		close(fd);
		return RES_NOMEM;
	}
	if (fstat(fd, out_st) != 0)
		return cannot_open(w, path);
	*out_fd = fd;
	return RES_OK;
}

/* --- names --- */

struct names {
	size_t count, room;
	struct str *items;
};

static int
compare_names(const void *a, const void *b)
{
	return str_cmp(*(const struct str *)a, *(const struct str *)b);
}

static enum res
names_add(struct arena *a, struct names *n, const char *name)
{
	if (n->count == n->room) {
		size_t room = n->room == 0 ? 16 : n->room * 2;
		struct str *items = arena_array(a, room, sizeof *items);
		if (items == NULL)
			return RES_NOMEM;
		if (n->count > 0)
			memcpy(items, n->items, n->count * sizeof *items);
		n->items = items;
		n->room = room;
	}
	struct str copy = arena_dup(a, str_c(name));
	if (copy.ptr == NULL)
		return RES_NOMEM;
	n->items[n->count++] = copy;
	return RES_OK;
}

/* All names in the folder but hidden ones, sorted. */
static enum res
list(const struct walk *w, int fd, const char *path, size_t max,
    struct names *out)
{
	*out = (struct names){ 0 };
	int own = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	DIR *dir = own >= 0 ? fdopendir(own) : NULL;
	if (dir == NULL) {
		enum res failed = cannot_open(w, path);
		if (own >= 0)
			close(own);
		return failed;
	}
	enum res r = RES_OK;
	struct dirent *e;
	while (r == RES_OK && (errno = 0, e = readdir(dir)) != NULL) {
		if (e->d_name[0] == '.')
			continue;
		if (out->count == max) {
			err_set(w->err, "%s: more than %zu names", path, max);
			r = RES_LIMIT;
			break;
		}
		r = names_add(w->a, out, e->d_name);
	}
	if (r == RES_OK && errno != 0)
		r = cannot_open(w, path);
	closedir(dir);
	if (r == RES_OK && out->count > 0)
		qsort(out->items, out->count, sizeof *out->items,
		    compare_names);
	return r;
}

/* --- one domain --- */

static enum res
bad_name(const struct walk *w, const char *path, const char *what)
{
	err_set(w->err, "%s: not a %s: lower-case letters, digits, \"-\" and "
			"\"_\" in labels joined by dots (of an international "
			"domain its xn-- form)", path, what);
	return RES_SYNTAX;
}

static enum res
append(struct walk *w, const struct keyfile *f)
{
	if (w->count == w->room) {
		size_t room = w->room == 0 ? 16 : w->room * 2;
		struct keyfile *files = arena_array(w->a, room, sizeof *files);
		if (files == NULL)
			return RES_NOMEM;
		if (w->count > 0)
			memcpy(files, w->files, w->count * sizeof *files);
		w->files = files;
		w->room = room;
	}
	w->files[w->count++] = *f;
	return RES_OK;
}

/* A private key of its folder, with all rules for it. */
static enum res
open_key(const struct walk *w, int folder, struct str name, struct keyfile *f)
{
	struct stat st;
	enum res r =
	    open_kept(w, folder, name.ptr, f->path.ptr, 0, &st, &f->fd);
	if (r != RES_OK)
		return r;
	if (!S_ISREG(st.st_mode)) {
		err_set(w->err, "%s: not a regular file", f->path.ptr);
		return RES_DENIED;
	}
	return check_access(w, f->path.ptr, &st, 027);
}

static enum res
add_key(struct walk *w, int folder, struct str domain, struct str name,
    const struct keystate *states)
{
	struct keyfile f = { .domain = domain,
		.selector = str_sub(name, 0, name.len - suffix.len),
		.path = arena_printf(w->a, "%s/%s/%s", w->top, domain.ptr,
		    name.ptr) };
	if (f.path.ptr == NULL)
		return RES_NOMEM;
	if (!keydir_name_valid(f.selector))
		return bad_name(w, f.path.ptr, "selector");
	enum res r = open_key(w, folder, name, &f);
	if (r != RES_OK)
		return r;
	const struct keystate_line *l = keystate_find(states, f.selector);
	f.state = l != NULL ? l->state : KEY_STATE_ACTIVE;
	f.since_s = l != NULL ? l->since_s : 0;
	return append(w, &f);
}

/* A selector that the state file wants in use must be there. */
static enum res
check_states(const struct walk *w, const char *path, size_t first,
    const struct keystate *states)
{
	for (size_t i = 0; i < states->count; i++) {
		const struct keystate_line *l = &states->lines[i];
		bool there = l->state == KEY_STATE_RETIRED;
		for (size_t k = first; k < w->count && !there; k++)
			there = str_eq(w->files[k].selector, l->selector);
		if (!there) {
			err_set(w->err, "%s/" KEYSTATE_FILE ": selector %.*s "
					"is %s, but %s/%.*s.pem is missing",
			    path, STR_ARG(l->selector),
			    key_state_word(l->state), path,
			    STR_ARG(l->selector));
			return RES_SYNTAX;
		}
	}
	return RES_OK;
}

/* At most one active key of each type. Types are only looked at when there
 * are several: reading a key takes half a millisecond. */
static enum res
check_types(const struct walk *w, size_t first)
{
	const struct keyfile *seen[KEY_ED25519 + 1] = { NULL };
	size_t active = 0;
	for (size_t i = first; i < w->count; i++)
		active += w->files[i].state == KEY_STATE_ACTIVE;
	for (size_t i = first; i < w->count && active > 1; i++) {
		const struct keyfile *f = &w->files[i];
		struct privkey *key;
		if (f->state != KEY_STATE_ACTIVE)
			continue;
		enum res r = keyfile_load(f, w->err, &key);
		if (r != RES_OK)
			return r;
		enum key_type type = privkey_type(key);
		privkey_free(&key);
		if (seen[type] != NULL) {
			err_set(w->err, "%s and %s: two %s keys in use for "
					"%.*s; say which one signs: hanaper "
					"key rotate %.*s", seen[type]->path.ptr,
			    f->path.ptr,
			    type == KEY_RSA ? "RSA" : "Ed25519",
			    STR_ARG(f->domain), STR_ARG(f->domain));
			return RES_EXISTS;
		}
		seen[type] = f;
	}
	return RES_OK;
}

static enum res
add_domain(struct walk *w, int folder, struct str domain, const char *path)
{
	struct names names;
	struct keystate states;
	size_t first = w->count;
	enum res r = keystate_read(w->a, folder, path, w->err, &states);
	if (r == RES_OK)
		r = list(w, folder, path, KEYDIR_MAX_KEYS_PER_DOMAIN * 4,
		    &names);
	for (size_t i = 0; r == RES_OK && i < names.count; i++) {
		if (!str_ends(names.items[i], suffix))
			continue;
		if (w->count - first == KEYDIR_MAX_KEYS_PER_DOMAIN) {
			err_set(w->err, "%s: more than %d keys", path,
			    KEYDIR_MAX_KEYS_PER_DOMAIN);
			return RES_LIMIT;
		}
		r = add_key(w, folder, domain, names.items[i], &states);
	}
	if (r == RES_OK && w->count == first) {
		err_set(w->err, "%s: no key in it; make one with: hanaper key "
				"generate %.*s", path, STR_ARG(domain));
		return RES_NOTFOUND;
	}
	if (r == RES_OK)
		r = check_states(w, path, first, &states);
	return r == RES_OK && !w->undecided ? check_types(w, first) : r;
}

static enum res
visit(struct walk *w, int top, struct str name)
{
	struct stat st;
	struct str path = arena_printf(w->a, "%s/%s", w->top, name.ptr);
	if (path.ptr == NULL)
		return RES_NOMEM;
	if (fstatat(top, name.ptr, &st, 0) != 0)
		return cannot_open(w, path.ptr);
	if (!S_ISDIR(st.st_mode)) {
		if (!str_ends(name, suffix))
			return RES_OK;
		err_set(w->err, "%s: a key belongs into a folder named after "
				"its domain", path.ptr);
		return RES_SYNTAX;
	}
	if (str_eq(name, STR("lost+found")))
		return RES_OK;
	if (!keydir_name_valid(name))
		return bad_name(w, path.ptr, "domain");
	int folder = openat(top, name.ptr, O_RDONLY | O_CLOEXEC | O_DIRECTORY);
	if (folder < 0 || fstat(folder, &st) != 0) {
		enum res failed = cannot_open(w, path.ptr);
		if (folder >= 0)
			close(folder);
		return failed;
	}
	enum res r = check_access(w, path.ptr, &st, 022);
	if (r == RES_OK)
		r = add_domain(w, folder, name, path.ptr);
	close(folder);
	return r;
}

static enum res
open_top(struct walk *w, int *out_fd)
{
	struct stat st;
	if (strlen(w->top) > KEYDIR_MAX_PATH) {
		err_set(w->err, "the key folder's path is too long");
		return RES_LIMIT;
	}
	enum res r = open_kept(
	    w, AT_FDCWD, w->top, w->top, O_DIRECTORY, &st, out_fd);
	if (r != RES_OK)
		return r;
	w->owner = st.st_uid;
	return check_access(w, w->top, &st, 022);
}

static enum res
finish(const struct walk *w, enum res r, struct keydir *out)
{
	if (r == RES_OK)
		*out = (struct keydir){ w->count, w->files };
	else
		err_set(w->err, "%s: %s", w->top, res_text(r));
	return r;
}

enum res
keydir_open(
    struct arena *a, const char *path, struct err *err, struct keydir *out)
{
	struct walk w = { .a = a, .err = err, .top = path };
	struct names names;
	int top = -1;
	enum res r = open_top(&w, &top);
	if (r == RES_OK)
		r = list(&w, top, path, KEYDIR_MAX_DOMAINS, &names);
	for (size_t i = 0; r == RES_OK && i < names.count; i++)
		r = visit(&w, top, names.items[i]);
	return finish(&w, r, out);
}

enum res
keydir_open_domain(struct arena *a, const char *path, struct str domain,
    struct err *err, struct keydir *out)
{
	struct walk w = { .a = a, .err = err, .top = path, .undecided = true };
	struct str name = arena_dup(a, domain); /* with a NUL behind it */
	int top = -1;
	enum res r = name.ptr != NULL ? open_top(&w, &top) : RES_NOMEM;
	if (r == RES_OK)
		r = visit(&w, top, name);
	return finish(&w, r, out);
}

/* --- the archive's keys --- */

static int
compare_times(const void *va, const void *vb)
{
	const struct keyfile *a = va, *b = vb;
	return (a->since_s > b->since_s) - (a->since_s < b->since_s);
}

static enum res
add_note_key(struct walk *w, int folder, struct str name)
{
	uint64_t since;
	struct keyfile f = { .domain = SIGNER_NOTES,
		.selector = str_sub(name, 0, name.len - suffix.len),
		.state = KEY_STATE_ACTIVE,
		.notes = true,
		.path = arena_printf(w->a, "%s/%s", w->top, name.ptr) };
	if (f.path.ptr == NULL)
		return RES_NOMEM;
	if (str_to_u64(f.selector, INT64_MAX / 1000000, &since) != RES_OK ||
	    (f.selector.len > 1 && f.selector.ptr[0] == '0')) {
		err_set(w->err, "%s: a key of the archive is named after the "
				"time it is used from, in seconds since 1970",
		    f.path.ptr);
		return RES_SYNTAX;
	}
	f.since_s = (int64_t)since;
	enum res r = open_key(w, folder, name, &f);
	return r == RES_OK ? append(w, &f) : r;
}

enum res
keydir_open_notes(
    struct arena *a, const char *path, struct err *err, struct keydir *out)
{
	struct walk w = { .a = a, .err = err, .top = path };
	struct names names;
	int top = -1;
	enum res r = open_top(&w, &top);
	if (r == RES_OK)
		r = list(&w, top, path, KEYDIR_MAX_KEYS_PER_DOMAIN, &names);
	for (size_t i = 0; r == RES_OK && i < names.count; i++)
		if (str_ends(names.items[i], suffix))
			r = add_note_key(&w, top, names.items[i]);
	if (r == RES_OK && w.count == 0) {
		err_set(err, "%s: no key in it", path);
		r = RES_NOTFOUND;
	}
	if (r == RES_OK)
		qsort(w.files, w.count, sizeof *w.files, compare_times);
	return finish(&w, r, out);
}

/* --- a key anywhere --- */

static enum res
check_folder_of(struct walk *w, struct str path)
{
	struct stat st;
	size_t slash = str_rchr(path, '/');
	struct str folder = slash == SIZE_MAX ? STR(".") :
	    slash == 0			      ? STR("/") :
						str_sub(path, 0, slash);
	char *name = arena_cstr(w->a, folder);
	if (name == NULL)
		return RES_NOMEM;
	if (stat(name, &st) != 0)
		return cannot_open(w, name);
	w->owner = st.st_uid;
	return check_access(w, name, &st, 022);
}

enum res
keyfile_open(struct arena *a, struct str path, struct str domain,
    struct str selector, struct err *err, struct keyfile *out)
{
	struct walk w = { .a = a, .err = err };
	struct stat st;
	size_t slash = str_rchr(path, '/');
	struct str base =
	    slash == SIZE_MAX ? path : str_skip(path, slash + 1);
	if (selector.len == 0)
		selector = str_ends(base, suffix) ?
		    str_sub(base, 0, base.len - suffix.len) : base;
	struct keyfile f = { .state = KEY_STATE_ACTIVE, .fd = -1,
		.domain = arena_dup(a, domain),
		.selector = arena_dup(a, selector),
		.path = arena_dup(a, path) };
	if (f.domain.ptr == NULL || f.selector.ptr == NULL ||
	    f.path.ptr == NULL)
		return RES_NOMEM;
	if (path.len > KEYDIR_MAX_PATH)
		return RES_LIMIT;
	if (!keydir_name_valid(selector))
		return bad_name(&w, f.path.ptr, "selector");
	enum res r = check_folder_of(&w, path);
	if (r == RES_OK)
		r = open_kept(&w, AT_FDCWD, f.path.ptr, f.path.ptr, 0, &st,
		    &f.fd);
	if (r != RES_OK)
		return r;
	if (!S_ISREG(st.st_mode)) {
		err_set(err, "%s: not a regular file", f.path.ptr);
		return RES_DENIED;
	}
	r = check_access(&w, f.path.ptr, &st, 027);
	if (r == RES_OK)
		*out = f;
	return r;
}

enum res
keyfile_load(const struct keyfile *f, struct err *err, struct privkey **out)
{
	char *text = malloc(PRIVKEY_MAX_FILE + 1);
	if (text == NULL)
		return RES_NOMEM;
	size_t len = 0;
	enum res r = RES_OK;
	while (len <= PRIVKEY_MAX_FILE) {
		ssize_t n = pread(f->fd, text + len,
		    PRIVKEY_MAX_FILE + 1 - len, (off_t)len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			err_set(err, "%s: cannot read: %s", f->path.ptr,
			    strerror(errno));
			r = RES_IO;
		}
		if (n <= 0)
			break;
		len += (size_t)n;
	}
	if (r == RES_OK)
		r = privkey_from_pem(
		    str_of(text, len), f->path.ptr, err, out);
	OPENSSL_cleanse(text, len);
	free(text);
	return r;
}
