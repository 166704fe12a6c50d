#include "flow/preflight.h"

#include <errno.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/err.h"
#include "dns/zone.h"
#include "keys/keydir.h"
#include "keys/keyring.h"
#include "keys/signer.h"

#define WEAK_RSA_BITS 2048 /* RFC 8301 §3.2: signers SHOULD use that much */

struct preflight {
	const struct config *config;
	struct arena *arena;
	preflight_report report;
	void *context;
	bool make;
	enum finding worst;
};

static void say(struct preflight *p, enum finding level, const char *fmt, ...)
    HN_PRINTF(3, 4);

static void
say(struct preflight *p, enum finding level, const char *fmt, ...)
{
	char line[ERR_MAX_TEXT];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(line, sizeof line, fmt, ap);
	va_end(ap);
	if (level > p->worst)
		p->worst = level;
	p->report(p->context, level, line);
}

static const char *
why(const struct err *err, enum res r)
{
	return err->text[0] != '\0' ? err->text : res_text(r);
}

static void
check_user(struct preflight *p)
{
	const char *user = p->config->user.ptr;
	if (geteuid() != 0)
		return;
	if (getpwnam(user) == NULL)
		say(p, FINDING_BAD, "user = %s: no such user; make it with "
		    "`adduser --system --group %s`", user, user);
	else
		say(p, FINDING_OK, "user %s exists", user);
}

static void
check_keys(struct preflight *p)
{
	const struct config *c = p->config;
	struct err err = { "" };
	struct keydir dir;
	struct signer *signer = NULL;
	if (c->mode == MODE_VERIFY)
		return;
	enum res r = keydir_open(p->arena, c->key_dir.ptr, &err, &dir);
	if (r == RES_OK)
		r = keyring_from_keydir(&dir, &err, &signer);
	if (r == RES_NOTFOUND) {
		say(p, FINDING_BAD, "%s; make a key with `hanaper key generate "
		    "DOMAIN`, or set mode = verify", why(&err, r));
		return;
	}
	if (r != RES_OK) {
		say(p, FINDING_BAD, "%s", why(&err, r));
		return;
	}
	struct manifest *m = signer->manifest(signer);
	for (size_t i = 0; m != NULL && i < manifest_count(m); i++) {
		const struct signing_key *k = manifest_at(m, i);
		if (k->type == KEY_RSA && k->bits < WEAK_RSA_BITS)
			say(p, FINDING_WARNING, "key %.*s/%.*s has %u bits; "
			    "use at least %d", STR_ARG(k->domain),
			    STR_ARG(k->selector), k->bits, WEAK_RSA_BITS);
	}
	say(p, manifest_count(m) != 0 ? FINDING_OK : FINDING_WARNING,
	    "key_dir %s: %zu keys", c->key_dir.ptr, manifest_count(m));
	manifest_unref(&m);
	signer_free(&signer);
}

/* The folder, or where it is not there yet, the one it would be made in. */
static void
check_folder(struct preflight *p, const char *option, struct str path)
{
	struct stat st;
	char *dir = arena_cstr(p->arena, path);
	if (dir == NULL)
		return;
	if (stat(dir, &st) != 0 && errno == ENOENT && p->make &&
	    mkdir(dir, 0750) == 0)
		errno = 0;
	if (stat(dir, &st) == 0) {
		if (!S_ISDIR(st.st_mode))
			say(p, FINDING_BAD, "%s %s: not a folder", option, dir);
		else if (access(dir, W_OK | X_OK) != 0)
			say(p, FINDING_BAD, "%s %s: not writable: %s", option,
			    dir, strerror(errno));
		else
			say(p, FINDING_OK, "%s %s is writable", option, dir);
		return;
	}
	int saved = errno;
	char *slash = strrchr(dir, '/');
	if (saved == ENOENT && slash != NULL && slash != dir) {
		*slash = '\0';
		if (access(dir, W_OK | X_OK) == 0) {
			say(p, FINDING_OK, "%s can be made in %s", option, dir);
			return;
		}
		saved = errno;
	}
	say(p, FINDING_BAD, "%s %.*s: not writable: %s", option,
	    STR_ARG(path), strerror(saved));
}

static void
check_listen(struct preflight *p)
{
	const struct listen_address *l = &p->config->listen;
	size_t slash = str_rchr(l->path, '/');
	if (!l->is_unix)
		return;
	if (l->path.len >= sizeof((struct sockaddr_un *)0)->sun_path)
		say(p, FINDING_BAD, "listen = unix:%.*s: path is longer than "
		    "a socket's may be", STR_ARG(l->path));
	else if (slash == SIZE_MAX || slash == 0)
		say(p, FINDING_BAD, "listen = unix:%.*s: give an absolute path "
		    "below a folder", STR_ARG(l->path));
	else
		check_folder(p, "listen socket folder",
		    str_sub(l->path, 0, slash));
}

static void
check_zone(struct preflight *p)
{
	struct err err = { "" };
	struct resolver *zone = NULL;
	if (p->config->zone_file.len == 0)
		return;
	enum res r = zone_open(p->config->zone_file.ptr, true, &err, &zone);
	if (r != RES_OK)
		say(p, FINDING_BAD, "%s", why(&err, r));
	else
		say(p, FINDING_WARNING, "zone_file = %.*s: the DNS is not "
		    "asked, only this file", STR_ARG(p->config->zone_file));
	resolver_free(&zone);
}

enum finding
preflight_run(const struct config *c, bool make, preflight_report report,
    void *context)
{
	struct preflight p = { c, arena_new(0), report, context, make,
		FINDING_OK };
	if (p.arena == NULL)
		return FINDING_BAD;
	check_user(&p);
	check_keys(&p);
	check_listen(&p);
	check_folder(&p, "state_dir", c->state_dir);
	if (c->archive)
		check_folder(&p, "archive_dir", c->archive_dir);
	check_zone(&p);
	arena_free(&p.arena);
	return p.worst;
}
