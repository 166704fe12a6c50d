#include "keys/keyring.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "key_test.h"

static struct keyfile
file_of(const char *domain, const char *selector, enum key_type type,
    enum key_state key_state)
{
	return (struct keyfile){ .domain = str_c(domain),
		.selector = str_c(selector),
		.state = key_state,
		.fd = test_key_fd(type),
		.path = str_c(selector) };
}

static bool
signs(struct signer *s, const struct signing_key *key)
{
	uint8_t digest[32] = { 9 };
	struct buf out;
	struct pubkey *pub = NULL;
	bool fits = false;
	buf_init(&out, 2048);
	if (s->sign(s, key, digest, &out) == RES_OK) {
		assert_ok(key->type == KEY_RSA ?
			pubkey_from_rsa(key->public_der, &pub) :
			pubkey_from_ed25519(key->public_der, &pub));
		assert_ok(pubkey_verify(pub, digest, buf_str(&out), &fits));
		pubkey_unref(&pub);
	}
	buf_done(&out);
	return fits;
}

static void
order_and_states(void **state)
{
	struct keyfile files[] = {
		file_of("b.example", "ed", KEY_ED25519, KEY_STATE_ACTIVE),
		file_of("b.example", "rsa", KEY_RSA, KEY_STATE_ACTIVE),
		file_of("b.example", "soon", KEY_RSA, KEY_STATE_NEXT),
		file_of("a.example", "z", KEY_ED25519, KEY_STATE_ACTIVE),
		file_of("c.example", "gone", KEY_RSA, KEY_STATE_RETIRED),
		file_of("bb.example", "k", KEY_ED25519, KEY_STATE_ACTIVE),
	};
	struct keydir d = { 6, files };
	struct signer *s = NULL;
	struct err e = { "" };
	assert_ok(keyring_from_keydir(&d, &e, &s));
	struct manifest *m = s->manifest(s);
	assert_int_equal(manifest_count(m), 4);
	size_t n;
	const struct signing_key *k = manifest_find(m, STR("b.example"), &n);
	assert_int_equal(n, 2);
	assert_int_equal(k[0].type, KEY_RSA); /* RSA first */
	assert_str(k[0].selector, "rsa");
	assert_int_equal(k[0].bits, 1024);
	assert_int_equal(k[1].type, KEY_ED25519);
	assert_null(manifest_find(m, STR("c.example"), &n));
	assert_int_equal(n, 0);
	assert_null(manifest_find(m, STR("b.exampl"), &n));
	assert_null(manifest_find(m, STR_EMPTY, &n));
	assert_null(manifest_find(m, STR("z"), &n));
	assert_null(manifest_at(m, 4));
	for (size_t i = 0; i < 4; i++)
		assert_true(signs(s, manifest_at(m, i)));
	manifest_unref(&m);
	signer_free(&s);
	assert_null(s);
	signer_free(&s);
	for (size_t i = 0; i < 6; i++)
		close(files[i].fd);
}

static void
reload(void **state)
{
	struct keyfile files[] = {
		file_of("a.example", "k", KEY_ED25519, KEY_STATE_ACTIVE),
		file_of("b.example", "k", KEY_ED25519, KEY_STATE_ACTIVE),
	};
	struct keydir d = { 2, files };
	struct signer *s = NULL;
	struct err e = { "" };
	size_t n;
	assert_ok(keyring_from_keydir(&d, &e, &s));
	struct manifest *old = s->manifest(s);

	/* a goes, b stays (with another id) */
	struct keydir d2 = { 1, files + 1 };
	assert_ok(keyring_reload(s, &d2, &e));
	struct manifest *now = s->manifest(s);
	assert_int_equal(manifest_count(now), 1);
	assert_int_equal(manifest_count(old), 2);
	assert_int_not_equal(manifest_at(now, 0)->generation,
	    manifest_at(old, 0)->generation);
	assert_true(signs(s, manifest_find(now, STR("b.example"), &n)));
	/* a message that began before: its key is still there, or not */
	assert_true(signs(s, manifest_find(old, STR("b.example"), &n)));
	uint8_t digest[32] = { 0 };
	struct buf out;
	buf_init(&out, 2048);
	assert_int_equal(s->sign(s, manifest_find(old, STR("a.example"), &n),
			     digest, &out), RES_NOTFOUND);
	assert_int_equal(out.len, 0);

	/* same names, other key: never a signature with the wrong one */
	struct keyfile other =
	    file_of("b.example", "k", KEY_ED25519, KEY_STATE_ACTIVE);
	struct keydir d3 = { 1, &other };
	assert_ok(keyring_reload(s, &d3, &e));
	assert_int_equal(s->sign(s, manifest_find(now, STR("b.example"), &n),
			     digest, &out), RES_NOTFOUND);

	/* a bad one changes nothing */
	struct keyfile bad = other;
	bad.path = STR("b.example/k.pem");
	bad.fd = open("/dev/null", O_RDONLY);
	struct keydir d4 = { 1, &bad };
	assert_int_equal(keyring_reload(s, &d4, &e), RES_SYNTAX);
	assert_non_null(strstr(e.text, "b.example/k.pem: no private key"));
	struct manifest *still = s->manifest(s);
	assert_true(signs(s, manifest_at(still, 0)));
	close(bad.fd);
	err_clear(&e);
	assert_int_equal(keyring_reload(s, &d4, &e), RES_IO); /* closed */
	assert_non_null(strstr(e.text, "cannot read"));

	struct keydir none = { 0, NULL };
	assert_ok(keyring_reload(s, &none, &e));
	buf_done(&out);
	manifest_unref(&still);
	manifest_unref(&now);
	manifest_unref(&old);
	signer_free(&s);
	close(files[0].fd);
	close(files[1].fd);
	close(other.fd);
}

static void
single(void **state)
{
	struct privkey *k = NULL;
	struct signer *s = NULL;
	assert_ok(privkey_generate(KEY_ED25519, 0, NULL, &k));
	assert_ok(keyring_single(STR("a.example"), STR("sel"), &k, &s));
	assert_null(k);
	struct manifest *m = s->manifest(s);
	assert_str(manifest_at(m, 0)->selector, "sel");
	assert_true(signs(s, manifest_at(m, 0)));
	struct signing_key forged = *manifest_at(m, 0);
	uint8_t digest[32] = { 0 };
	struct buf out;
	buf_init(&out, 2048);
	forged.id = 7;
	assert_int_equal(s->sign(s, &forged, digest, &out), RES_NOTFOUND);
	buf_done(&out);
	manifest_unref(&m);
	signer_free(&s);
}

static atomic_bool stop;

static void *
sign_on(void *arg)
{
	struct signer *s = arg;
	size_t bad = 0;
	do {
		struct manifest *m = s->manifest(s);
		if (!signs(s, manifest_at(m, 0)))
			bad++;
		manifest_unref(&m);
	} while (!atomic_load(&stop));
	return (void *)bad;
}

static void
reload_under_load(void **state)
{
	struct keyfile file =
	    file_of("a.example", "k", KEY_ED25519, KEY_STATE_ACTIVE);
	struct keydir d = { 1, &file };
	struct signer *s = NULL;
	pthread_t threads[3];
	assert_ok(keyring_from_keydir(&d, NULL, &s));
	atomic_store(&stop, false);
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(
		    pthread_create(&threads[i], NULL, sign_on, s), 0);
	for (int i = 0; i < 100; i++)
		assert_ok(keyring_reload(s, &d, NULL));
	atomic_store(&stop, true);
	for (size_t i = 0; i < 3; i++) {
		void *bad;
		pthread_join(threads[i], &bad);
		assert_int_equal((size_t)bad, 0);
	}
	signer_free(&s);
	close(file.fd);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(order_and_states),
		cmocka_unit_test(reload),
		cmocka_unit_test(single),
		cmocka_unit_test(reload_under_load),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
