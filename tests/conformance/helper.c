/* Runs one function of the engine on one case, for tests/conformance/run:
 * what the command line does not reach. Not installed.
 *
 *   helper KIND [--OPTION VALUE ...] [FILE ...]
 *
 * One JSON object goes to standard output (canonical octets go there raw).
 * Exit 0: evaluated, whatever the verdict; 64: usage; 65: the case cannot be
 * evaluated; 70: the engine failed. FILE is a message; "-" is standard input.
 *
 * Options of all kinds that need them:
 *   --zone FILE        zone file (dns/zone.h); without it every name is absent
 *   --clock SECONDS    time of evaluation; without it age is not judged
 *   --line-ends auto|crlf|lf   how FILE is read (mail/reader.h); auto
 *
 * dkim-verify [--body-length policy|accept|refuse] [--max-signatures N]
 *             [--min-rsa-bits N] FILE
 *   {"result":BEST,"signatures":[{"result","reason","d","s","i","a","b","h",
 *   "bits","testing","t","x","diagnosis"}...]} in header order; BEST is the
 *   best word: pass, policy, fail, temperror, permerror, neutral, none.
 * dkim-sign --key PEM --domain D --selector S [--header-canon simple|relaxed]
 *             [--body-canon simple|relaxed] [--headers A:B:C] [--oversign A:B]
 *             [--lifetime SECONDS] [--identity I] FILE
 *   {"field":VALUE,"h","bh","b"}; VALUE has CRLF folds. With --headers nothing
 *   is oversigned unless --oversign says so. Without --clock, t= is 0.
 *   {"refused":REASON} when the engine does not sign such a message.
 * dkim-body-hash --canon simple|relaxed [--length N] [--message] FILE...
 *   {"bh":BASE64,"length":CANONICAL_OCTETS} of the bytes of the files, pushed
 *   one after the other; with --message of the body of the one message FILE.
 * dkim-canon-body --canon simple|relaxed FILE...
 *   the canonical octets of the bytes of the files, raw; each file is a chunk.
 * dkim-canon-header --canon simple|relaxed FILE
 *   the canonical octets of the raw header fields in FILE, raw.
 * arc-verify FILE
 *   {"result","reason","instances","oldest_pass","temporary","sealed_fail"}
 * arc-sign --key PEM --domain D --selector S --authserv-id ID
 *             --results PAYLOAD [--headers A:B:C] FILE
 *   validates the chain with --zone, then seals: {"cv","ARC-Seal",
 *   "ARC-Message-Signature","ARC-Authentication-Results"}, each a value with
 *   CRLF folds; {"refused":REASON} when the chain must not be extended.
 *
 * Of helper_policy.c:
 * spf --ip IP [--helo NAME] [--from ADDRESS] [--identity mailfrom|helo]
 *   {"result","domain","reason","explanation","mechanism"}
 * dmarc --from A:B [--spf D=RESULT] [--dkim D=RESULT:D=RESULT]
 *             [--method treewalk|psl]
 *   {"result","reason","policy","org_domain","dkim_aligned","spf_aligned",
 *   "aligned_domain","has_record", and of a record "policy_tag",
 *   "record_domain", what dmarc-record gives}
 * dmarc-record FILE
 *   {"valid", "p","sp","np","bad_policy","testing","strict_dkim",
 *   "strict_spf","rua","ruf","text"} of the text of one record
 * dmarc-reports --domain D --receiver HOST
 *   {"result":"pass"|"fail"|"temperror"}: may reports about D go there?
 *
 * Of helper_mail.c:
 * from-domain FILE
 *   {"state","domains":[...]} of the value of a From field
 * authres [--mode strict|lenient] FILE
 *   {"valid","authserv_id","version","results":[...]} of a field's value
 * psl --domain NAME
 *   {"labels":N} of its organizational domain, 0 when there is none
 *
 * Of helper_mime.c:
 * mime FILE
 *   {"parts":[{"number","parent","depth","is_message","fields":[[NAME,
 *   DECODED]...],"body","type","charset","encoding","disposition","name",
 *   "filename","content_id","format","content"}...],"partial"} in document
 *   order; content is base64 of the decoded octets, text in UTF-8
 * charset --charset NAME FILE
 *   the text in UTF-8, raw
 * html FILE
 *   the text that is shown, raw
 */
#include "helper.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sysexits.h>
#include <unistd.h>

#include "auth/arc_seal.h"
#include "auth/arc_verify.h"
#include "auth/bodyhash.h"
#include "auth/dkim_sign.h"
#include "auth/dkim_verify.h"
#include "auth/result.h"
#include "base/codec.h"
#include "base/json.h"
#include "dns/zone.h"
#include "keys/keyring.h"
#include "mail/reader.h"
#include "mail/taglist.h"

#define MAX_FILE ((size_t)256 << 20)

static const char usage_text[] =
    "usage: helper KIND [--OPTION VALUE ...] FILE ...\n";

_Noreturn void
die(int status, const char *what, const char *detail)
{
	fprintf(stderr, "helper: %s%s%s\n", what, *detail != '\0' ? ": " : "",
	    detail);
	exit(status);
}

void
need(enum res r, const char *what)
{
	if (r != RES_OK)
		die(EX_SOFTWARE, what, res_text(r));
}

void *
have(void *p)
{
	if (p == NULL)
		die(EX_SOFTWARE, "memory", "");
	return p;
}

/* --- options ---------------------------------------------------------------
 * A flat list of "--name value"; each kind asks for what it knows. */
static bool
is_flag(const char *name)
{
	return strcmp(name, "message") == 0;
}

static void
options_read(struct options *o, int argc, char **argv)
{
	int i = 0;
	while (i < argc && strncmp(argv[i], "--", 2) == 0) {
		const char *name = argv[i++] + 2;
		const char *value = "";
		if (!is_flag(name)) {
			if (i == argc)
				die(EX_USAGE, "option without value", name);
			value = argv[i++];
		}
		if (o->count == MAX_OPTIONS)
			die(EX_USAGE, "too many options", "");
		o->names[o->count] = name;
		o->values[o->count++] = value;
	}
	o->files = argv + i;
	o->file_count = argc - i;
}

const char *
option(const struct options *o, const char *name)
{
	for (size_t i = 0; i < o->count; i++)
		if (strcmp(o->names[i], name) == 0)
			return o->values[i];
	return NULL;
}

const char *
option_needed(const struct options *o, const char *name)
{
	const char *v = option(o, name);
	if (v == NULL)
		die(EX_USAGE, "option needed", name);
	return v;
}

int64_t
option_number(const struct options *o, const char *name, int64_t fallback)
{
	const char *v = option(o, name);
	uint64_t n;
	if (v == NULL)
		return fallback;
	if (str_to_u64(str_c(v), INT64_MAX, &n) != RES_OK)
		die(EX_USAGE, "not a number", v);
	return (int64_t)n;
}

static enum canon
option_canon(const struct options *o, const char *name)
{
	const char *v = option(o, name);
	if (v == NULL || strcmp(v, "relaxed") == 0)
		return CANON_RELAXED;
	if (strcmp(v, "simple") != 0)
		die(EX_USAGE, "simple or relaxed", v);
	return CANON_SIMPLE;
}

/* "A:B:C" to an array. *out_count 0 and a non-NULL array for "". */
const struct str *
option_list(const struct options *o, const char *name, size_t *out_count)
{
	const char *v = option(o, name);
	*out_count = 0;
	if (v == NULL)
		return NULL;
	struct str *list =
	    have(arena_array(o->arena, strlen(v) + 1, sizeof *list));
	struct str rest = str_c(v), item;
	while (str_split(&rest, ':', &item))
		if (str_trim(item).len != 0)
			list[(*out_count)++] = str_trim(item);
	return list;
}

const char *
only_file(const struct options *o)
{
	if (o->file_count != 1)
		die(EX_USAGE, "one FILE", "");
	return o->files[0];
}

/* --- input ---------------------------------------------------------------- */
static void
free_buf(void *p)
{
	buf_done(p);
}

static void
free_resolver(void *p)
{
	struct resolver *r = p;
	resolver_free(&r);
}

static void
free_manifest(void *p)
{
	struct manifest *m = p;
	manifest_unref(&m);
}

static void
free_signer(void *p)
{
	struct signer *s = p;
	signer_free(&s);
}

struct str
file_read(struct arena *a, const char *path)
{
	int fd = strcmp(path, "-") == 0 ? STDIN_FILENO : open(path, O_RDONLY);
	if (fd < 0)
		die(EX_NOINPUT, path, strerror(errno));
	struct buf *b = have(ARENA_NEW(a, struct buf));
	buf_init(b, MAX_FILE);
	need(arena_on_free(a, free_buf, b), "arena");
	for (;;) {
		char *room = buf_reserve(b, 65536);
		if (room == NULL)
			die(EX_DATAERR, path, "too large");
		ssize_t n = read(fd, room, 65536);
		if (n < 0)
			die(EX_NOINPUT, path, strerror(errno));
		if (n == 0)
			break;
		b->len += (size_t)n;
	}
	if (fd != STDIN_FILENO)
		close(fd);
	return buf_str(b);
}

/* A message read so far that the kinds look at: the header whole, the body
 * pushed into the hashes that `begin` asked for. */
struct input {
	struct options *o;
	struct arena *a;
	struct header *header;
	struct bodyhash_set *hashes;
	struct sink *body;
	void (*begin)(struct input *in, void *context);
	void *context;
};

static enum res
input_end_of_header(void *context, struct header *h)
{
	struct input *in = context;
	in->header = h;
	in->begin(in, in->context);
	in->body = bodyhash_sink(in->hashes);
	return in->body != NULL ? RES_OK : RES_NOMEM;
}

static void
input_body(void *context, const char *bytes, size_t len)
{
	struct input *in = context;
	sink_push(in->body, bytes, len);
}

static void
input_run(struct input *in, const char *path)
{
	static const struct reader_ops ops = { input_end_of_header,
		input_body };
	const char *v = option(in->o, "line-ends");
	enum reader_line_ends ends = v == NULL || strcmp(v, "auto") == 0
	    ? READER_AUTO
	    : strcmp(v, "lf") == 0 ? READER_LF
				   : READER_CRLF;
	in->hashes = have(bodyhash_new(in->a));
	struct header *h = have(header_new(in->a, MAX_FILE));
	struct reader *r = have(reader_new(in->a, h, ends, &ops, in));
	struct str text = file_read(in->a, path);
	sink_push(reader_sink(r), text.ptr, text.len);
	need(sink_finish(reader_sink(r)), "reading the message");
	need(sink_finish(in->body), "hashing the body");
}

struct dns_session *
session_open(const struct options *o)
{
	static const struct dns_limits limits = { 5000000, 20000000, 0 };
	const char *path = option(o, "zone");
	struct err err = { "" };
	struct resolver *r;
	enum res res = path != NULL
	    ? zone_open(path, false, &err, &r)
	    : zone_from_text(STR(""), "empty", false, &err, &r);
	if (res != RES_OK)
		die(EX_DATAERR, "zone", err.text);
	need(arena_on_free(o->arena, free_resolver, r), "arena");
	return have(dns_session_new(o->arena, r, &limits));
}

static struct signer *
signer_open(const struct options *o, const struct signing_key **out_key)
{
	struct err err = { "" };
	struct str pem = file_read(o->arena, option_needed(o, "key"));
	struct privkey *key;
	struct signer *signer;
	if (privkey_from_pem(pem, "--key", &err, &key) != RES_OK)
		die(EX_DATAERR, "key", err.text);
	need(keyring_single(str_c(option_needed(o, "domain")),
		 str_c(option_needed(o, "selector")), &key, &signer),
	    "signer");
	need(arena_on_free(o->arena, free_signer, signer), "arena");
	struct manifest *m = have(signer->manifest(signer));
	need(arena_on_free(o->arena, free_manifest, m), "arena");
	*out_key = manifest_at(m, 0);
	return signer;
}

void
json_finish(struct buf *b)
{
	buf_add_char(b, '\n');
	if (b->error != RES_OK)
		die(EX_SOFTWARE, "output", res_text(b->error));
	(void)buf_write(b, stdout);
	buf_done(b);
}

static void
json_refused(const char *reason)
{
	struct buf b;
	struct json j;
	buf_init(&b, 4096);
	json_init(&j, &b);
	json_open(&j, '{');
	json_key_c(&j, "refused", reason);
	json_close(&j, '}');
	json_finish(&b);
}

/* --- dkim-verify ---------------------------------------------------------- */
static struct dkim_verify_options
verify_options(const struct options *o)
{
	struct dkim_verify_options v = {
		.max_signatures =
		    (unsigned)option_number(o, "max-signatures", 32),
		.min_rsa_bits =
		    (unsigned)option_number(o, "min-rsa-bits", 1024),
		.now_s = option_number(o, "clock", -1),
		.clock_skew_s = 300,
	};
	const char *l = option(o, "body-length");
	if (l != NULL && strcmp(l, "accept") == 0)
		v.body_length = BODY_LENGTH_ACCEPT;
	else if (l != NULL && strcmp(l, "refuse") == 0)
		v.body_length = BODY_LENGTH_REFUSE;
	return v;
}

struct verify_case {
	struct dkim_verify_options options;
	struct dns_session *dns;
	struct dkim_verify *dkim;
	struct arc_verify *arc;
};

static void
dkim_begin(struct input *in, void *context)
{
	struct verify_case *c = context;
	need(dkim_verify_begin(
		 in->a, in->header, &c->options, c->dns, in->hashes, &c->dkim),
	    "dkim_verify_begin");
}

/* The best of several results, as an overall word. */
static enum auth_result
best_of(const struct dkim_result *results, size_t count)
{
	static const enum auth_result order[] = { AUTH_PASS, AUTH_POLICY,
		AUTH_FAIL, AUTH_TEMPERROR, AUTH_PERMERROR, AUTH_NEUTRAL };
	for (size_t w = 0; w < sizeof order / sizeof *order; w++)
		for (size_t i = 0; i < count; i++)
			if (results[i].result == order[w])
				return order[w];
	return AUTH_NONE;
}

static void
json_signature(struct json *j, const struct dkim_result *r)
{
	json_open(j, '{');
	json_key_c(j, "result", auth_result_word(r->result));
	json_key_c(j, "reason", r->reason);
	json_key_str(j, "d", r->d);
	json_key_str(j, "s", r->s);
	json_key_str(j, "i", r->i);
	json_key_str(j, "a", r->a);
	json_key_str(j, "b", r->b);
	json_key_str(j, "h", r->h);
	json_key_int(j, "bits", r->key_bits);
	json_key_bool(j, "testing", r->testing);
	json_key_int(j, "t", r->signed_at);
	json_key_int(j, "x", r->expires_at);
	json_key_str(j, "diagnosis", r->diagnosis);
	json_close(j, '}');
}

static void
run_dkim_verify(struct options *o)
{
	struct verify_case c = { verify_options(o), session_open(o), NULL,
		NULL };
	struct input in = {
		.o = o, .a = o->arena, .begin = dkim_begin, .context = &c
	};
	input_run(&in, only_file(o));
	const struct dkim_result *results;
	size_t count;
	need(
	    dkim_verify_finish(c.dkim, &results, &count), "dkim_verify_finish");
	struct buf b;
	struct json j;
	buf_init(&b, MAX_FILE);
	json_init(&j, &b);
	json_open(&j, '{');
	json_key_c(&j, "result", auth_result_word(best_of(results, count)));
	json_key(&j, "signatures");
	json_open(&j, '[');
	for (size_t i = 0; i < count; i++)
		json_signature(&j, &results[i]);
	json_close(&j, ']');
	json_close(&j, '}');
	json_finish(&b);
}

/* --- dkim-sign ------------------------------------------------------------ */
struct sign_case {
	enum canon body_canon;
	size_t body_index;
};

static void
sign_begin(struct input *in, void *context)
{
	struct sign_case *c = context;
	need(bodyhash_want(
		 in->hashes, c->body_canon, BODYHASH_WHOLE, &c->body_index),
	    "bodyhash_want");
}

/* The value of tag `name`, without blanks, from a value with LF folds. */
static struct str
tag_of(struct arena *a, struct str value, const char *name)
{
	struct taglist tags;
	need(taglist_parse(value, false, &tags), "our own tag list");
	return taglist_strip(a, taglist_get(&tags, name));
}

static struct str
to_crlf(struct arena *a, struct str value)
{
	struct buf b;
	buf_init(&b, MAX_FILE);
	for (size_t i = 0; i < value.len; i++) {
		if (value.ptr[i] == '\n')
			buf_add_char(&b, '\r');
		buf_add_char(&b, value.ptr[i]);
	}
	struct str out = arena_dup(a, buf_str(&b));
	buf_done(&b);
	return out;
}

static void
run_dkim_sign(struct options *o)
{
	const struct signing_key *key;
	struct signer *signer = signer_open(o, &key);
	struct sign_case c = { option_canon(o, "body-canon"), 0 };
	struct input in = {
		.o = o, .a = o->arena, .begin = sign_begin, .context = &c
	};
	struct dkim_sign_options so = {
		.header_canon = option_canon(o, "header-canon"),
		.body_canon = c.body_canon,
		.now_s = option_number(o, "clock", 0),
		.lifetime_s = option_number(o, "lifetime", 0),
		.identity = str_c(option(o, "identity")),
	};
	so.headers = option_list(o, "headers", &so.header_count);
	so.oversign = option_list(o, "oversign", &so.oversign_count);
	if (so.headers != NULL && so.oversign == NULL)
		so.oversign = so.headers;
	input_run(&in, only_file(o));
	struct str value;
	enum res r = dkim_sign_field(o->arena, in.header, &so, in.hashes,
	    c.body_index, signer, key, &value);
	if (r == RES_INVALID) {
		json_refused("not one From field");
		return;
	}
	need(r, "dkim_sign_field");
	value = to_crlf(o->arena, value);
	struct buf b;
	struct json j;
	buf_init(&b, MAX_FILE);
	json_init(&j, &b);
	json_open(&j, '{');
	json_key_str(&j, "field", value);
	json_key_str(&j, "h", tag_of(o->arena, value, "h"));
	json_key_str(&j, "bh", tag_of(o->arena, value, "bh"));
	json_key_str(&j, "b", tag_of(o->arena, value, "b"));
	json_close(&j, '}');
	json_finish(&b);
}

/* --- canonical forms ------------------------------------------------------ */
static void
run_canon_body(struct options *o)
{
	struct buf b;
	buf_init(&b, MAX_FILE);
	struct sink *out = sink_buf(o->arena, &b);
	struct sink *s = canon_body(o->arena, option_canon(o, "canon"), out);
	for (int i = 0; i < o->file_count; i++) {
		struct str text = file_read(o->arena, o->files[i]);
		sink_push(s, text.ptr, text.len);
	}
	need(sink_finish(s), "canonicalizing");
	(void)buf_write(&b, stdout);
	buf_done(&b);
}

/* Where the field that begins at `at` ends, with its continuation lines. */
static size_t
field_end(struct str text, size_t at)
{
	for (;;) {
		size_t nl = str_chr(str_skip(text, at), '\n');
		if (nl == SIZE_MAX)
			return text.len;
		at += nl + 1;
		if (at >= text.len || !ascii_is_wsp(text.ptr[at]))
			return at;
	}
}

/* Cut here, not by the reader: the first line of a case may begin with
 * blanks, which no header that arrives does. */
static void
run_canon_header(struct options *o)
{
	struct buf b;
	buf_init(&b, MAX_FILE);
	struct sink *out = sink_buf(o->arena, &b);
	struct str text = file_read(o->arena, only_file(o));
	for (size_t at = 0; at < text.len;) {
		size_t end = field_end(text, at);
		struct str raw = str_sub(text, at, end - at);
		size_t colon = str_chr(raw, ':');
		if (colon == SIZE_MAX)
			die(EX_DATAERR, "a field without colon", "");
		struct field f = {
			.raw_name = str_sub(raw, 0, colon),
			.name = str_trim(str_sub(raw, 0, colon)),
			.value = str_skip(raw, colon + 1),
		};
		if (str_ends(f.value, STR("\r\n")))
			f.value.len -= 2;
		canon_field(option_canon(o, "canon"), &f, out);
		at = end;
	}
	need(sink_finish(out), "canonicalizing");
	(void)buf_write(&b, stdout);
	buf_done(&b);
}

struct hash_case {
	enum canon canon;
	uint64_t length;
	size_t index;
};

static void
hash_begin(struct input *in, void *context)
{
	struct hash_case *c = context;
	need(bodyhash_want(in->hashes, c->canon, c->length, &c->index),
	    "bodyhash_want");
}

static void
run_body_hash(struct options *o)
{
	struct hash_case c = { option_canon(o, "canon"), BODYHASH_WHOLE, 0 };
	if (option(o, "length") != NULL)
		c.length = (uint64_t)option_number(o, "length", 0);
	struct input in = {
		.o = o, .a = o->arena, .begin = hash_begin, .context = &c
	};
	if (option(o, "message") != NULL) {
		input_run(&in, only_file(o));
	} else {
		in.hashes = have(bodyhash_new(in.a));
		hash_begin(&in, &c);
		struct sink *s = have(bodyhash_sink(in.hashes));
		for (int i = 0; i < o->file_count; i++) {
			struct str text = file_read(o->arena, o->files[i]);
			sink_push(s, text.ptr, text.len);
		}
		need(sink_finish(s), "hashing");
	}
	struct buf bh, b;
	struct json j;
	buf_init(&bh, 100);
	base64_encode(&bh, bodyhash_digest(in.hashes, c.index), 32);
	buf_init(&b, 4096);
	json_init(&j, &b);
	json_open(&j, '{');
	json_key_str(&j, "bh", buf_str(&bh));
	json_key_int(&j, "length",
	    (int64_t)bodyhash_canonical_length(in.hashes, c.index));
	json_close(&j, '}');
	json_finish(&b);
	buf_done(&bh);
}

/* --- ARC ------------------------------------------------------------------ */
static void
arc_begin(struct input *in, void *context)
{
	struct verify_case *c = context;
	need(arc_verify_begin(
		 in->a, in->header, &c->options, c->dns, in->hashes, &c->arc),
	    "arc_verify_begin");
}

static void
run_arc_verify(struct options *o)
{
	struct verify_case c = { verify_options(o), session_open(o), NULL,
		NULL };
	struct input in = {
		.o = o, .a = o->arena, .begin = arc_begin, .context = &c
	};
	input_run(&in, only_file(o));
	struct arc_result r;
	need(arc_verify_finish(c.arc, &r), "arc_verify_finish");
	struct buf b;
	struct json j;
	buf_init(&b, 65536);
	json_init(&j, &b);
	json_open(&j, '{');
	json_key_c(&j, "result", auth_result_word(r.result));
	json_key_c(&j, "reason", r.reason);
	json_key_int(&j, "instances", r.instances);
	json_key_int(&j, "oldest_pass", r.oldest_pass);
	json_key_bool(&j, "temporary", r.temporary);
	json_key_bool(&j, "sealed_fail", r.sealed_fail);
	json_close(&j, '}');
	json_finish(&b);
}

struct seal_case {
	struct verify_case verify;
	struct sign_case sign;
};

static void
seal_begin(struct input *in, void *context)
{
	struct seal_case *c = context;
	arc_begin(in, &c->verify);
	sign_begin(in, &c->sign);
}

static void
run_arc_sign(struct options *o)
{
	const struct signing_key *key;
	struct signer *signer = signer_open(o, &key);
	struct seal_case c = {
		{ verify_options(o), session_open(o), NULL, NULL },
		{ CANON_RELAXED, 0 },
	};
	/* The time of sealing, not one to judge old signatures by. */
	c.verify.options.now_s = -1;
	struct input in = {
		.o = o, .a = o->arena, .begin = seal_begin, .context = &c
	};
	input_run(&in, only_file(o));
	struct arc_result chain;
	need(arc_verify_finish(c.verify.arc, &chain), "arc_verify_finish");
	struct arc_seal_options so = {
		.authserv_id = str_c(option_needed(o, "authserv-id")),
		.results = str_c(option_needed(o, "results")),
		.now_s = option_number(o, "clock", 0),
		.header_canon = CANON_RELAXED,
		.body_canon = CANON_RELAXED,
	};
	so.headers = option_list(o, "headers", &so.header_count);
	struct str aar, ams, as;
	enum res r = arc_seal_fields(o->arena, in.header, &chain, &so,
	    in.hashes, c.sign.body_index, signer, key, &aar, &ams, &as);
	if (r == RES_INVALID) {
		json_refused("the chain must not be extended");
		return;
	}
	need(r, "arc_seal_fields");
	struct buf b;
	struct json j;
	buf_init(&b, MAX_FILE);
	json_init(&j, &b);
	json_open(&j, '{');
	json_key_str(&j, "cv",
	    tag_of(o->arena, to_crlf(o->arena, as), "cv"));
	json_key_str(&j, "ARC-Seal", to_crlf(o->arena, as));
	json_key_str(&j, "ARC-Message-Signature", to_crlf(o->arena, ams));
	json_key_str(&j, "ARC-Authentication-Results", to_crlf(o->arena, aar));
	json_close(&j, '}');
	json_finish(&b);
}

static const struct {
	const char *kind;
	void (*run)(struct options *o);
} kinds[] = {
	{ "dkim-verify", run_dkim_verify },
	{ "dkim-sign", run_dkim_sign },
	{ "dkim-body-hash", run_body_hash },
	{ "dkim-canon-body", run_canon_body },
	{ "dkim-canon-header", run_canon_header },
	{ "arc-verify", run_arc_verify },
	{ "arc-sign", run_arc_sign },
	{ "spf", run_spf },
	{ "dmarc", run_dmarc },
	{ "dmarc-record", run_dmarc_record },
	{ "dmarc-reports", run_dmarc_reports },
	{ "from-domain", run_from_domain },
	{ "authres", run_authres },
	{ "psl", run_psl },
	{ "mime", run_mime },
	{ "charset", run_charset },
	{ "html", run_html },
	{ "mbox", run_mbox },
};

int
main(int argc, char **argv)
{
	struct options o = { 0 };
	if (argc < 2)
		die(EX_USAGE, usage_text, "");
	o.arena = have(arena_new((size_t)1 << 30));
	options_read(&o, argc - 2, argv + 2);
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
		if (strcmp(argv[1], kinds[i].kind) == 0) {
			kinds[i].run(&o);
			arena_free(&o.arena);
			return fflush(stdout) == 0 ? EX_OK : EX_IOERR;
		}
	die(EX_USAGE, "unknown kind", argv[1]);
}
