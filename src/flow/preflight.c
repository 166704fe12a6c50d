#include "flow/preflight.h"

#include <errno.h>
#include <grp.h>
#include <netdb.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "archive/store/netfs.h"
#include "base/arena.h"
#include "base/err.h"
#include "dns/zone.h"
#include "flow/keyfiles.h"
#include "flow/preflight_archive.h"
#include "flow/userview.h"
#include "keys/keyring.h"
#include "keys/signer.h"
#include "mail/domain.h"

struct preflight {
	const struct config *config;
	struct arena *arena;
	preflight_report report;
	void *context;
	struct account account;
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

static void
pass_on(void *context, enum finding level, const char *line)
{
	say(context, level, "%s", line);
}

static const char *
why(const struct err *err, enum res r)
{
	return err->text[0] != '\0' ? err->text : res_text(r);
}

static void
check_user(struct preflight *p)
{
	struct err err = { "" };
	enum res r = account_find(p->config->user, &err, &p->account);
	if (r != RES_OK)
		say(p, FINDING_BAD, "%s", why(&err, r));
	else if (p->account.drop)
		say(p, FINDING_OK, "user %s exists", p->account.name);
}

static void
check_view(struct preflight *p)
{
	struct userview views[USERVIEW_PATHS];
	if (userview_look(p->config, &p->account, views) != RES_OK) {
		say(p, FINDING_BAD, "user = %s: cannot become that user",
		    p->account.name);
		return;
	}
	for (size_t i = 0; i < USERVIEW_PATHS; i++)
		if (views[i].error != 0)
			say(p, FINDING_BAD, "%s %.*s: user %s may not %s it: "
			    "%s", views[i].option, STR_ARG(views[i].path),
			    p->account.name,
			    views[i].written ? "write to" : "read",
			    strerror(views[i].error));
}

/* The first of a domain in a sorted list, or its end. */
static size_t
first_of(const struct keydir *d, struct str domain)
{
	size_t low = 0, high = d->count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (str_cmp(d->files[middle].domain, domain) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static bool
is_key_of(const struct sign_rule *rule, const struct keyfile *f)
{
	return f->state == KEY_STATE_ACTIVE &&
	    (rule->selector.len == 0 ? !f->by_rule :
				       str_eq(f->selector, rule->selector));
}

/* Mail that such a line catches leaves unsigned. */
static void
check_table(struct preflight *p, const struct keydir *d)
{
	const struct config *c = p->config;
	for (size_t i = 0; i < c->sign_rule_count; i++) {
		const struct sign_rule *rule = &c->sign_rules[i];
		bool found = false;
		for (size_t at = first_of(d, rule->domain); !found &&
		     at < d->count && str_eq(d->files[at].domain, rule->domain);
		     at++)
			found = is_key_of(rule, &d->files[at]);
		if (!found)
			say(p, FINDING_WARNING, "%.*s: there is no key%s%.*s "
			    "of %.*s: what this line catches is not signed",
			    STR_ARG(rule->where),
			    rule->selector.len != 0 ? " " : "",
			    STR_ARG(rule->selector), STR_ARG(rule->domain));
	}
}

/* Reports must pass DMARC themselves (RUA-06). What a sign_table makes of
 * their address is not looked at. */
static void
check_report_key(struct preflight *p, const struct keydir *d)
{
	const struct config *c = p->config;
	size_t at = str_rchr(c->report_from, '@');
	struct str domain = STR_EMPTY;
	if (c->report != REPORT_SEND || c->sign_rule_count != 0 ||
	    domain_normalize(p->arena, str_skip(c->report_from, at + 1),
		&domain) != RES_OK)
		return;
	unsigned least = c->sign_subdomains ? 2 : domain_labels(domain);
	for (unsigned n = domain_labels(domain); n >= least && n > 0; n--) {
		struct str name = domain_last_labels(domain, n);
		for (size_t i = first_of(d, name);
		     i < d->count && str_eq(d->files[i].domain, name); i++)
			if (d->files[i].state == KEY_STATE_ACTIVE)
				return;
	}
	say(p, FINDING_WARNING, "report_from %.*s: there is no key of %.*s: "
	    "reports are not signed, and receivers will not believe them",
	    STR_ARG(c->report_from), STR_ARG(domain));
}

/* Every key can be loaded, and is strong enough. */
static enum res
check_each(struct preflight *p, const struct keydir *d, struct err *err)
{
	struct signer *signer = NULL;
	enum res r = keyring_from_keydir(d, err, &signer);
	if (r != RES_OK)
		return r;
	struct manifest *m = signer->manifest(signer);
	for (size_t i = 0; i < manifest_count(m); i++) {
		const struct signing_key *k = manifest_at(m, i);
		if (signing_key_weak(k))
			say(p, FINDING_WARNING, "key %.*s/%.*s has %u bits; "
			    "use at least %d", STR_ARG(k->domain),
			    STR_ARG(k->selector), k->bits,
			    SIGNER_MIN_RSA_BITS);
	}
	manifest_unref(&m);
	signer_free(&signer);
	return RES_OK;
}

static void
check_keys(struct preflight *p, const struct keydir *keys)
{
	const struct config *c = p->config;
	struct err err = { "" };
	struct keydir dir;
	enum res r = RES_OK;
	size_t active = 0;
	if (c->mode == MODE_VERIFY)
		return;
	if (keys != NULL) {
		dir = *keys;
	} else {
		r = keyfiles_open(c, p->arena, &err, &dir);
		if (r == RES_OK)
			r = check_each(p, &dir, &err);
	}
	if (r == RES_NOTFOUND && access(c->key_dir.ptr, F_OK) != 0) {
		say(p, FINDING_BAD, "%s; make a key with `hanaper key generate "
		    "DOMAIN`, or set mode = verify", why(&err, r));
		return;
	}
	if (r != RES_OK) {
		say(p, FINDING_BAD, "%s", why(&err, r));
		return;
	}
	check_table(p, &dir);
	check_report_key(p, &dir);
	for (size_t i = 0; i < dir.count; i++)
		active += dir.files[i].state == KEY_STATE_ACTIVE;
	say(p, active != 0 ? FINDING_OK : FINDING_WARNING,
	    "key_dir %s: %zu keys", c->key_dir.ptr, active);
}

/* Without them the archive works, and proves nothing. */
static void
check_note_keys(struct preflight *p)
{
	const struct config *c = p->config;
	struct err err = { "" };
	struct keydir dir;
	enum res r = keyfiles_open_notes(c, p->arena, &err, &dir);
	for (size_t i = 0; r == RES_OK && i < dir.count; i++) {
		struct privkey *k = NULL;
		r = keyfile_load(&dir.files[i], &err, &k);
		if (r == RES_OK && privkey_type(k) != KEY_ED25519) {
			err_set(&err, "%s: not an Ed25519 key",
			    dir.files[i].path.ptr);
			r = RES_UNSUPPORTED;
		}
		privkey_free(&k);
	}
	if (r != RES_OK)
		say(p, FINDING_BAD, "%s", why(&err, r));
	else if (dir.count == 0)
		say(p, FINDING_WARNING, "archive_keys %.*s: no key: the archive "
		    "is not signed, and cannot prove what it holds; make one "
		    "with: hanaper archive key --new",
		    STR_ARG(c->archive_keys));
	else
		say(p, FINDING_OK, "archive_keys %.*s: %zu keys",
		    STR_ARG(c->archive_keys), dir.count);
}

/* The folder, or where it is not there yet, the nearest one above it that is:
 * the daemon makes all of them. */
static void
check_folder(struct preflight *p, const char *option, struct str path)
{
	struct stat st;
	char *dir = arena_cstr(p->arena, path);
	if (dir == NULL)
		return;
	bool there = stat(dir, &st) == 0;
	for (char *slash; !there && errno == ENOENT &&
	     (slash = strrchr(dir, '/')) != NULL;) {
		slash[slash == dir] = '\0';
		there = stat(dir, &st) == 0;
	}
	if (there && S_ISDIR(st.st_mode) && access(dir, W_OK | X_OK) == 0) {
		if (strlen(dir) == path.len)
			say(p, FINDING_OK, "%s %s is writable", option, dir);
		else
			say(p, FINDING_OK, "%s can be made in %s", option, dir);
		return;
	}
	int saved = there && !S_ISDIR(st.st_mode) ? ENOTDIR : errno;
	say(p, FINDING_BAD, "%s %.*s: not writable: %s", option,
	    STR_ARG(path), strerror(saved));
}

/* Where the databases are. The store itself refuses some of them. */
static void
check_network(struct preflight *p, const char *option, struct str path,
    enum finding refused)
{
	const char *name, *dir = arena_cstr(p->arena, path);
	enum netfs kind = dir != NULL
	    ? netfs_at(&archive_io_system, dir, &name) : NETFS_LOCAL;
	if (kind != NETFS_LOCAL)
		say(p, kind == NETFS_REFUSED ? refused : FINDING_WARNING,
		    "%s %s is on %s: %s", option, dir, name,
		    kind == NETFS_REFUSED
			? "locks and syncs of a network file system cannot be "
			  "relied on; keep it on a local disk"
			: "make sure that locks and syncs work there, or keep "
			  "it on a local disk");
}

static void
check_unix(struct preflight *p, const struct listen_address *l)
{
	struct stat st;
	size_t slash = str_rchr(l->path, '/');
	char *path = arena_cstr(p->arena, l->path);
	char *group = arena_cstr(p->arena, l->group);
	if (path == NULL || group == NULL)
		return;
	check_folder(p, "listen socket folder", str_sub(l->path, 0, slash));
	if (lstat(path, &st) == 0 && !S_ISSOCK(st.st_mode))
		say(p, FINDING_BAD, "listen = unix:%s: is there already and is "
		    "no socket; remove it or change listen", path);
	if (p->account.drop && group[0] != '\0' && getgrnam(group) == NULL)
		say(p, FINDING_BAD, "listen: no group \"%s\"; name the MTA's "
		    "group with: listen = unix:PATH group=NAME", group);
}

/* That the port is taken is no finding: it may be the daemon. */
static void
check_inet(struct preflight *p, const struct listen_address *l)
{
	char port[8];
	struct addrinfo *found = NULL, hints = { .ai_flags = AI_PASSIVE |
			AI_NUMERICSERV, .ai_socktype = SOCK_STREAM };
	char *host = arena_cstr(p->arena, l->host);
	if (host == NULL)
		return;
	snprintf(port, sizeof port, "%u", (unsigned)l->port);
	int e = getaddrinfo(host[0] != '\0' ? host : NULL, port, &hints, &found);
	if (e != 0) {
		say(p, FINDING_BAD, "listen: %s: %s", host, gai_strerror(e));
		return;
	}
	int fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || (bind(fd, found->ai_addr, found->ai_addrlen) != 0 &&
			  errno != EADDRINUSE))
		say(p, FINDING_BAD, "listen: port %s of %s: %s", port, host,
		    strerror(errno));
	if (fd >= 0)
		close(fd);
	freeaddrinfo(found);
}

static void
check_listen(struct preflight *p)
{
	const struct listen_address *l = &p->config->listen;
	size_t slash = str_rchr(l->path, '/');
	if (!l->is_unix)
		check_inet(p, l);
	else if (l->path.len >= sizeof((struct sockaddr_un *)0)->sun_path)
		say(p, FINDING_BAD, "listen = unix:%.*s: path is longer than "
		    "a socket's may be", STR_ARG(l->path));
	else if (slash == SIZE_MAX || slash == 0)
		say(p, FINDING_BAD, "listen = unix:%.*s: give an absolute path "
		    "below a folder", STR_ARG(l->path));
	else
		check_unix(p, l);
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
preflight_run(const struct config *c, const struct keydir *keys,
    preflight_report report, void *context)
{
	struct preflight p = { .config = c, .arena = arena_new(0),
		.report = report, .context = context, .worst = FINDING_OK };
	if (p.arena == NULL)
		return FINDING_BAD;
	check_user(&p);
	check_keys(&p, keys);
	check_listen(&p);
	check_folder(&p, "state_dir", c->state_dir);
	check_network(&p, "state_dir", c->state_dir, FINDING_WARNING);
	if (c->archive) {
		check_folder(&p, "archive_dir", c->archive_dir);
		check_network(&p, "archive_dir", c->archive_dir, FINDING_BAD);
		check_note_keys(&p);
	}
	if (preflight_archive(c, pass_on, &p) != RES_OK)
		say(&p, FINDING_BAD, "out of memory");
	if (p.account.drop)
		check_view(&p);
	check_zone(&p);
	arena_free(&p.arena);
	return p.worst;
}
