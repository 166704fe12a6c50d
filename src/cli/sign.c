/* hanaper sign: put DKIM signatures on message files. Reads private keys
 * itself, as the user who runs it. The body is read twice (hash, then copy),
 * so standard input goes through an unlinked temporary file; memory stays
 * constant. */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include "auth/dkim_sign.h"
#include "base/clock.h"
#include "base/json.h"
#include "cli/cli.h"
#include "flow/file.h"
#include "flow/keyfiles.h"
#include "keys/keyring.h"
#include "mail/address.h"
#include "mail/domain.h"
#include "mail/reader.h"

#define USAGE                                                             \
	"[-c CONFIG] [-o NAME=VALUE] [--domain D] [--selector S]\n"       \
	"       [--key FILE] [--headers LIST] [--canonicalization H/B]\n" \
	"       [--identity I] [--clock SECONDS] [--field | --json] [FILE ...]"

#define CHUNK       65536
#define MAX_HEADERS 200
#define MAX_SIGNATURES 8
#define MAX_JSON       ((size_t)1 << 20) /* of one object */

struct sign {
	struct cli_settings settings;
	const char *domain, *selector, *key, *headers, *canon, *identity, *clock;
	bool field_only, json;
	struct config *config;
	struct arena *arena;      /* of the command */
	struct signer *signer;
	struct dkim_sign_options options;
};

/* One file under way. */
struct job {
	struct sign *sign;
	struct arena *arena;
	struct header *header;
	struct bodyhash_set *hashes;
	struct sink *body;
	size_t body_index;
};

static const struct option options[] = {
	{ "domain", required_argument, NULL, 'd' },
	{ "selector", required_argument, NULL, 's' },
	{ "key", required_argument, NULL, 'k' },
	{ "headers", required_argument, NULL, 'h' },
	{ "canonicalization", required_argument, NULL, 'C' },
	{ "identity", required_argument, NULL, 'i' },
	{ "clock", required_argument, NULL, 't' },
	{ "field", no_argument, NULL, 'f' },
	{ "json", no_argument, NULL, 'j' },
	{ NULL, 0, NULL, 0 },
};

static int
parse_options(struct sign *s, int argc, char **argv)
{
	int c;
	while ((c = getopt_long(argc, argv, "c:o:", options, NULL)) != -1) {
		switch (c) {
		case 'c':
			s->settings.path = optarg;
			break;
		case 'o':
			if (!cli_settings_add(&s->settings, optarg))
				return cli_fail(EX_USAGE,
				    "-o %s: not NAME=VALUE", optarg);
			break;
		case 'd':
			s->domain = optarg;
			break;
		case 's':
			s->selector = optarg;
			break;
		case 'k':
			s->key = optarg;
			break;
		case 'h':
			s->headers = optarg;
			break;
		case 'C':
			s->canon = optarg;
			break;
		case 'i':
			s->identity = optarg;
			break;
		case 't':
			s->clock = optarg;
			break;
		case 'f':
			s->field_only = true;
			break;
		case 'j':
			s->json = true;
			break;
		default:
			return cli_usage("sign", USAGE);
		}
	}
	if (s->key != NULL && (s->domain == NULL || s->selector == NULL))
		return cli_fail(EX_USAGE, "--key also wants --domain and "
		    "--selector: they say where the public key stands");
	return EX_OK;
}

/* --- preparing --------------------------------------------------------------- */

static bool
canon_word(struct str word, enum canon *out)
{
	*out = str_eq(word, STR("relaxed")) ? CANON_RELAXED : CANON_SIMPLE;
	return str_eq(word, STR("relaxed")) || str_eq(word, STR("simple"));
}

static int
set_canon(struct sign *s)
{
	struct str rest = str_c(s->canon), part;
	s->options.header_canon =
	    s->config->header_relaxed ? CANON_RELAXED : CANON_SIMPLE;
	s->options.body_canon =
	    s->config->body_relaxed ? CANON_RELAXED : CANON_SIMPLE;
	if (s->canon == NULL)
		return EX_OK;
	bool good = str_split(&rest, '/', &part) &&
	    canon_word(part, &s->options.header_canon);
	s->options.body_canon = CANON_SIMPLE;
	if (good && rest.ptr != NULL)
		good = canon_word(rest, &s->options.body_canon);
	return good ? EX_OK : cli_fail(EX_USAGE, "--canonicalization %s: use "
	    "simple or relaxed, header/body", s->canon);
}

static int
set_headers(struct sign *s)
{
	static const struct str nothing = { "", 0 };
	if (s->headers == NULL) {
		s->options.headers = s->config->sign_headers.items;
		s->options.header_count = s->config->sign_headers.count;
		s->options.oversign = s->config->oversign.items;
		s->options.oversign_count = s->config->oversign.count;
		return EX_OK;
	}
	struct str *list = arena_array(s->arena, MAX_HEADERS, sizeof *list);
	struct str rest = str_c(s->headers), name;
	size_t n = 0;
	if (list == NULL)
		return cli_fail(EX_OSERR, "out of memory");
	while (str_split(&rest, ':', &name)) {
		name = str_trim(name);
		if (n == MAX_HEADERS || !header_name_valid(name))
			return cli_fail(EX_USAGE, "--headers %s: a list of "
			    "field names with ':' between", s->headers);
		list[n++] = arena_lower(s->arena, name);
	}
	s->options.headers = list;
	s->options.header_count = n;
	/* exactly what was asked for: a name given twice is oversigned */
	s->options.oversign = &nothing;
	s->options.oversign_count = 0;
	return EX_OK;
}

static int
set_clock(struct sign *s)
{
	uint64_t seconds;
	struct clock clock = CLOCK_SYSTEM;
	s->options.now_s = clock_now_s(&clock);
	s->options.lifetime_s = s->config->signature_lifetime_s;
	if (s->clock == NULL)
		return EX_OK;
	if (str_to_u64(str_c(s->clock), 999999999999, &seconds) != RES_OK)
		return cli_fail(EX_USAGE,
		    "--clock %s: give seconds since 1970", s->clock);
	s->options.now_s = (int64_t)seconds;
	return EX_OK;
}

static int
load_key_file(struct sign *s)
{
	char pem[PRIVKEY_MAX_FILE];
	struct err err = { "" };
	struct privkey *key = NULL;
	struct str domain;
	if (domain_normalize(s->arena, str_c(s->domain), &domain) != RES_OK)
		return cli_fail(
		    EX_USAGE, "--domain %s: not a domain name", s->domain);
	int fd = open(s->key, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd >= 0 ? read(fd, pem, sizeof pem) : -1;
	int saved = errno;
	if (fd >= 0)
		close(fd);
	if (n < 0)
		return cli_fail(saved == EACCES ? EX_NOPERM : EX_NOINPUT,
		    "%s: %s", s->key, strerror(saved));
	enum res r = privkey_from_pem(
	    str_of(pem, (size_t)n), s->key, &err, &key);
	explicit_bzero(pem, sizeof pem);
	if (r == RES_OK)
		r = keyring_single(
		    domain, str_c(s->selector), &key, &s->signer);
	if (r == RES_OK)
		return EX_OK;
	return cli_fail(cli_status(r), "%s",
	    err.text[0] != '\0' ? err.text : res_text(r));
}

static int
load_key_dir(struct sign *s)
{
	struct err err = { "" };
	struct keydir dir;
	enum res r =
	    keydir_open(s->arena, s->config->key_dir.ptr, &err, &dir);
	if (r == RES_OK)
		r = keyfiles_add_table(s->config, s->arena, &err, &dir);
	if (r == RES_OK)
		r = keyring_from_keydir(&dir, &err, &s->signer);
	if (r == RES_OK)
		return EX_OK;
	return cli_fail(r == RES_NOTFOUND ? EX_CONFIG : cli_status(r), "%s",
	    err.text[0] != '\0' ? err.text : res_text(r));
}

static int
prepare(struct sign *s)
{
	int status = EX_OK;
	s->arena = arena_new(0);
	if (s->arena == NULL)
		return cli_fail(EX_OSERR, "out of memory");
	s->config = cli_settings_load(&s->settings, &status);
	if (s->config == NULL)
		return status;
	s->options.identity = str_c(s->identity);
	status = set_canon(s);
	if (status == EX_OK)
		status = set_headers(s);
	if (status == EX_OK)
		status = set_clock(s);
	if (status == EX_OK)
		status = s->key != NULL ? load_key_file(s) : load_key_dir(s);
	return status;
}

/* --- one message ----------------------------------------------------------- */

static enum res
end_of_header(void *context, struct header *h)
{
	(void)h;
	struct job *j = context;
	enum res r = bodyhash_want(j->hashes, j->sign->options.body_canon,
	    BODYHASH_WHOLE, &j->body_index);
	if (r != RES_OK)
		return r;
	j->body = bodyhash_sink(j->hashes);
	return j->body != NULL ? RES_OK : RES_NOMEM;
}

static void
body(void *context, const char *bytes, size_t len)
{
	struct job *j = context;
	if (j->body != NULL)
		sink_push(j->body, bytes, len);
}

static enum res
hash_file(struct job *j, int fd, bool *out_lf)
{
	static const struct reader_ops ops = { end_of_header, body };
	struct reader *r =
	    reader_new(j->arena, j->header, READER_AUTO, &ops, j);
	if (r == NULL)
		return RES_NOMEM;
	enum res result = file_push(reader_sink(r), fd);
	if (result == RES_OK)
		result = sink_finish(reader_sink(r));
	if (result == RES_OK && j->body == NULL)
		result = end_of_header(j, j->header);
	if (result == RES_OK)
		result = sink_finish(j->body);
	*out_lf = reader_was_lf(r);
	return result;
}

/* The domain asked for, or that of the author. */
static enum res
signing_domain(struct job *j, struct err *err, struct str *out)
{
	struct from_domains from;
	if (j->sign->domain != NULL) {
		if (domain_normalize(j->arena, str_c(j->sign->domain), out) ==
		    RES_OK)
			return RES_OK;
		err_set(err, "--domain %s: not a domain name", j->sign->domain);
		return RES_INVALID;
	}
	enum res r = address_from_domains(j->arena, j->header, &from);
	if (r != RES_OK)
		return r;
	if (from.state != FROM_OK) {
		err_set(err, "not signed: %s; give --domain",
		    from_state_text(from.state));
		return RES_SYNTAX;
	}
	*out = from.domains[0];
	return RES_OK;
}

static void
print_field(struct str value, bool lf)
{
	fputs("DKIM-Signature:", stdout);
	for (size_t i = 0; i < value.len; i++) {
		if (value.ptr[i] == '\n' && !lf)
			putchar('\r');
		putchar(value.ptr[i]);
	}
	fputs(lf ? "\n" : "\r\n", stdout);
}

/* One object a line; the fields as they are in mail. */
static enum res
print_json(const char *file, const struct str *values, size_t count,
    const char *error)
{
	struct buf out, field;
	struct json j;
	buf_init(&out, MAX_JSON);
	buf_init(&field, MAX_JSON);
	json_init(&j, &out);
	json_open(&j, '{');
	json_key_c(&j, "file", file);
	json_key(&j, "fields");
	json_open(&j, '[');
	for (size_t i = 0; i < count; i++) {
		buf_reset(&field);
		buf_add_c(&field, "DKIM-Signature:");
		for (size_t k = 0; k < values[i].len; k++)
			buf_addf(&field, "%s%c",
			    values[i].ptr[k] == '\n' ? "\r" : "",
			    values[i].ptr[k]);
		json_str(&j, buf_str(&field));
	}
	json_close(&j, ']');
	json_key_c(&j, "error", error);
	json_close(&j, '}');
	printf("%.*s\n", (int)out.len, out.ptr);
	enum res r = field.error != RES_OK ? field.error : out.error;
	buf_done(&field);
	buf_done(&out);
	return r;
}

static enum res
sign_with_all(struct job *j, struct err *err, struct str *values,
    size_t *out_count)
{
	struct str domain;
	size_t count, made = 0;
	enum res r = signing_domain(j, err, &domain);
	if (r != RES_OK)
		return r;
	struct manifest *m = j->sign->signer->manifest(j->sign->signer);
	const struct signing_key *keys = manifest_find(m, domain, &count);
	for (size_t i = 0; i < count && made < MAX_SIGNATURES && r == RES_OK;
	     i++) {
		if (j->sign->selector != NULL ?
			!str_eq(keys[i].selector, str_c(j->sign->selector)) :
			keys[i].by_rule)
			continue;
		r = dkim_sign_field(j->arena, j->header, &j->sign->options,
		    j->hashes, j->body_index, j->sign->signer, &keys[i],
		    &values[made]);
		if (r == RES_OK)
			made++;
	}
	if (r == RES_INVALID)
		err_set(err, "not signed: the message has no From field");
	if (r == RES_OK && made == 0) {
		err_set(err, "no key for %.*s%s%s: `hanaper key list` shows "
		    "those there are", STR_ARG(domain),
		    j->sign->selector != NULL ? " with selector " : "",
		    j->sign->selector != NULL ? j->sign->selector : "");
		r = RES_NOTFOUND;
	}
	manifest_unref(&m);
	*out_count = made;
	return r;
}

/* An mbox "From " line stays in front of all. */
static void
copy_from_line(FILE *in)
{
	char *line = NULL;
	size_t cap = 0;
	ssize_t n = getline(&line, &cap, in);
	if (n >= 5 && memcmp(line, "From ", 5) == 0)
		fwrite(line, 1, (size_t)n, stdout);
	else
		rewind(in);
	free(line);
}

static enum res
copy_message(FILE *in, const struct str *values, size_t count, bool lf)
{
	char chunk[CHUNK];
	size_t n;
	rewind(in);
	int first = getc(in);
	rewind(in);
	if (first == 'F')
		copy_from_line(in);
	for (size_t i = 0; i < count; i++)
		print_field(values[i], lf);
	while ((n = fread(chunk, 1, sizeof chunk, in)) > 0)
		fwrite(chunk, 1, n, stdout);
	return ferror(in) ? RES_IO : RES_OK;
}

/* A seekable stream of the file: itself, or a copy. */
static FILE *
open_input(const char *file)
{
	bool standard = strcmp(file, "-") == 0;
	FILE *in = standard ? stdin : fopen(file, "re");
	if (in == NULL || lseek(fileno(in), 0, SEEK_CUR) >= 0)
		return in;
	char chunk[CHUNK];
	size_t n;
	FILE *copy = tmpfile();
	while (copy != NULL && (n = fread(chunk, 1, sizeof chunk, in)) > 0)
		if (fwrite(chunk, 1, n, copy) != n) {
			fclose(copy);
			copy = NULL;
		}
	if (copy != NULL && (ferror(in) || fflush(copy) != 0)) {
		fclose(copy);
		copy = NULL;
	}
	if (copy != NULL)
		rewind(copy);
	if (!standard)
		fclose(in);
	return copy;
}

static int
file_failed(
    const struct sign *s, int status, const char *file, const char *why)
{
	if (s->json)
		(void)print_json(file, NULL, 0, why);
	return cli_fail(status, "%s: %s", file, why);
}

static int
sign_file(struct sign *s, const char *file)
{
	struct err err = { "" };
	struct str values[MAX_SIGNATURES];
	size_t count = 0;
	bool lf = false;
	FILE *in = open_input(file);
	if (in == NULL)
		return file_failed(s, errno == EACCES ? EX_NOPERM : EX_NOINPUT,
		    file, strerror(errno));
	struct job j = { .sign = s, .arena = arena_new(0) };
	if (j.arena != NULL) {
		j.header = header_new(j.arena, 0);
		j.hashes = bodyhash_new(j.arena);
	}
	enum res r = j.header != NULL && j.hashes != NULL ?
	    hash_file(&j, fileno(in), &lf) : RES_NOMEM;
	if (r == RES_OK)
		r = sign_with_all(&j, &err, values, &count);
	if (r == RES_OK && s->json)
		r = print_json(file, values, count, NULL);
	else if (r == RES_OK && !s->field_only)
		r = copy_message(in, values, count, lf);
	for (size_t i = 0;
	     r == RES_OK && s->field_only && !s->json && i < count; i++)
		print_field(values[i], lf);
	int status = cli_status(r);
	if (r != RES_OK)
		file_failed(s, status, file, err.text[0] != '\0' ? err.text :
			r == RES_IO ? strerror(errno) : res_text(r));
	arena_free(&j.arena);
	if (in != stdin)
		fclose(in);
	return status;
}

int
cmd_sign(int argc, char **argv)
{
	struct sign s = { .settings = { .path = NULL } };
	int status = parse_options(&s, argc, argv);
	if (status == EX_OK)
		status = prepare(&s);
	if (status == EX_OK && optind == argc)
		status = sign_file(&s, "-");
	else if (status == EX_OK)
		for (int i = optind; i < argc; i++) {
			/* the others are signed all the same */
			int one = sign_file(&s, argv[i]);
			if (one > status)
				status = one;
		}
	signer_free(&s.signer);
	config_unref(&s.config);
	arena_free(&s.arena);
	return status;
}
