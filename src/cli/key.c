/* hanaper key: make keys, say what to publish, list what is there. */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sysexits.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/codec.h"
#include "base/json.h"
#include "cli/cli.h"
#include "keys/keydir.h"
#include "mail/domain.h"

#define MAX_RECORD  4096 /* the text of one record */
#define MAX_STRING  255  /* of a TXT record: RFC 1035 §3.3 */
#define NEW_FILE    ".new.pem"
#define NO_ID       ((uid_t)-1)

struct key_options {
	struct arena *arena;
	struct cli_settings settings;
	const char *key_dir;   /* --key-dir, or the configuration's */
	struct str domain;     /* normal form; empty for list */
	const char *selector;  /* NULL: made from the date */
	enum key_type type;
	unsigned bits;
	bool json;
	uid_t uid; /* for what is made, as root; else NO_ID */
	gid_t gid;
};

static const struct {
	const char *word;
	enum key_type type;
	unsigned bits;
} types[] = {
	{ "rsa2048", KEY_RSA, 2048 },
	{ "rsa4096", KEY_RSA, 4096 },
	{ "ed25519", KEY_ED25519, 0 },
};

/* --- arguments --- */

static bool
find_type(const char *word, struct key_options *o)
{
	for (size_t i = 0; i < sizeof types / sizeof *types; i++)
		if (strcmp(word, types[i].word) == 0) {
			o->type = types[i].type;
			o->bits = types[i].bits;
			return true;
		}
	return false;
}

static int
usage(void)
{
	fputs("usage: hanaper key generate DOMAIN [--selector S] [--type "
	      "rsa2048|rsa4096|ed25519]\n"
	      "       hanaper key dns DOMAIN [--json]\n"
	      "       hanaper key list [--json]\n"
	      "       each with [--key-dir DIR | -c FILE]\n", stderr);
	return EX_USAGE;
}

static int
parse_options(int argc, char **argv, struct key_options *o)
{
	static const struct option names[] = {
		{ "selector", required_argument, NULL, 's' },
		{ "type", required_argument, NULL, 't' },
		{ "key-dir", required_argument, NULL, 'k' },
		{ "json", no_argument, NULL, 'j' },
		{ NULL, 0, NULL, 0 },
	};
	int c;
	opterr = 0; /* its messages do not begin with our name */
	while ((c = getopt_long(argc, argv, "c:o:", names, NULL)) != -1) {
		switch (c) {
		case 'c':
			o->settings.path = optarg;
			break;
		case 'o':
			if (!cli_settings_add(&o->settings, optarg))
				return cli_fail(EX_USAGE,
				    "-o wants NAME=VALUE, not %s", optarg);
			break;
		case 's':
			o->selector = optarg;
			break;
		case 't':
			if (!find_type(optarg, o))
				return cli_fail(EX_USAGE, "no key type \"%s\": "
				    "rsa2048, rsa4096 or ed25519", optarg);
			break;
		case 'k':
			o->key_dir = optarg;
			break;
		case 'j':
			o->json = true;
			break;
		default:
			return usage();
		}
	}
	return EX_OK;
}

static int
take_domain(struct key_options *o, const char *text)
{
	if (domain_normalize(o->arena, str_c(text), &o->domain) == RES_OK &&
	    keydir_name_valid(o->domain))
		return EX_OK;
	return cli_fail(EX_USAGE, "\"%s\" is no domain name", text);
}

/* The folder of --key-dir, else of the configuration, whose user also owns
 * what root makes. */
static int
find_key_dir(struct key_options *o)
{
	int status = EX_OK;
	struct config *c;
	o->uid = NO_ID;
	o->gid = (gid_t)-1;
	if (o->key_dir != NULL)
		return EX_OK;
	c = cli_settings_load(&o->settings, &status);
	if (c == NULL)
		return status;
	o->key_dir = arena_cstr(o->arena, c->key_dir);
	const struct passwd *p = geteuid() == 0 ? getpwnam(c->user.ptr) : NULL;
	if (p != NULL) {
		o->uid = 0; /* the daemon's user reads through its group */
		o->gid = p->pw_gid;
	}
	config_unref(&c);
	return o->key_dir != NULL ? EX_OK : EX_OSERR;
}

/* --- records --- */

/* "v=DKIM1; k=rsa; p=…" (RFC 6376 §3.6.1, RFC 8463 §4.2). */
static enum res
record_text(const struct privkey *k, struct buf *out)
{
	struct buf public;
	buf_init(&public, MAX_RECORD);
	enum res r = privkey_public(k, &public);
	if (r == RES_OK) {
		buf_addf(out, "v=DKIM1; k=%s; p=",
		    privkey_type(k) == KEY_RSA ? "rsa" : "ed25519");
		base64_encode(out, public.ptr, public.len);
		r = out->error;
	}
	buf_done(&public);
	return r;
}

/* One line that a master file takes. */
static void
print_zone_line(const struct keyfile *f, struct str text)
{
	printf("%.*s._domainkey.%.*s. IN TXT", STR_ARG(f->selector),
	    STR_ARG(f->domain));
	for (size_t at = 0; at < text.len; at += MAX_STRING)
		printf(" \"%.*s\"", STR_ARG(str_sub(text, at, MAX_STRING)));
	putchar('\n');
}

static void
print_json(const struct key_options *o, const struct keyfile *f,
    const struct privkey *k, struct str text)
{
	struct buf line;
	struct json j;
	buf_init(&line, MAX_RECORD * 4);
	json_init(&j, &line);
	json_open(&j, '{');
	json_key_str(&j, "name", arena_printf(o->arena,
	    "%.*s._domainkey.%.*s", STR_ARG(f->selector),
	    STR_ARG(f->domain)));
	json_key_c(&j, "type", "TXT");
	json_key_str(&j, "value", text);
	json_key_str(&j, "domain", f->domain);
	json_key_str(&j, "selector", f->selector);
	json_key_c(&j, "state", key_state_word(f->state));
	json_key_c(&j, "key_type",
	    privkey_type(k) == KEY_RSA ? "rsa" : "ed25519");
	json_key_int(&j, "bits", privkey_bits(k));
	json_key_str(&j, "file", f->path);
	json_close(&j, '}');
	printf("%.*s\n", (int)line.len, line.ptr);
	buf_done(&line);
}

static void
print_row(const struct keyfile *f, const struct privkey *k)
{
	printf("%-30.*s %-16.*s %-8s %-7s %4u\n", STR_ARG(f->domain),
	    STR_ARG(f->selector), key_state_word(f->state),
	    privkey_type(k) == KEY_RSA ? "rsa" : "ed25519", privkey_bits(k));
}

enum form { FORM_ZONE, FORM_ROW };

static int
print_key(const struct key_options *o, const struct keyfile *f,
    enum form form)
{
	struct err err = { "" };
	struct privkey *k = NULL;
	struct buf text;
	buf_init(&text, MAX_RECORD);
	enum res r = keyfile_load(f, &err, &k);
	if (r == RES_OK)
		r = record_text(k, &text);
	if (r != RES_OK) {
		buf_done(&text);
		privkey_free(&k);
		return cli_fail(cli_status(r), "%s",
		    err.text[0] != '\0' ? err.text : res_text(r));
	}
	if (o->json)
		print_json(o, f, k, buf_str(&text));
	else if (form == FORM_ZONE)
		print_zone_line(f, buf_str(&text));
	else
		print_row(f, k);
	privkey_free(&k);
	buf_done(&text);
	return EX_OK;
}

/* --- list, dns --- */

/* All keys, or those of a domain. */
static int
print_keys(const struct key_options *o, enum form form)
{
	struct err err = { "" };
	struct keydir d;
	size_t shown = 0;
	enum res r = keydir_open(o->arena, o->key_dir, &err, &d);
	if (r != RES_OK)
		return cli_fail(cli_status(r), "%s",
		    err.text[0] != '\0' ? err.text : res_text(r));
	for (size_t i = 0; i < d.count; i++) {
		if (o->domain.len > 0 &&
		    !str_eq(d.files[i].domain, o->domain))
			continue;
		int status = print_key(o, &d.files[i], form);
		if (status != EX_OK)
			return status;
		shown++;
	}
	if (o->domain.len > 0 && shown == 0)
		return cli_fail(EX_NOINPUT, "%s has no key for %.*s; make one "
		    "with: hanaper key generate %.*s", o->key_dir,
		    STR_ARG(o->domain), STR_ARG(o->domain));
	return EX_OK;
}

/* --- generate --- */

/* Made when missing; as root it gets the owner of what is above it, or of
 * the configuration's user. */
static int
make_folder(const struct key_options *o, const char *path)
{
	if (mkdir(path, 0750) != 0)
		return errno == EEXIST ? EX_OK : cli_fail(EX_CANTCREAT,
		    "%s: cannot make the folder: %s", path, strerror(errno));
	if (o->uid != NO_ID && chown(path, o->uid, o->gid) != 0)
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
static bool
write_new(const struct key_options *o, int folder, struct str text,
    const char *name)
{
	(void)unlinkat(folder, NEW_FILE, 0);
	int fd = openat(folder, NEW_FILE,
	    O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0640);
	if (fd < 0)
		return false;
	bool good = fchmod(fd, 0640) == 0 && write_all(fd, text) &&
	    (o->uid == NO_ID || fchown(fd, o->uid, o->gid) == 0) &&
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

static const char *
default_selector(const struct key_options *o)
{
	time_t now = (time_t)clock_now_s(&CLOCK_SYSTEM);
	struct tm tm;
	gmtime_r(&now, &tm);
	return arena_printf(o->arena, "%c%04d%02d%02d",
	    o->type == KEY_RSA ? 'r' : 'e', tm.tm_year + 1900, tm.tm_mon + 1,
	    tm.tm_mday).ptr;
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
			fstat(old->fd, &st) == 0 ? st.st_mtime : 0 };
	lines[n++] = (struct keystate_line){ selector, KEY_STATE_NEXT,
		clock_now_s(&CLOCK_SYSTEM) };
	s = (struct keystate){ n, lines };
	r = keystate_write(folder, path, &s, &err);
	return r == RES_OK ? EX_OK :
			     cli_fail(cli_status(r), "%s", err.text);
}

static int
store_key(const struct key_options *o, const struct keydir *d, int folder,
    const char *path, struct str selector, struct str pem)
{
	struct str name =
	    arena_printf(o->arena, "%.*s.pem", STR_ARG(selector));
	const struct keyfile *old = rival(o, d, selector);
	if (name.ptr == NULL)
		return EX_OSERR;
	if (faccessat(folder, name.ptr, F_OK, 0) == 0)
		return cli_fail(EX_CANTCREAT, "%s/%s: is there already; name "
		    "another with --selector", path, name.ptr);
	/* the file first: a state that names a missing one is an error, and
	 * a daemon that reloads between the two keeps what it has */
	if (!write_new(o, folder, pem, name.ptr))
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
print_new(const struct key_options *o, const char *path, struct str selector)
{
	struct err err = { "" };
	struct keyfile f;
	struct str file = arena_printf(
	    o->arena, "%s/%.*s.pem", path, STR_ARG(selector));
	enum res r = file.ptr == NULL ? RES_NOMEM :
	    keyfile_open(o->arena, file, o->domain, selector, &err, &f);
	if (r != RES_OK)
		return cli_fail(cli_status(r), "%s", err.text);
	fprintf(stderr, "hanaper: made %s; publish this record, then let "
			"hanaperd read its keys again (HUP)\n", file.ptr);
	return print_key(o, &f, FORM_ZONE);
}

/* Generate in memory, then everything on disk. */
static int
make_key(struct key_options *o, const struct keydir *d, const char *path)
{
	struct err err = { "" };
	struct privkey *k = NULL;
	struct buf pem;
	struct str selector = str_c(
	    o->selector != NULL ? o->selector : default_selector(o));
	if (!keydir_name_valid(selector))
		return cli_fail(EX_USAGE, "\"%s\" is no selector: lower-case "
		    "letters, digits, \"-\", \"_\" and dots", o->selector);
	int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (folder < 0)
		return cli_fail(EX_CANTCREAT, "%s: %s", path, strerror(errno));
	buf_init(&pem, PRIVKEY_MAX_FILE);
	(void)buf_reserve(&pem, 8192); /* no copies left behind by growing */
	enum res r = privkey_generate(o->type, o->bits, &err, &k);
	if (r == RES_OK)
		r = privkey_to_pem(k, &pem);
	int status = r == RES_OK ?
	    store_key(o, d, folder, path, selector, buf_str(&pem)) :
	    cli_fail(cli_status(r), "%s",
		err.text[0] != '\0' ? err.text : res_text(r));
	if (pem.ptr != NULL)
		explicit_bzero(pem.ptr, pem.cap);
	buf_done(&pem);
	privkey_free(&k);
	close(folder);
	return status == EX_OK ? print_new(o, path, selector) : status;
}

static int
generate(struct key_options *o)
{
	struct err err = { "" };
	struct keydir d = { 0 };
	struct stat st;
	int status = make_folder(o, o->key_dir);
	if (status != EX_OK)
		return status;
	/* as root: what is made below belongs to whom the folder belongs */
	if (geteuid() == 0 && stat(o->key_dir, &st) == 0) {
		o->uid = st.st_uid;
		o->gid = st.st_gid;
	}
	struct str path = arena_printf(
	    o->arena, "%s/%.*s", o->key_dir, STR_ARG(o->domain));
	if (path.ptr == NULL)
		return EX_OSERR;
	if (stat(path.ptr, &st) == 0) {
		enum res r = keydir_open(o->arena, o->key_dir, &err, &d);
		if (r != RES_OK && r != RES_NOTFOUND)
			return cli_fail(cli_status(r), "%s", err.text);
	}
	status = make_folder(o, path.ptr);
	return status == EX_OK ? make_key(o, &d, path.ptr) : status;
}

/* --- */

static int
run(struct key_options *o, const char *verb, int argc, char **argv)
{
	bool list = strcmp(verb, "list") == 0;
	int status = parse_options(argc, argv, o);
	if (status != EX_OK)
		return status;
	if (argc - optind != (list ? 0 : 1))
		return usage();
	if (!list)
		status = take_domain(o, argv[optind]);
	if (status == EX_OK)
		status = find_key_dir(o);
	if (status != EX_OK)
		return status;
	if (list)
		return print_keys(o, FORM_ROW);
	if (strcmp(verb, "dns") == 0)
		return print_keys(o, FORM_ZONE);
	return generate(o);
}

int
cmd_key(int argc, char **argv)
{
	static const char *const verbs[] = { "generate", "dns", "list" };
	struct key_options o = { .type = KEY_RSA, .bits = 2048 };
	for (size_t i = 0; argc > 1 && i < sizeof verbs / sizeof *verbs; i++) {
		if (strcmp(argv[1], verbs[i]) != 0)
			continue;
		o.arena = arena_new(0);
		if (o.arena == NULL)
			return EX_OSERR;
		int status = run(&o, argv[1], argc - 1, argv + 1);
		arena_free(&o.arena);
		return status;
	}
	return usage();
}
