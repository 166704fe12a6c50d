/* hanaper archive key: the keys that sign checkpoints of the archive. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include "archive/format/note.h"
#include "archive/store/store_dir.h"
#include "base/clock.h"
#include "cli/archive.h"
#include "cli/key.h"
#include "keys/keyring.h"

#define USAGE      "key [-c CONFIG] [-o NAME=VALUE] [--new]"
#define MAX_OUTPUT ((size_t)1 << 20)

static const struct option options[] = {
	{ "new", no_argument, NULL, 'n' },
	{ NULL, 0, NULL, 0 },
};

/* One more, which signs from now on. */
static int
make(struct key_options *o)
{
	struct err err = { "" };
	struct privkey *k = NULL;
	struct buf pem;
	int folder = -1, status = key_make_folder(o, o->key_dir);
	if (status == EX_OK)
		status = key_lock(o->key_dir, &folder);
	if (status != EX_OK)
		return status;
	key_own(o);
	struct str name = arena_printf(
	    o->arena, "%lld.pem", (long long)o->now_s);
	buf_init(&pem, PRIVKEY_MAX_FILE);
	(void)buf_reserve(&pem, 8192); /* no copies left behind by growing */
	enum res r = name.ptr != NULL ?
	    privkey_generate(KEY_ED25519, 0, &err, &k) : RES_NOMEM;
	if (r == RES_OK)
		r = privkey_to_pem(k, &pem);
	if (r != RES_OK)
		status = cli_fail(cli_status(r), "%s",
		    err.text[0] != '\0' ? err.text : res_text(r));
	else if (!key_write_new(o, folder, buf_str(&pem), name.ptr))
		status = cli_fail(EX_CANTCREAT, "%s/%s: %s", o->key_dir,
		    name.ptr, strerror(errno));
	else
		fprintf(stderr, "hanaper: made %s/%s; now let hanaperd read "
		    "its keys again (HUP), and publish the verification key\n",
		    o->key_dir, name.ptr);
	if (pem.ptr != NULL)
		explicit_bzero(pem.ptr, pem.cap);
	buf_done(&pem);
	privkey_free(&k);
	close(folder);
	return status;
}

static bool
is_among(const struct signing_key *k, const struct signing_key *const *list,
    size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (list[i] == k)
			return true;
	return false;
}

static void
put_key(struct buf *out, const struct signing_key *k, int64_t now_s,
    bool signs, const struct store_identity *id)
{
	struct note_key key;
	uint64_t since = 0;
	if (str_to_u64(k->selector, INT64_MAX / 1000000, &since) != RES_OK)
		since = 0;
	archive_put_time(out, (int64_t)since * 1000000);
	buf_addf(out, "  %-7s  ", signs ? "signs" :
	    (int64_t)since > now_s ? "later" : "retired");
	if (note_key_of(id->uuid, k, &key) == RES_OK)
		note_key_format(out, &key);
	else
		buf_add_c(out, "not an Ed25519 key");
	buf_add_char(out, '\n');
}

/* Verification keys name the store, so there must be one. */
static int
print(struct key_options *o, const char *archive_dir, bool new)
{
	const struct signing_key *now[NOTE_MAX_SIGNATURES];
	struct err err = { "" };
	struct keydir d;
	struct store_identity id;
	struct signer *s = NULL;
	struct buf out;
	enum res r = keydir_open_notes(o->arena, o->key_dir, &err, &d);
	if (r == RES_OK)
		r = keyring_from_keydir(&d, &err, &s);
	if (r == RES_OK)
		r = store_dir_identity(archive_dir, &err, &id);
	if (r == RES_NOTFOUND && s != NULL && new) {
		signer_free(&s);
		fputs("hanaper: there is no store yet; when there is one, "
		      "hanaper archive key prints what to publish\n", stderr);
		return EX_OK;
	}
	if (r != RES_OK) {
		signer_free(&s);
		return cli_fail(cli_status(r), "%s",
		    err.text[0] != '\0' ? err.text : res_text(r));
	}
	struct manifest *m = s->manifest(s);
	size_t count = note_signers(m, o->now_s, now);
	buf_init(&out, MAX_OUTPUT);
	for (size_t i = 0; i < manifest_count(m); i++)
		put_key(&out, manifest_at(m, i), o->now_s,
		    is_among(manifest_at(m, i), now, count), &id);
	manifest_unref(&m);
	signer_free(&s);
	return archive_print(&out);
}

int
archive_key_main(int argc, char **argv)
{
	const struct clock clock = CLOCK_SYSTEM;
	struct key_options o = { .now_s = clock_now_s(&clock),
		.uid = KEY_NO_ID };
	bool new = false;
	int c, status = EX_OSERR;
	while ((c = getopt_long(argc, argv, "c:o:", options, NULL)) != -1) {
		if (c == 'c')
			o.settings.path = optarg;
		else if (c == 'n')
			new = true;
		else if (c != 'o' || !cli_settings_add(&o.settings, optarg))
			return cli_usage("archive", USAGE);
	}
	if (optind != argc)
		return cli_usage("archive", USAGE);
	o.config = cli_settings_load(&o.settings, &status);
	o.arena = arena_new(0);
	if (o.config != NULL && o.arena != NULL) {
		const char *dir = arena_cstr(o.arena, o.config->archive_dir);
		o.key_dir = arena_cstr(o.arena, o.config->archive_keys);
		status = EX_OK;
		if (dir == NULL || o.key_dir == NULL)
			status = cli_fail(EX_OSERR, "out of memory");
		if (status == EX_OK && new)
			status = make(&o);
		if (status == EX_OK)
			status = print(&o, dir, new);
	}
	arena_free(&o.arena);
	config_unref(&o.config);
	return status;
}
