/* hanaper archive prove: proofs out of the store, and checking them without
 * it. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include "archive/proof/proof.h"
#include "base/codec.h"
#include "cli/archive.h"
#include "flow/file.h"
#include "keys/digest.h"

#define USAGE                                                            \
	"prove " ARCHIVE_PLACE_USAGE "\n"                                \
	"       [--without-envelope] [--note FILE] ID\n"                 \
	"   or: hanaper archive prove " ARCHIVE_PLACE_USAGE "\n"         \
	"       --consistency NOTE NOTE\n"                               \
	"   or: hanaper archive prove --check FILE [--key KEY]\n"        \
	"       [--note FILE] [--message FILE]"

#define MAX_KEYS   8
#define MAX_OUTPUT (PROOF_MAX_TEXT + 4096)

struct prove {
	struct archive_place place;
	struct arena *a;
	bool without_envelope, consistency;
	const char *check, *note, *message;
	struct note_key keys[MAX_KEYS];
	size_t key_count;
};

static const struct option options[] = {
	ARCHIVE_PLACE_LONG,
	{ "without-envelope", no_argument, NULL, 'e' },
	{ "consistency", no_argument, NULL, 'C' },
	{ "check", required_argument, NULL, 'k' },
	{ "key", required_argument, NULL, 'K' },
	{ "note", required_argument, NULL, 'n' },
	{ "message", required_argument, NULL, 'm' },
	{ NULL, 0, NULL, 0 },
};

/* --- files --- */

static int
read_text(struct prove *p, const char *file, struct str *out)
{
	bool standard = strcmp(file, "-") == 0;
	int fd = standard ? STDIN_FILENO : open(file, O_RDONLY | O_CLOEXEC);
	struct buf b;
	int status = EX_OK;
	buf_init(&b, PROOF_MAX_TEXT);
	enum res r = fd >= 0 ? buf_read(&b, fd) : RES_IO;
	if (r == RES_IO)
		status = cli_fail(errno == ENOENT ? EX_NOINPUT : EX_IOERR,
		    "%s: %s", file, strerror(errno));
	else if (r != RES_OK)
		status = cli_fail(EX_DATAERR, "%s: %s", file, res_text(r));
	if (fd >= 0 && !standard)
		close(fd);
	if (status == EX_OK) {
		*out = arena_dup(p->a, buf_str(&b));
		if (out->ptr == NULL)
			status = cli_fail(EX_OSERR, "out of memory");
	}
	buf_done(&b);
	return status;
}

/* The checkpoint in a file, or the last one of several. */
static int
read_note(struct prove *p, const char *file, struct str *out)
{
	struct str text, bytes;
	int status = read_text(p, file, &text);
	if (status != EX_OK)
		return status;
	*out = STR_EMPTY;
	while (checkpoints_next(&text, &bytes)) {
		struct note n;
		if (note_open(bytes, &n) != RES_OK)
			return cli_fail(EX_DATAERR, "%s: no signed note", file);
		*out = bytes;
	}
	return out->len > 0 ? EX_OK :
	    cli_fail(EX_DATAERR, "%s: no signed note", file);
}

/* --- making --- */

static int
fail(enum res r, const struct err *err)
{
	int status = r == RES_SYNTAX || r == RES_CORRUPT ? EX_DATAERR :
							   cli_status(r);
	return cli_fail(status, "%s",
	    err->text[0] != '\0' ? err->text : res_text(r));
}

static int
make_proof(struct prove *p, struct archive_reader *r, const char *text)
{
	struct err err = { "" };
	struct proof proof;
	struct proof_options o = { .without_envelope = p->without_envelope };
	uint64_t id;
	struct buf out;
	int status = EX_OK;
	if (archive_id_parse(str_c(text), &id) != RES_OK)
		return cli_fail(EX_USAGE, "%s: not an id", text);
	if (p->note != NULL)
		status = read_note(p, p->note, &o.note);
	if (status != EX_OK)
		return status;
	enum res res = proof_make(r, p->a, id, &o, &err, &proof);
	if (res != RES_OK)
		return fail(res, &err);
	buf_init(&out, MAX_OUTPUT);
	proof_format(&out, &proof);
	return archive_print(&out);
}

static int
make_consistency(struct prove *p, struct archive_reader *r, char **files)
{
	struct err err = { "" };
	struct consistency c;
	struct str one, other;
	struct buf out;
	int status = read_note(p, files[0], &one);
	if (status == EX_OK)
		status = read_note(p, files[1], &other);
	if (status != EX_OK)
		return status;
	enum res res = consistency_make(r, p->a, one, other, &err, &c);
	if (res != RES_OK)
		return fail(res, &err);
	buf_init(&out, MAX_OUTPUT);
	consistency_format(&out, &c);
	return archive_print(&out);
}

/* --- checking --- */

/* Not proved, and why. */
static int
no(const struct err *err)
{
	printf("NOT proved: %s\n", err->text);
	return 1;
}

/* By one of --key; else by the key in the proof, which says so itself. */
static enum res
check_signer(const struct prove *p, struct str note, bool has_key,
    const struct note_key *hint, struct err *err)
{
	enum res r = RES_NOTFOUND;
	for (size_t i = 0; i < p->key_count && r != RES_OK; i++) {
		err_clear(err);
		r = proof_check_note(note, &p->keys[i], err);
	}
	if (p->key_count > 0)
		return r;
	if (has_key)
		return proof_check_note(note, hint, err);
	err_set(err, "who signed it is not said; give the published key with "
		     "--key");
	return RES_CORRUPT;
}

static void
say_signer(const struct prove *p, bool has_key, const struct note_key *hint)
{
	struct buf b;
	buf_init(&b, 1024);
	if (p->key_count == 0 && has_key) {
		buf_add_c(&b, "signed by: ");
		note_key_format(&b, hint);
		buf_add_c(&b, "\n    which is the proof's own word: compare it "
			      "with the key that was published\n");
	} else {
		buf_add_c(&b, "signed by: the key given\n");
	}
	(void)buf_write(&b, stdout); /* its end is checked */
	buf_done(&b);
}

static void
say_head(const char *what, const struct note_head *h)
{
	struct buf b;
	buf_init(&b, 1024);
	buf_addf(&b, "%s: %" PRIu64 " frames of shard %" PRIu32
		 ", epoch %" PRIu32 " of store ", what, h->size,
	    h->origin.shard, h->origin.epoch);
	hex_encode(&b, h->origin.store, sizeof h->origin.store);
	buf_add_c(&b, ", ");
	archive_put_time(&b, h->time_us);
	buf_add_char(&b, '\n');
	(void)buf_write(&b, stdout);
	buf_done(&b);
}

/* The note of the proof is the one that was published. */
static int
check_published(struct prove *p, struct str note, struct err *err)
{
	struct str published;
	struct note a, b;
	if (p->note == NULL)
		return EX_OK;
	int status = read_note(p, p->note, &published);
	if (status != EX_OK)
		return status;
	if (note_open(published, &a) == RES_OK &&
	    note_open(note, &b) == RES_OK && str_eq(a.text, b.text))
		return EX_OK;
	err_set(err, "the note in %s is another one than that of the proof; a "
		     "proof of consistency can join them", p->note);
	return no(err);
}

static enum res
hash_file(struct prove *p, const char *file, uint8_t out[DIGEST_LEN],
    struct err *err)
{
	struct sink *s = digest_sink(p->a, out);
	int fd = open(file, O_RDONLY | O_CLOEXEC);
	enum res r = s == NULL ? RES_NOMEM : fd < 0 ? RES_IO : RES_OK;
	while (r == RES_OK) {
		char bytes[65536];
		ssize_t n = read(fd, bytes, sizeof bytes);
		if (n < 0 && errno != EINTR)
			r = RES_IO;
		if (n == 0)
			break;
		if (n > 0)
			sink_push(s, bytes, (size_t)n);
	}
	if (r == RES_IO)
		err_set(err, "%s: %s", file, strerror(errno));
	if (r == RES_OK)
		r = sink_finish(s);
	if (fd >= 0)
		close(fd);
	return r;
}

static int
check_message(struct prove *p, const struct proof *proof)
{
	struct err err = { "" };
	uint8_t hash[DIGEST_LEN];
	const struct proof_block *b = &proof->blocks[BLOCK_BODY];
	if (p->message == NULL)
		return EX_OK;
	enum res r = hash_file(p, p->message, hash, &err);
	if (r != RES_OK)
		return fail(r, &err);
	if (b->how != PROOF_DISCLOSED ||
	    memcmp(b->sha256, hash, sizeof hash) != 0) {
		err_set(&err, "%s is not the message that was archived",
		    p->message);
		return no(&err);
	}
	printf("message: %s\n", p->message);
	return EX_OK;
}

static void
say_record(struct str meta)
{
	static const struct {
		unsigned tag;
		const char *name;
	} rows[] = { { META_MAIL_FROM, "sender" }, { META_RCPT, "recipient" },
		{ META_CLIENT_IP, "client" }, { META_QUEUE_ID, "queue id" },
		{ META_RESULTS, "results" } };
	struct buf b;
	buf_init(&b, MAX_OUTPUT);
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct record_reader records;
		unsigned tag;
		struct str value;
		if (record_open(meta, &records) != RES_OK)
			break;
		while (record_next(&records, &tag, &value)) {
			if (tag != rows[i].tag)
				continue;
			buf_addf(&b, "%s: ", rows[i].name);
			archive_put_safe(&b, value);
			buf_add_char(&b, '\n');
		}
	}
	(void)buf_write(&b, stdout);
	buf_done(&b);
}

static void
say_proof(const struct proof *proof)
{
	struct buf b;
	const struct proof_block *body = &proof->blocks[BLOCK_BODY];
	buf_init(&b, 4096);
	buf_addf(&b, "frame: %" PRIu32 ".%" PRIu64 ", type %u, ",
	    proof->origin.shard, proof->frame, (unsigned)proof->type);
	archive_put_time(&b, proof->time_us);
	buf_add_char(&b, '\n');
	if (body->how == PROOF_DISCLOSED) {
		buf_add_c(&b, "sha256: ");
		hex_encode(&b, body->sha256, sizeof body->sha256);
		buf_add_char(&b, '\n');
	}
	for (int i = 0; i < FRAME_BLOCKS; i++)
		if (proof->blocks[i].how == PROOF_ERASED)
			buf_addf(&b, "%s: was erased; what it said is not "
				 "proved\n",
			    frame_block_name((enum frame_block)i));
		else if (proof->blocks[i].how == PROOF_COMMITTED)
			buf_addf(&b, "%s: not disclosed\n",
			    frame_block_name((enum frame_block)i));
	(void)buf_write(&b, stdout);
	buf_done(&b);
	if (proof->blocks[BLOCK_META].how == PROOF_DISCLOSED &&
	    (proof->type == FRAME_MESSAGE || proof->type == FRAME_DELIVERY))
		say_record(proof->blocks[BLOCK_META].plain);
}

static int
check_proof(struct prove *p, struct str text)
{
	struct err err = { "" };
	struct proof proof;
	struct note_head head;
	enum res r = proof_parse(text, p->a, &err, &proof);
	if (r != RES_OK)
		return fail(r, &err);
	r = proof_check(&proof, &err, &head);
	if (r == RES_OK)
		r = check_signer(
		    p, proof.note, proof.has_key, &proof.key, &err);
	if (r == RES_CORRUPT)
		return no(&err);
	if (r != RES_OK)
		return fail(r, &err);
	int status = check_published(p, proof.note, &err);
	if (status == EX_OK)
		status = check_message(p, &proof);
	if (status != EX_OK)
		return status;
	say_proof(&proof);
	say_head("signed", &head);
	say_signer(p, proof.has_key, &proof.key);
	puts("proved");
	return EX_OK;
}

static int
check_consistency(struct prove *p, struct str text)
{
	struct err err = { "" };
	struct consistency c;
	struct note_head old, new;
	enum res r = consistency_parse(text, &err, &c);
	if (r != RES_OK)
		return fail(r, &err);
	r = consistency_check(&c, &err, &old, &new);
	if (r == RES_OK)
		r = check_signer(p, c.old_note, c.has_key, &c.key, &err);
	if (r == RES_OK)
		r = check_signer(p, c.new_note, c.has_key, &c.key, &err);
	if (r == RES_CORRUPT)
		return no(&err);
	if (r != RES_OK)
		return fail(r, &err);
	say_head("old", &old);
	say_head("new", &new);
	say_signer(p, c.has_key, &c.key);
	puts("proved: the new tree begins with the old one");
	return EX_OK;
}

static int
check(struct prove *p)
{
	struct str text;
	int status = read_text(p, p->check, &text);
	if (status != EX_OK)
		return status;
	status = proof_is_consistency(text) ? check_consistency(p, text) :
					      check_proof(p, text);
	if (fflush(stdout) != 0)
		return cli_fail(EX_IOERR, "standard output: write error");
	return status;
}

/* --- the command --- */

static int
add_key(struct prove *p, const char *text)
{
	if (p->key_count == MAX_KEYS)
		return cli_fail(EX_USAGE, "more than %d keys", MAX_KEYS);
	if (note_key_parse(str_c(text), &p->keys[p->key_count]) != RES_OK)
		return cli_fail(EX_USAGE, "--key %s: no verification key, as "
		    "hanaper archive key prints them", text);
	p->key_count++;
	return EX_OK;
}

static int
parse_options(struct prove *p, int argc, char **argv)
{
	int c, status = EX_OK;
	while (status == EX_OK &&
	    (c = getopt_long(argc, argv, ARCHIVE_PLACE_SHORT, options,
		 NULL)) != -1) {
		if (archive_place_option(&p->place, c, optarg, &status))
			continue;
		if (c == 'e')
			p->without_envelope = true;
		else if (c == 'C')
			p->consistency = true;
		else if (c == 'k')
			p->check = optarg;
		else if (c == 'n')
			p->note = optarg;
		else if (c == 'm')
			p->message = optarg;
		else if (c == 'K')
			status = add_key(p, optarg);
		else
			status = cli_usage("archive", USAGE);
	}
	if (status != EX_OK)
		return status;
	int want = p->check != NULL ? 0 : p->consistency ? 2 : 1;
	if (argc - optind != want ||
	    (p->check == NULL && (p->key_count > 0 || p->message != NULL)) ||
	    (p->consistency && p->check != NULL))
		return cli_usage("archive", USAGE);
	return EX_OK;
}

int
archive_prove_main(int argc, char **argv)
{
	struct prove p = { .a = arena_new((size_t)256 << 20) };
	struct archive_reader *r = NULL;
	if (p.a == NULL)
		return cli_fail(EX_OSERR, "out of memory");
	int status = parse_options(&p, argc, argv);
	if (status == EX_OK && p.check != NULL)
		status = check(&p);
	else if (status == EX_OK)
		r = archive_place_open(&p.place, p.a, &status);
	if (r != NULL)
		status = p.consistency ?
		    make_consistency(&p, r, argv + optind) :
		    make_proof(&p, r, argv[optind]);
	archive_reader_close(&r);
	arena_free(&p.a);
	return status;
}
