/* make bench: the signature engine beside raw libcrypto and libopendkim. */
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "engine.h"

static struct engine engine;
static bool have_peer;

/* --- limits: raw libcrypto --------------------------------------------------- */

static EVP_MD *sha256;
static EVP_MD_CTX *md;
static EVP_PKEY *raw_key;
static unsigned char raw_sig[512];
static size_t raw_sig_len;
static unsigned char raw_digest[32];

static void
raw_hash(void *context)
{
	const struct bench_mail *m = context;
	unsigned char out[32];
	EVP_DigestInit_ex2(md, sha256, NULL);
	EVP_DigestUpdate(md, m->body, m->body_len);
	EVP_DigestFinal_ex(md, out, NULL);
}

static EVP_PKEY_CTX *
raw_context(bool sign)
{
	EVP_PKEY_CTX *c = EVP_PKEY_CTX_new(raw_key, NULL);
	if (sign)
		EVP_PKEY_sign_init(c);
	else
		EVP_PKEY_verify_init(c);
	EVP_PKEY_CTX_set_rsa_padding(c, RSA_PKCS1_PADDING);
	EVP_PKEY_CTX_set_signature_md(c, sha256);
	return c;
}

static EVP_PKEY_CTX *sign_context, *verify_context;

static void
raw_sign(void *context)
{
	(void)context;
	raw_sig_len = sizeof raw_sig;
	EVP_PKEY_sign(sign_context, raw_sig, &raw_sig_len, raw_digest, 32);
}

static void
raw_verify(void *context)
{
	(void)context;
	EVP_PKEY_verify(verify_context, raw_sig, raw_sig_len, raw_digest, 32);
}

static void
raw_open(void)
{
	BIO *bio = BIO_new_mem_buf(engine.pem, -1);
	raw_key = PEM_read_bio_PrivateKey(bio, NULL, NULL, NULL);
	BIO_free(bio);
	sha256 = EVP_MD_fetch(NULL, "SHA256", NULL);
	md = EVP_MD_CTX_new();
	sign_context = raw_context(true);
	verify_context = raw_context(false);
	raw_sign(NULL);
}

/* --- works --------------------------------------------------------------------- */

static void
our_sign(void *context)
{
	free(engine_sign(&engine, context));
}

static void
our_verify(void *context)
{
	engine_verify(&engine, context);
}

static void
our_seal(void *context)
{
	char *out[3];
	engine_seal(&engine, context, out);
	for (int i = 0; i < 3; i++)
		free(out[i]);
}

static void
our_arc_verify(void *context)
{
	engine_arc_verify(&engine, context);
}

static void
their_sign(void *context)
{
	peer_sign(context);
}

static void
their_verify(void *context)
{
	peer_verify(context);
}

struct hash_work {
	const struct bench_mail *mail;
	enum canon canon;
};

static void
our_hash(void *context)
{
	const struct hash_work *w = context;
	struct arena *a = arena_new(0);
	struct bodyhash_set *s = bodyhash_new(a);
	size_t index;
	if (bodyhash_want(s, w->canon, BODYHASH_WHOLE, &index) != RES_OK)
		exit(1);
	struct sink *sink = bodyhash_sink(s);
	for (size_t at = 0; at < w->mail->body_len; at += 65535)
		sink_push(sink, w->mail->body + at,
		    w->mail->body_len - at < 65535 ? w->mail->body_len - at :
						     65535);
	if (sink_finish(sink) != RES_OK)
		exit(1);
	arena_free(&a);
}

/* --- parts ---------------------------------------------------------------------- */

static void
part_hash(void)
{
	static const struct {
		const char *title, *target;
		enum body_kind kind;
		double reach;
	} rows[] = {
		{ "body hash, 1 MiB text", "hash-relaxed-text", BODY_TEXT, 0.90 },
		{ "body hash, 1 MiB base64", "hash-relaxed-base64", BODY_BASE64,
		    0.90 },
		{ "body hash, 1 MiB dirty", "hash-relaxed-dirty", BODY_DIRTY,
		    0.45 },
	};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct bench_mail m;
		mail_make(&m, 1 << 20, rows[i].kind);
		struct hash_work relaxed = { &m, CANON_RELAXED };
		struct hash_work simple = { &m, CANON_SIMPLE };
		struct bench_work w[] = {
			{ .name = "raw SHA-256", .run = raw_hash,
			    .context = &m },
			{ .name = "relaxed", .run = our_hash,
			    .context = &relaxed },
			{ .name = "simple", .run = our_hash,
			    .context = &simple },
		};
		bench_run(rows[i].title, w, 3);
		bench_target(rows[i].target, bench_ratio(&w[0], &w[1]),
		    rows[i].reach, true);
		mail_free(&m);
	}
}

static const struct {
	const char *name;
	size_t bytes;
} sizes[] = { { "2 KB", 2048 }, { "16 KB", 16384 }, { "200 KB", 204800 },
	{ "1 MiB", 1 << 20 }, { "16 MiB", 16 << 20 } };

static void
verify_targets(size_t bytes, const struct bench_work *w)
{
	if (bytes == 1 << 20) {
		bench_target("verify-1m-sha256", bench_ratio(&w[0], &w[2]), 0.85,
		    true);
		if (have_peer)
			bench_target("verify-1m-opendkim", bench_ratio(&w[3], &w[2]),
			    6, true);
	}
	if (bytes == 2048) {
		bench_target("verify-2k-rsa", bench_ratio(&w[1], &w[2]), 0.7, true);
		if (have_peer)
			bench_target("verify-2k-opendkim", bench_ratio(&w[3], &w[2]),
			    6, true);
	}
}

static void
part_verify(void)
{
	for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
		struct bench_mail m;
		char title[64];
		mail_make(&m, sizes[i].bytes, BODY_TEXT);
		mail_prepend(&m, "DKIM-Signature", engine_sign(&engine, &m));
		struct bench_work w[] = {
			{ .name = "raw SHA-256 of the body", .run = raw_hash,
			    .context = &m },
			{ .name = "raw RSA-2048 verify", .run = raw_verify },
			{ .name = "verify", .run = our_verify, .context = &m },
			{ .name = "libopendkim", .run = their_verify,
			    .context = &m },
		};
		snprintf(title, sizeof title, "verify %s", sizes[i].name);
		bench_run(title, w, have_peer ? 4 : 3);
		verify_targets(sizes[i].bytes, w);
		mail_free(&m);
	}
}

static void
part_sign(void)
{
	for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
		struct bench_mail m;
		char title[64];
		mail_make(&m, sizes[i].bytes, BODY_TEXT);
		struct bench_work w[] = {
			{ .name = "raw RSA-2048 sign", .run = raw_sign },
			{ .name = "sign", .run = our_sign, .context = &m },
			{ .name = "libopendkim", .run = their_sign,
			    .context = &m },
		};
		snprintf(title, sizeof title, "sign %s", sizes[i].name);
		bench_run(title, w, have_peer ? 3 : 2);
		if (sizes[i].bytes == 2048)
			bench_target("sign-2k-rsa", bench_ratio(&w[0], &w[1]), 0.90,
			    true);
		if (sizes[i].bytes == 16384)
			bench_target("sign-16k-rsa", bench_ratio(&w[0], &w[1]), 0.90,
			    true);
		mail_free(&m);
	}
}

static void
part_arc(void)
{
	for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
		struct bench_mail m, sealed;
		char title[64], *set[3];
		mail_make(&m, sizes[i].bytes, BODY_TEXT);
		mail_make(&sealed, sizes[i].bytes, BODY_TEXT);
		engine_seal(&engine, &sealed, set);
		mail_prepend(&sealed, "ARC-Authentication-Results", set[0]);
		mail_prepend(&sealed, "ARC-Message-Signature", set[1]);
		mail_prepend(&sealed, "ARC-Seal", set[2]);
		struct bench_mail plain;
		mail_make(&plain, sizes[i].bytes, BODY_TEXT);
		mail_prepend(
		    &m, "DKIM-Signature", engine_sign(&engine, &plain));
		struct bench_work w[] = {
			{ .name = "DKIM verify", .run = our_verify,
			    .context = &m },
			{ .name = "ARC verify", .run = our_arc_verify,
			    .context = &sealed },
			{ .name = "DKIM sign", .run = our_sign,
			    .context = &plain },
			{ .name = "ARC seal", .run = our_seal,
			    .context = &plain },
		};
		snprintf(title, sizeof title, "ARC %s", sizes[i].name);
		bench_run(title, w, 4);
		if (sizes[i].bytes == 1 << 20) {
			bench_target("arc-verify-1m",
			    bench_ratio(&w[1], &w[0]), 1.10, false);
			bench_target("arc-seal-1m",
			    bench_ratio(&w[3], &w[2]) / 2, 1.10, false);
		}
		mail_free(&m);
		mail_free(&sealed);
		mail_free(&plain);
	}
}

/* --- threads --------------------------------------------------------------------- */

struct crew {
	struct bench_mail *mail;
	int threads, messages;
};

static void *
crew_member(void *arg)
{
	struct crew *c = arg;
	for (int i = 0; i < c->messages / c->threads; i++)
		engine_verify(&engine, c->mail);
	return NULL;
}

static void
run_crew(void *context)
{
	struct crew *c = context;
	pthread_t t[2];
	for (int i = 0; i < c->threads; i++)
		if (pthread_create(&t[i], NULL, crew_member, c) != 0)
			exit(1);
	for (int i = 0; i < c->threads; i++)
		pthread_join(t[i], NULL);
}

static void
part_threads(void)
{
	struct bench_mail m;
	mail_make(&m, 16384, BODY_TEXT);
	mail_prepend(&m, "DKIM-Signature", engine_sign(&engine, &m));
	struct crew one = { &m, 1, 1000 }, two = { &m, 2, 1000 };
	struct bench_work w[] = {
		{ .name = "1 thread", .run = run_crew, .context = &one },
		{ .name = "2 threads", .run = run_crew, .context = &two },
	};
	bench_run("1,000 verifications of 16 KB", w, 2);
	bench_target("two-threads", bench_ratio(&w[0], &w[1]), 1.85, true);
	mail_free(&m);
}

/* --- memory ----------------------------------------------------------------------- */

/* Peak memory while `bytes` pass through the hash of one signature, pushed
 * from one small buffer. */
static long
peak_of(uint64_t bytes)
{
	static char chunk[65535];
	struct arena *a = arena_new(0);
	struct bodyhash_set *s = bodyhash_new(a);
	size_t index, before = 0;
	memset(chunk, 'a', sizeof chunk);
	if (bodyhash_want(s, CANON_RELAXED, BODYHASH_WHOLE, &index) != RES_OK)
		exit(1);
	struct sink *sink = bodyhash_sink(s);
	for (uint64_t done = 0; done < bytes; done += sizeof chunk) {
		sink_push(sink, chunk, sizeof chunk);
		if (done == 0)
			before = arena_used(a);
	}
	if (arena_used(a) != before) {
		fputs("bench: chunks allocate memory\n", stderr);
		exit(1);
	}
	if (sink_finish(sink) != RES_OK)
		exit(1);
	arena_free(&a);
	return bench_peak_kib();
}

static void
part_memory(void)
{
	long small = peak_of(1 << 20), large = peak_of(1 << 30);
	printf("\npeak memory: %ld KiB after 1 MiB, %ld KiB after 1 GiB\n",
	    small, large);
	bench_target("memory-1g-over-1m", (double)large / (double)small, 1.01,
	    false);
}

int
main(void)
{
	engine_open(&engine);
	raw_open();
	have_peer = peer_open(&engine);
	if (!have_peer)
		puts("libopendkim was not found by configure: no peer");
	if (bench_wanted("memory"))
		part_memory();
	if (bench_wanted("hash"))
		part_hash();
	if (bench_wanted("verify"))
		part_verify();
	if (bench_wanted("sign"))
		part_sign();
	if (bench_wanted("arc"))
		part_arc();
	if (bench_wanted("threads"))
		part_threads();
	printf("\npeak memory of this program: %ld KiB\n", bench_peak_kib());
	peer_close();
	engine_close(&engine);
	/* a short target is a finding, not a failure of the program */
	bench_finish();
	return 0;
}
