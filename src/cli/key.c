/* hanaper key: its arguments; list what is there, say what to publish. */
#include <getopt.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <sysexits.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/codec.h"
#include "base/json.h"
#include "cli/key.h"
#include "flow/keyfiles.h"
#include "mail/domain.h"

#define MAX_RECORD  4096 /* the text of one record */
#define MAX_SECONDS ((uint64_t)1 << 40)
#define MAX_STRING  255  /* of a TXT record: RFC 1035 §3.3 */
#define DEFAULT_WAIT_S 3600 /* until who found no record asks again */

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
	      "       hanaper key check [--zone FILE] [--json] [DOMAIN]\n"
	      "       hanaper key rotate [--type T] [--zone FILE] [--wait TIME]"
	      "\n               [--age TIME] [--prune] [--clock SECONDS] "
	      "DOMAIN\n"
	      "       each with [--key-dir DIR] [-c FILE] [-o NAME=VALUE]\n",
	    stderr);
	return EX_USAGE;
}

/* "90", "90s", "15m", "1h", "30d". */
static bool
parse_seconds(const char *word, int64_t *out)
{
	static const struct {
		char unit;
		int64_t seconds;
	} units[] = { { 's', 1 }, { 'm', 60 }, { 'h', 3600 },
		{ 'd', 86400 }, { 'w', 604800 } };
	struct str text = str_c(word);
	int64_t factor = 1;
	uint64_t n;
	for (size_t i = 0; i < sizeof units / sizeof *units; i++)
		if (text.len > 0 && text.ptr[text.len - 1] == units[i].unit) {
			factor = units[i].seconds;
			text.len--;
			break;
		}
	if (str_to_u64(text, MAX_SECONDS / (uint64_t)factor, &n) != RES_OK)
		return false;
	*out = (int64_t)n * factor;
	return true;
}

static const struct option names[] = {
	{ "selector", required_argument, NULL, 's' },
	{ "type", required_argument, NULL, 't' },
	{ "key-dir", required_argument, NULL, 'k' },
	{ "json", no_argument, NULL, 'j' },
	{ "zone", required_argument, NULL, 'z' },
	{ "wait", required_argument, NULL, 'w' },
	{ "age", required_argument, NULL, 'a' },
	{ "prune", no_argument, NULL, 'p' },
	{ "clock", required_argument, NULL, 'C' },
	{ NULL, 0, NULL, 0 },
};

static int
take_option(struct key_options *o, int c, const char *value)
{
	bool good = true;
	switch (c) {
	case 'c':
		o->settings.path = value;
		break;
	case 'o':
		if (!cli_settings_add(&o->settings, value))
			return cli_fail(EX_USAGE, "-o wants NAME=VALUE, "
			    "not %s", value);
		break;
	case 's':
		o->selector = value;
		break;
	case 't':
		if (!find_type(value, o))
			return cli_fail(EX_USAGE, "no key type \"%s\": "
			    "rsa2048, rsa4096 or ed25519", value);
		o->has_type = true;
		break;
	case 'k':
		o->key_dir = value;
		break;
	case 'j':
		o->json = true;
		break;
	case 'z':
		o->zone = value;
		break;
	case 'w':
		good = parse_seconds(value, &o->wait_s);
		break;
	case 'a':
		good = parse_seconds(value, &o->age_s);
		break;
	case 'C':
		good = parse_seconds(value, &o->now_s);
		break;
	case 'p':
		o->prune = true;
		break;
	default:
		return usage();
	}
	return good ? EX_OK : cli_fail(EX_USAGE, "\"%s\" is no time: a number "
	    "with s, m, h, d or w", value);
}

/* `letters` are those the verb has a use for. */
static int
parse_options(int argc, char **argv, const char *letters,
    struct key_options *o)
{
	int c, status = EX_OK;
	opterr = 0; /* its messages do not begin with our name */
	while (status == EX_OK &&
	    (c = getopt_long(argc, argv, "c:o:", names, NULL)) != -1)
		status = strchr(letters, c) != NULL ?
		    take_option(o, c, optarg) : usage();
	return status;
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
find_key_dir(struct key_options *o, bool wants_config)
{
	int status = EX_OK;
	o->uid = KEY_NO_ID;
	o->gid = (gid_t)-1;
	o->has_key_dir = o->key_dir != NULL;
	if (o->has_key_dir && !wants_config)
		return EX_OK;
	o->config = cli_settings_load(&o->settings, &status);
	if (o->config == NULL || o->has_key_dir)
		return status;
	o->key_dir = o->config->key_dir.ptr;
	const struct passwd *p =
	    geteuid() == 0 ? getpwnam(o->config->user.ptr) : NULL;
	if (p != NULL) {
		o->uid = 0; /* the daemon's user reads through its group */
		o->gid = p->pw_gid;
	}
	return EX_OK;
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

int
key_print(const struct key_options *o, const struct keyfile *f,
    enum key_form form)
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
	else if (form == KEY_FORM_ZONE)
		print_zone_line(f, buf_str(&text));
	else
		print_row(f, k);
	privkey_free(&k);
	buf_done(&text);
	return EX_OK;
}

/* --- list, dns --- */

int
key_open(const struct key_options *o, struct keydir *out)
{
	struct err err = { "" };
	struct keydir d;
	enum res r = keydir_open(o->arena, o->key_dir, &err, &d);
	if (r == RES_OK && !o->has_key_dir)
		r = keyfiles_add_table(o->config, o->arena, &err, &d);
	if (r != RES_OK)
		return cli_fail(cli_status(r), "%s",
		    err.text[0] != '\0' ? err.text : res_text(r));
	size_t kept = 0;
	for (size_t i = 0; i < d.count; i++)
		if (o->domain.len == 0 ||
		    str_eq(d.files[i].domain, o->domain))
			d.files[kept++] = d.files[i];
	d.count = kept;
	if (o->domain.len > 0 && kept == 0)
		return cli_fail(EX_NOINPUT, "%s has no key for %.*s; make one "
		    "with: hanaper key generate %.*s", o->key_dir,
		    STR_ARG(o->domain), STR_ARG(o->domain));
	*out = d;
	return EX_OK;
}

static int
print_keys(const struct key_options *o, enum key_form form)
{
	struct keydir d;
	int status = key_open(o, &d);
	for (size_t i = 0; status == EX_OK && i < d.count; i++)
		status = key_print(o, &d.files[i], form);
	return status;
}

static int
key_list(struct key_options *o)
{
	return print_keys(o, KEY_FORM_ROW);
}

static int
key_dns(struct key_options *o)
{
	return print_keys(o, KEY_FORM_ZONE);
}

/* --- verbs --- */

static const struct verb {
	const char *name;
	int (*run)(struct key_options *o);
	int min_domains, max_domains;
	bool wants_config; /* also with --key-dir */
	const char *letters;
} verbs[] = {
	{ "generate", key_generate, 1, 1, false, "cokst" },
	{ "dns", key_dns, 1, 1, false, "cokj" },
	{ "list", key_list, 0, 0, false, "cokj" },
	{ "check", key_check, 0, 1, true, "cokjzC" },
	{ "rotate", key_rotate, 1, 1, true, "coktzwapC" },
};

static int
run(const struct verb *v, struct key_options *o, int argc, char **argv)
{
	int status = parse_options(argc, argv, v->letters, o);
	if (status != EX_OK)
		return status;
	int domains = argc - optind;
	if (domains < v->min_domains || domains > v->max_domains)
		return usage();
	if (domains > 0)
		status = take_domain(o, argv[optind]);
	if (status == EX_OK)
		status = find_key_dir(o, v->wants_config);
	return status == EX_OK ? v->run(o) : status;
}

int
cmd_key(int argc, char **argv)
{
	struct key_options o = { .type = KEY_RSA, .bits = 2048,
		.wait_s = DEFAULT_WAIT_S,
		.now_s = clock_now_s(&CLOCK_SYSTEM) };
	for (size_t i = 0; argc > 1 && i < sizeof verbs / sizeof *verbs; i++) {
		if (strcmp(argv[1], verbs[i].name) != 0)
			continue;
		o.arena = arena_new(0);
		if (o.arena == NULL)
			return EX_OSERR;
		int status = run(&verbs[i], &o, argc - 1, argv + 1);
		config_unref(&o.config);
		arena_free(&o.arena);
		return status;
	}
	return usage();
}
