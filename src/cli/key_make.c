/* hanaper key generate: a new key file, complete or not there at all. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sysexits.h>
#include <time.h>
#include <unistd.h>

#include "cli/key.h"

#define NEW_FILE ".new.pem"

/* Made when missing; as root it gets the owner of what is above it, or of
 * the configuration's user. */
int
key_make_folder(const struct key_options *o, const char *path)
{
	if (mkdir(path, 0750) != 0)
		return errno == EEXIST ? EX_OK : cli_fail(EX_CANTCREAT,
		    "%s: cannot make the folder: %s", path, strerror(errno));
	if (o->uid != KEY_NO_ID && chown(path, o->uid, o->gid) != 0)
		return cli_fail(EX_CANTCREAT, "%s: cannot set its owner: %s",
		    path, strerror(errno));
	return EX_OK;
}

static bool
write_all(int fd, struct str s)
{
	while (s.len > 0) {
		ssize_t n = write(fd, s.ptr, s.len);
		if (n < 0)
			return false;
		s = str_skip(s, (size_t)n);
	}
	return true;
}

/* Complete and on disk under another name first; link() never replaces. */
bool
key_write_new(const struct key_options *o, int folder, struct str text,
    const char *name)
{
	(void)unlinkat(folder, NEW_FILE, 0);
	int fd = openat(folder, NEW_FILE,
	    O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0640);
	if (fd < 0)
		return false;
	bool good = fchmod(fd, 0640) == 0 && write_all(fd, text) &&
	    (o->uid == KEY_NO_ID || fchown(fd, o->uid, o->gid) == 0) &&
	    fsync(fd) == 0 &&
	    linkat(folder, NEW_FILE, folder, name, 0) == 0;
	int saved = errno;
	close(fd);
	(void)unlinkat(folder, NEW_FILE, 0);
	good = good && fsync(folder) == 0;
	if (!good && saved != 0)
		errno = saved;
	return good;
}

const char *
key_selector(const struct key_options *o, int folder)
{
	time_t now = (time_t)o->now_s;
	struct tm tm;
	gmtime_r(&now, &tm);
	struct str day = arena_printf(o->arena, "%c%04d%02d%02d",
	    o->type == KEY_RSA ? 'r' : 'e', tm.tm_year + 1900, tm.tm_mon + 1,
	    tm.tm_mday);
	for (char c = 'b'; day.ptr != NULL && folder >= 0; c++) {
		struct str file = arena_printf(o->arena, "%s.pem", day.ptr);
		if (c > 'z' || file.ptr == NULL ||
		    faccessat(folder, file.ptr, F_OK, 0) != 0)
			break;
		day = arena_printf(o->arena, "%.*s%c",
		    STR_ARG(str_sub(day, 0, 9)), c);
	}
	return day.ptr;
}

/* The active key of the same type that the new one would stand beside. */
static const struct keyfile *
rival(const struct key_options *o, const struct keydir *d, struct str selector)
{
	for (size_t i = 0; i < d->count; i++) {
		struct privkey *k = NULL;
		if (!str_eq(d->files[i].domain, o->domain) ||
		    d->files[i].state != KEY_STATE_ACTIVE ||
		    str_eq(d->files[i].selector, selector) ||
		    keyfile_load(&d->files[i], NULL, &k) != RES_OK)
			continue;
		bool same = privkey_type(k) == o->type;
		privkey_free(&k);
		if (same)
			return &d->files[i];
	}
	return NULL;
}

/* The new one is "next": the daemon goes on signing with the old one. */
static int
mark_next(const struct key_options *o, int folder, const char *path,
    struct str selector, const struct keyfile *old)
{
	struct err err = { "" };
	struct keystate s;
	struct stat st;
	enum res r = keystate_read(o->arena, folder, path, &err, &s);
	if (r != RES_OK)
		return cli_fail(cli_status(r), "%s", err.text);
	struct keystate_line *lines =
	    arena_array(o->arena, s.count + 2, sizeof *lines);
	if (lines == NULL)
		return EX_OSERR;
	size_t n = 0;
	for (size_t i = 0; i < s.count; i++)
		if (!str_eq(s.lines[i].selector, selector))
			lines[n++] = s.lines[i];
	if (keystate_find(&s, old->selector) == NULL)
		lines[n++] = (struct keystate_line){ old->selector,
			KEY_STATE_ACTIVE,
			fstat(old->fd, &st) == 0 ? st.st_mtime : 0, 0 };
	lines[n++] = (struct keystate_line){ selector, KEY_STATE_NEXT,
		o->now_s, 0 };
	s = (struct keystate){ n, lines };
	r = keystate_write(folder, path, &s, &err);
	return r == RES_OK ? EX_OK :
			     cli_fail(cli_status(r), "%s", err.text);
}

static int
store_key(const struct key_options *o, const struct keyfile *old, int folder,
    const char *path, struct str selector, struct str pem)
{
	struct str name =
	    arena_printf(o->arena, "%.*s.pem", STR_ARG(selector));
	if (name.ptr == NULL)
		return EX_OSERR;
	if (faccessat(folder, name.ptr, F_OK, 0) == 0)
		return cli_fail(EX_CANTCREAT, "%s/%s: is there already; name "
		    "another with --selector", path, name.ptr);
	/* the file first: a state that names a missing one is an error, and
	 * a daemon that reloads between the two keeps what it has */
	if (!key_write_new(o, folder, pem, name.ptr))
		return cli_fail(EX_CANTCREAT, "%s/%s: cannot write: %s", path,
		    name.ptr, strerror(errno));
	if (old == NULL)
		return EX_OK;
	int status = mark_next(o, folder, path, selector, old);
	if (status != EX_OK) {
		(void)unlinkat(folder, name.ptr, 0);
		return status;
	}
	fprintf(stderr, "hanaper: %.*s still signs; the new key is \"next\" "
			"until hanaper key rotate %.*s\n",
	    STR_ARG(old->selector), STR_ARG(o->domain));
	return EX_OK;
}

static int
print_new(const struct key_options *o, const char *path, struct str selector,
    bool signs)
{
	struct err err = { "" };
	struct keyfile f;
	struct str file = arena_printf(
	    o->arena, "%s/%.*s.pem", path, STR_ARG(selector));
	enum res r = file.ptr == NULL ? RES_NOMEM :
	    keyfile_open(o->arena, file, o->domain, selector, &err, &f);
	if (r != RES_OK)
		return cli_fail(cli_status(r), "%s", err.text);
	fprintf(stderr, "hanaper: made %s; publish this record%s\n", file.ptr,
	    signs ? ", then let hanaperd read its keys again (HUP)" : "");
	return key_print(o, &f, KEY_FORM_ZONE);
}

/* Generate in memory, then everything on disk. */
int
key_make(struct key_options *o, const struct keydir *d, int folder,
    const char *path)
{
	struct err err = { "" };
	struct privkey *k = NULL;
	struct buf pem;
	const char *name = o->selector != NULL ? o->selector :
						 key_selector(o, -1);
	if (name == NULL)
		return EX_OSERR;
	struct str selector = str_c(name);
	if (!keydir_name_valid(selector))
		return cli_fail(EX_USAGE, "\"%s\" is no selector: lower-case "
		    "letters, digits, \"-\", \"_\" and dots", name);
	const struct keyfile *old = rival(o, d, selector);
	buf_init(&pem, PRIVKEY_MAX_FILE);
	(void)buf_reserve(&pem, 8192); /* no copies left behind by growing */
	enum res r = privkey_generate(o->type, o->bits, &err, &k);
	if (r == RES_OK)
		r = privkey_to_pem(k, &pem);
	int status = r == RES_OK ?
	    store_key(o, old, folder, path, selector, buf_str(&pem)) :
	    cli_fail(cli_status(r), "%s",
		err.text[0] != '\0' ? err.text : res_text(r));
	if (pem.ptr != NULL)
		explicit_bzero(pem.ptr, pem.cap);
	buf_done(&pem);
	privkey_free(&k);
	if (status != EX_OK)
		return status;
	return print_new(o, path, selector, old == NULL);
}

int
key_lock(const char *path, int *out_fd)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC), locked = -1;
	while (fd >= 0 && (locked = flock(fd, LOCK_EX)) != 0 && errno == EINTR)
		;
	if (locked == 0) {
		*out_fd = fd;
		return EX_OK;
	}
	int saved = errno;
	if (fd >= 0)
		close(fd);
	return cli_fail(saved == ENOENT ? EX_NOINPUT : EX_CANTCREAT, "%s: %s",
	    path, strerror(saved));
}

void
key_own(struct key_options *o)
{
	struct stat st;
	if (geteuid() == 0 && stat(o->key_dir, &st) == 0) {
		o->uid = st.st_uid;
		o->gid = st.st_gid;
	}
}

int
key_generate(struct key_options *o)
{
	struct err err = { "" };
	struct keydir d = { 0 };
	struct stat st;
	int folder = -1, status = key_make_folder(o, o->key_dir);
	if (status != EX_OK)
		return status;
	key_own(o);
	struct str path = arena_printf(
	    o->arena, "%s/%.*s", o->key_dir, STR_ARG(o->domain));
	if (path.ptr == NULL)
		return EX_OSERR;
	bool old = stat(path.ptr, &st) == 0;
	status = key_make_folder(o, path.ptr);
	if (status == EX_OK)
		status = key_lock(path.ptr, &folder);
	if (status != EX_OK)
		return status;
	enum res r = old ? keydir_open(o->arena, o->key_dir, &err, &d) : RES_OK;
	status = r == RES_OK || r == RES_NOTFOUND ?
	    key_make(o, &d, folder, path.ptr) :
	    cli_fail(cli_status(r), "%s", err.text);
	close(folder);
	return status;
}
