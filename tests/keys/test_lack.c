/* Each allocation fails once: a signature is then not wrong and a key not
 * malformed, they are unknown. */
#include "keys/lack.h"

#include <sys/socket.h>

#include "base/clock.h"
#include "hn_test.h"
#include "keys/keyring.h"
#include "keys/privkey.h"
#include "keys/pubkey.h"
#include "keys/remote.h"
#include "nth_malloc.h"

struct material {
	enum key_type type;
	struct buf public, signature;
	uint8_t digest[32];
};

static void
make(struct material *m, enum key_type type)
{
	struct privkey *k = NULL;
	*m = (struct material){ .type = type, .digest = { 7 } };
	buf_init(&m->public, 2048);
	buf_init(&m->signature, 2048);
	assert_ok(privkey_generate(type, type == KEY_RSA ? 2048 : 0, NULL, &k));
	assert_ok(privkey_public(k, &m->public));
	assert_ok(privkey_sign(k, m->digest, &m->signature));
	privkey_free(&k);
}

static enum res
from(const struct material *m, struct pubkey **out)
{
	return m->type == KEY_RSA ?
	    pubkey_from_rsa(buf_str(&m->public), out) :
	    pubkey_from_ed25519(buf_str(&m->public), out);
}

/* One way to fail for each n; false when there was none any more. */
static bool
one(const struct material *m, long n)
{
	struct pubkey *k = NULL;
	bool fits = true;
	atomic_store(&nth_malloc, n);
	enum res r = from(m, &k);
	assert_true(r == RES_OK || r == RES_NOMEM);
	if (r == RES_OK)
		r = pubkey_verify(k, m->digest, buf_str(&m->signature), &fits);
	assert_true(r == RES_OK || r == RES_NOMEM);
	assert_true(r != RES_OK || fits);
	bool failed = atomic_exchange(&nth_malloc, 0) < 0;
	assert_true(r == RES_OK || failed);
	pubkey_unref(&k);
	return failed;
}

static void
each(enum key_type type)
{
	struct material m;
	long n = 1;
	make(&m, type);
	while (one(&m, n))
		n++;
	assert_true(n > 5);
	/* what is wrong is still called so */
	struct pubkey *k = NULL;
	bool fits = true;
	m.digest[0] ^= 1;
	assert_ok(from(&m, &k));
	assert_ok(pubkey_verify(k, m.digest, buf_str(&m.signature), &fits));
	assert_false(fits);
	pubkey_unref(&k);
	buf_done(&m.public);
	buf_done(&m.signature);
}

#define MANY 1000000

/* Allocations of one signature, of which the n-th fails (0: none); it is
 * right, or there is none. */
static long
sign_once(const struct privkey *k, struct pubkey *pub, long n)
{
	uint8_t digest[32] = { 7 };
	struct buf signature;
	bool fits = false;
	buf_init(&signature, 2048);
	atomic_store(&nth_malloc, n > 0 ? n : MANY);
	enum res r = privkey_sign(k, digest, &signature);
	long used = MANY - atomic_exchange(&nth_malloc, 0);
	if (r == RES_OK) {
		assert_ok(pubkey_verify(
		    pub, digest, buf_str(&signature), &fits));
		assert_true(fits);
	}
	buf_done(&signature);
	return used;
}

/* Each 32nd signature renews what hides the key's work, and allocates more for
 * it; when that fails, what follows would be wrong. */
static void
blinding_is_renewed(void **state)
{
	struct privkey *k = NULL;
	struct pubkey *pub = NULL;
	struct buf public;
	(void)state;
	buf_init(&public, 2048);
	assert_ok(privkey_generate(KEY_RSA, 1024, NULL, &k));
	assert_ok(privkey_public(k, &public));
	assert_ok(pubkey_from_rsa(buf_str(&public), &pub));
	(void)sign_once(k, pub, 0);
	long usual = sign_once(k, pub, 0), renewal = usual;
	for (int i = 0; i < 64 && renewal <= usual; i++)
		renewal = sign_once(k, pub, 0);
	assert_true(renewal > usual);
	for (long n = 1; n <= renewal; n++) {
		for (int i = 0; i < 40; i++)
			if (sign_once(k, pub, 0) > usual)
				break;
		for (int i = 0; i < 31; i++)
			(void)sign_once(k, pub, 0);
		(void)sign_once(k, pub, n);
		for (int i = 0; i < 3; i++)
			(void)sign_once(k, pub, 0);
	}
	privkey_free(&k);
	pubkey_unref(&pub);
	buf_done(&public);
}

static void
rsa(void **state)
{
	(void)state;
	each(KEY_RSA);
}

static void
ed25519(void **state)
{
	(void)state;
	each(KEY_ED25519);
}

/* A request that the signing side has no memory for is one that failed: the
 * next is answered. */
static void
remote_goes_on(void **state)
{
	struct signer *ring = NULL, *client = NULL;
	struct remote_server *server = NULL;
	struct keydir none = { 0 };
	struct signing_key key = { .id = 7, .generation = 1 };
	const uint8_t digest[32] = { 7 };
	struct buf out;
	int pair[2];
	(void)state;
	buf_init(&out, 2048);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	assert_ok(keyring_from_keydir(&none, NULL, &ring));
	assert_ok(remote_new(0, &client));
	assert_ok(remote_attach(client, pair[0]));
	assert_ok(remote_server_new(ring, pair[1], &server));
	assert_ok(remote_wait_ready(client, clock_mono_us() + 20000000));
	for (long n = 1; n < 4; n++) {
		atomic_store(&nth_malloc, n);
		enum res r = client->sign(client, &key, digest, &out);
		bool failed = atomic_exchange(&nth_malloc, 0) < 0;
		assert_int_equal(r, failed ? RES_IO : RES_NOTFOUND);
	}
	assert_int_equal(
	    client->sign(client, &key, digest, &out), RES_NOTFOUND);
	signer_free(&client);
	remote_server_free(&server);
	signer_free(&ring);
	buf_done(&out);
}

int
main(void)
{
	/* cmocka would print a skipped test as a failed one */
	if (!NTH_MALLOC) {
		puts("1..1\nok 1 - lack # SKIP the sanitizer's own malloc is "
		     "in use");
		return 0;
	}
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rsa),
		cmocka_unit_test(ed25519),
		cmocka_unit_test(blinding_is_renewed),
		cmocka_unit_test(remote_goes_on),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
