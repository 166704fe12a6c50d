#include "keys/digest.h"

#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/rand.h>
#include <pthread.h>
#include <string.h>

#define HMAC_BLOCK 64 /* SHA-256's input block: RFC 2104 §2 */

/* EVP_sha256() is looked up anew at each digest ("implicit fetch"): twice the
 * time for a header, and it takes a lock. Fetched once, never freed. */
static EVP_MD *sha256;
static pthread_once_t sha256_once = PTHREAD_ONCE_INIT;

static void
sha256_fetch(void)
{
	sha256 = EVP_MD_fetch(NULL, "SHA256", NULL);
}

static EVP_MD_CTX *
context_new(void)
{
	pthread_once(&sha256_once, sha256_fetch);
	if (sha256 == NULL)
		return NULL;
	EVP_MD_CTX *ctx = EVP_MD_CTX_new();
	if (ctx != NULL && EVP_DigestInit_ex2(ctx, sha256, NULL) != 1) {
		EVP_MD_CTX_free(ctx);
		ctx = NULL;
	}
	return ctx;
}

/* Ends the digest and the context. */
static enum res
context_finish(EVP_MD_CTX *ctx, bool fed, uint8_t out[DIGEST_LEN])
{
	unsigned len = 0;
	bool good =
	    fed && EVP_DigestFinal_ex(ctx, out, &len) == 1 && len == DIGEST_LEN;
	EVP_MD_CTX_free(ctx);
	if (good)
		return RES_OK;
	ERR_clear_error();
	memset(out, 0, DIGEST_LEN);
	return RES_IO;
}

struct digest_stream {
	struct sink sink;
	EVP_MD_CTX *ctx;
	EVP_MD_CTX *peek; /* for digest_peek, made when first needed */
	bool fed;         /* every update succeeded */
	uint8_t *out;
	uint8_t own[DIGEST_LEN]; /* a fork's `out` */
};

static void
stream_push(struct sink *s, const char *bytes, size_t len)
{
	struct digest_stream *d = (struct digest_stream *)s;
	if (len > 0 && d->fed && EVP_DigestUpdate(d->ctx, bytes, len) != 1)
		d->fed = false;
}

static void
stream_release(void *arg)
{
	struct digest_stream *d = arg;
	EVP_MD_CTX_free(d->ctx);
	EVP_MD_CTX_free(d->peek);
	d->ctx = d->peek = NULL;
}

static enum res
stream_finish(struct sink *s)
{
	struct digest_stream *d = (struct digest_stream *)s;
	EVP_MD_CTX *ctx = d->ctx;
	d->ctx = NULL;
	if (ctx == NULL)
		return RES_INVALID;
	return context_finish(ctx, d->fed, d->out);
}

/* `ctx` is taken over, NULL fails. */
static struct digest_stream *
stream_new(struct arena *a, EVP_MD_CTX *ctx)
{
	struct digest_stream *d = ARENA_NEW(a, struct digest_stream);
	if (d == NULL || ctx == NULL) {
		EVP_MD_CTX_free(ctx);
		return NULL;
	}
	d->sink = (struct sink){ stream_push, stream_finish };
	d->out = d->own;
	d->fed = true;
	d->ctx = ctx;
	if (arena_on_free(a, stream_release, d) != RES_OK) {
		stream_release(d);
		return NULL;
	}
	return d;
}

struct sink *
digest_sink(struct arena *a, uint8_t out[DIGEST_LEN])
{
	struct digest_stream *d = stream_new(a, context_new());
	if (d == NULL)
		return NULL;
	d->out = out;
	return &d->sink;
}

enum res
digest_peek(struct sink *s, uint8_t out[DIGEST_LEN])
{
	struct digest_stream *d = (struct digest_stream *)s;
	unsigned len = 0;
	if (d->ctx == NULL)
		return RES_INVALID;
	if (d->peek == NULL)
		d->peek = EVP_MD_CTX_new();
	if (d->peek != NULL && d->fed &&
	    EVP_MD_CTX_copy_ex(d->peek, d->ctx) == 1 &&
	    EVP_DigestFinal_ex(d->peek, out, &len) == 1 && len == DIGEST_LEN)
		return RES_OK;
	ERR_clear_error();
	memset(out, 0, DIGEST_LEN);
	return RES_IO;
}

struct sink *
digest_fork(struct arena *a, const struct sink *s)
{
	const struct digest_stream *d = (const struct digest_stream *)s;
	EVP_MD_CTX *ctx = EVP_MD_CTX_new();
	if (ctx == NULL || d->ctx == NULL ||
	    EVP_MD_CTX_copy_ex(ctx, d->ctx) != 1) {
		ERR_clear_error();
		EVP_MD_CTX_free(ctx);
		return NULL;
	}
	struct digest_stream *fork = stream_new(a, ctx);
	if (fork == NULL)
		return NULL;
	fork->fed = d->fed;
	return &fork->sink;
}

enum res
digest_sha256(const void *bytes, size_t len, uint8_t out[DIGEST_LEN])
{
	struct str part = str_of(bytes, len);
	return digest_sha256_parts(&part, 1, out);
}

enum res
digest_sha256_parts(
    const struct str *parts, size_t count, uint8_t out[DIGEST_LEN])
{
	EVP_MD_CTX *ctx = context_new();
	if (ctx == NULL) {
		ERR_clear_error();
		memset(out, 0, DIGEST_LEN);
		return RES_IO;
	}
	bool fed = true;
	for (size_t i = 0; i < count && fed; i++)
		if (parts[i].len > 0)
			fed = EVP_DigestUpdate(
				  ctx, parts[i].ptr, parts[i].len) == 1;
	return context_finish(ctx, fed, out);
}

enum res
digest_hmac(struct str key, struct str text, uint8_t out[DIGEST_LEN])
{
	uint8_t block[HMAC_BLOCK] = { 0 };
	uint8_t inner[DIGEST_LEN], pad[HMAC_BLOCK];
	enum res r = RES_OK;

	if (key.len > HMAC_BLOCK)
		r = digest_sha256(key.ptr, key.len, block);
	else if (key.len > 0)
		memcpy(block, key.ptr, key.len);
	for (size_t i = 0; i < HMAC_BLOCK; i++)
		pad[i] = block[i] ^ 0x36;
	struct str first[] = { str_of(pad, sizeof pad), text };
	if (r == RES_OK)
		r = digest_sha256_parts(first, 2, inner);
	for (size_t i = 0; i < HMAC_BLOCK; i++)
		pad[i] = block[i] ^ 0x5c;
	struct str second[] = { str_of(pad, sizeof pad),
		str_of(inner, sizeof inner) };
	if (r == RES_OK)
		r = digest_sha256_parts(second, 2, out);
	else
		memset(out, 0, DIGEST_LEN);
	OPENSSL_cleanse(block, sizeof block);
	OPENSSL_cleanse(pad, sizeof pad);
	OPENSSL_cleanse(inner, sizeof inner);
	return r;
}

bool
digest_equal(const void *a, const void *b, size_t len)
{
	return len == 0 || CRYPTO_memcmp(a, b, len) == 0;
}

enum res
digest_random(void *out, size_t len)
{
	uint8_t *p = out;
	while (len > 0) {
		int n = len > 65536 ? 65536 : (int)len;
		if (RAND_bytes(p, n) != 1) {
			ERR_clear_error();
			return RES_IO;
		}
		p += n;
		len -= (size_t)n;
	}
	return RES_OK;
}
