/* SHA-256 by its functions of old. EVP costs more than the hash itself for
 * what is hashed here most, tags and salted leaves of a hundred bytes (an
 * allocation, a reference to the provider), and its first use reads the
 * configuration and fills tables for milliseconds, which is most of what a
 * short command does. They are deprecated because they pass providers by, not
 * because of what they compute. */
#define OPENSSL_SUPPRESS_DEPRECATED

#include "keys/digest.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <openssl/sha.h>
#include <string.h>
#include <sys/random.h>

#define HMAC_BLOCK 64 /* SHA-256's input block: RFC 2104 §2 */

struct digest_stream {
	struct sink sink;
	SHA256_CTX ctx;
	bool fed;         /* every update succeeded */
	bool finished;
	uint8_t *out;
	uint8_t own[DIGEST_LEN]; /* a fork's `out` */
};

/* Ends the digest. */
static enum res
context_finish(SHA256_CTX *ctx, bool fed, uint8_t out[DIGEST_LEN])
{
	if (fed && SHA256_Final(out, ctx) == 1)
		return RES_OK;
	memset(out, 0, DIGEST_LEN);
	return RES_IO;
}

static void
stream_push(struct sink *s, const char *bytes, size_t len)
{
	struct digest_stream *d = (struct digest_stream *)s;
	if (len > 0 && d->fed && SHA256_Update(&d->ctx, bytes, len) != 1)
		d->fed = false;
}

static enum res
stream_finish(struct sink *s)
{
	struct digest_stream *d = (struct digest_stream *)s;
	if (d->finished)
		return RES_INVALID;
	d->finished = true;
	return context_finish(&d->ctx, d->fed, d->out);
}

static struct digest_stream *
stream_new(struct arena *a)
{
	struct digest_stream *d = ARENA_NEW(a, struct digest_stream);
	if (d == NULL)
		return NULL;
	d->sink = (struct sink){ stream_push, stream_finish };
	d->out = d->own;
	d->finished = false;
	return d;
}

struct sink *
digest_sink(struct arena *a, uint8_t out[DIGEST_LEN])
{
	struct digest_stream *d = stream_new(a);
	if (d == NULL)
		return NULL;
	d->out = out;
	d->fed = SHA256_Init(&d->ctx) == 1;
	return &d->sink;
}

enum res
digest_peek(struct sink *s, uint8_t out[DIGEST_LEN])
{
	struct digest_stream *d = (struct digest_stream *)s;
	if (d->finished)
		return RES_INVALID;
	SHA256_CTX copy = d->ctx;
	return context_finish(&copy, d->fed, out);
}

struct sink *
digest_fork(struct arena *a, const struct sink *s)
{
	const struct digest_stream *d = (const struct digest_stream *)s;
	struct digest_stream *fork = d->finished ? NULL : stream_new(a);
	if (fork == NULL)
		return NULL;
	fork->ctx = d->ctx;
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
	SHA256_CTX ctx;
	bool fed = SHA256_Init(&ctx) == 1;
	for (size_t i = 0; i < count && fed; i++)
		if (parts[i].len > 0)
			fed = SHA256_Update(
				  &ctx, parts[i].ptr, parts[i].len) == 1;
	return context_finish(&ctx, fed, out);
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

/* From the kernel: as good as a generator of ours, which costs a lock each
 * time and milliseconds at the first. */
enum res
digest_random(void *out, size_t len)
{
	uint8_t *p = out;
	while (len > 0) {
		ssize_t n = getrandom(p, len, 0);
		if (n < 0 && errno != EINTR)
			return RES_IO;
		if (n > 0) {
			p += n;
			len -= (size_t)n;
		}
	}
	return RES_OK;
}
