#include "auth/key_record.h"

#include <pthread.h>
#include <stdio.h>

#include "base/buf.h"
#include "hn_test.h"
#include "vectors.h"

#define RSA "p=" RFC8463_RSA_P
/* The same key as a bare RSAPublicKey (KEY-04). */
#define BARE                                                                   \
	"p=MIGJAoGBAOQeU5CgFPNZGIazlXo2k/eJ1jpaTzxrmqF1HrDLlt05pvaMtCJj8nXo"   \
	"liLRC/H9vJjMI1vdb3XLcW60AIN/PBD8EL97/y4GwJH7LPUvGP48vqUe+ooqszesbi"   \
	"Gy1PlCO8c70/OjFnJVgvMF87YR4Lcincb7aSvI5MgpP6X8rjDdAgMBAAE="
#define ED25519 "p=" RFC8463_ED25519_P
#define ED25519_SPKI                                                           \
	"p=MCowBQYDK2VwAyEA11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo="

static const struct {
	const char *text;
	enum key_record_state state;
	const char *hint;
	enum key_type type;
	unsigned bits;
	bool testing, strict;
} rows[] = {
	{ RSA, KEY_RECORD_OK, NULL, KEY_RSA, 1024, false, false },
	{ "v=DKIM1; k=rsa; " RSA ";", KEY_RECORD_OK, NULL, KEY_RSA, 1024, false,
	    false },
	{ BARE, KEY_RECORD_OK, NULL, KEY_RSA, 1024, false, false },
	{ "k=ed25519; " ED25519, KEY_RECORD_OK, NULL, KEY_ED25519, 256, false,
	    false },
	{ "t=y; " RSA, KEY_RECORD_OK, NULL, KEY_RSA, 1024, true, false },
	{ "t=s:y:x; " RSA, KEY_RECORD_OK, NULL, KEY_RSA, 1024, true, true },
	{ "t= s ; " RSA, KEY_RECORD_OK, NULL, KEY_RSA, 1024, false, true },
	{ "t=Y; " RSA, KEY_RECORD_OK, NULL, KEY_RSA, 1024, false, false },
	{ "h=sha1 : sha256; s=other:email; g=*; n=note=20x; " RSA,
	    KEY_RECORD_OK, NULL, KEY_RSA, 1024, false, false },
	{ "n=caf\xc3\xa9; " RSA, KEY_RECORD_OK, NULL, KEY_RSA, 1024, false,
	    false },
	{ "v=DKIM1;\n k=rsa;\r\n" RSA, KEY_RECORD_OK, NULL, KEY_RSA, 1024,
	    false, false },
	/* not a key record */
	{ "", KEY_RECORD_SYNTAX, "not a tag list", KEY_RSA, 0, false, false },
	{ "v=spf1 -all", KEY_RECORD_SYNTAX, "v= is not first or not DKIM1",
	    KEY_RSA, 0, false, false },
	{ "k=rsa; v=DKIM1; " RSA, KEY_RECORD_SYNTAX,
	    "v= is not first or not DKIM1", KEY_RSA, 0, false, false },
	{ "v=dkim1; " RSA, KEY_RECORD_SYNTAX, "v= is not first or not DKIM1",
	    KEY_RSA, 0, false, false },
	{ "v=DKIM1", KEY_RECORD_SYNTAX, "no p=", KEY_RSA, 0, false, false },
	{ RSA "; " RSA, KEY_RECORD_SYNTAX, "not a tag list", KEY_RSA, 0, false,
	    false },
	{ "p=A", KEY_RECORD_SYNTAX, "p= is not base64", KEY_RSA, 0, false,
	    false },
	{ "p=AAAA", KEY_RECORD_SYNTAX, "p= holds no RSA public key", KEY_RSA, 0,
	    false, false },
	{ ED25519, KEY_RECORD_SYNTAX, "p= holds no RSA public key", KEY_RSA, 0,
	    false, false },
	{ "k=ed25519; p=AAAA", KEY_RECORD_SYNTAX, "p= is not 32 bytes long",
	    KEY_RSA, 0, false, false },
	{ "k=ed25519; " ED25519_SPKI, KEY_RECORD_SYNTAX,
	    "p= holds a SubjectPublicKeyInfo where the raw key belongs",
	    KEY_RSA, 0, false, false },
	/* a record, but not for us */
	{ "p=", KEY_RECORD_REVOKED, NULL, KEY_RSA, 0, false, false },
	{ "v=DKIM1; p= ; k=x", KEY_RECORD_REVOKED, NULL, KEY_RSA, 0, false,
	    false },
	{ "h=sha1; " RSA, KEY_RECORD_INAPPROPRIATE, "h= does not allow sha256",
	    KEY_RSA, 0, false, false },
	{ "h=; " RSA, KEY_RECORD_INAPPROPRIATE, "h= does not allow sha256",
	    KEY_RSA, 0, false, false },
	{ "s=tls; " RSA, KEY_RECORD_INAPPROPRIATE, "s= does not allow email",
	    KEY_RSA, 0, false, false },
	{ "k=dsa; " RSA, KEY_RECORD_INAPPROPRIATE, "unknown k=", KEY_RSA, 0,
	    false, false },
	/* exponent 4, exponent 1 */
	{ "p=MB4CGQDkHlOQoBTzWRiGs5V6NpP3idY6Wk08a5sCAQQ=", KEY_RECORD_UNUSABLE,
	    "exponent even or below 3", KEY_RSA, 0, false, false },
	{ "p=MB4CGQDkHlOQoBTzWRiGs5V6NpP3idY6Wk08a5sCAQE=", KEY_RECORD_UNUSABLE,
	    "exponent even or below 3", KEY_RSA, 0, false, false },
};

static void
expect_row(const struct key_record *k, size_t i)
{
	print_message("# %.60s\n", rows[i].text);
	assert_int_equal(k->state, rows[i].state);
	if (rows[i].hint != NULL)
		assert_string_equal(k->hint, rows[i].hint);
	else
		assert_null(k->hint);
	assert_int_equal(k->key != NULL, rows[i].state == KEY_RECORD_OK);
	assert_int_equal(k->reason == NULL, rows[i].state == KEY_RECORD_OK);
	if (k->key == NULL)
		return;
	assert_int_equal(k->type, rows[i].type);
	assert_int_equal(pubkey_type(k->key), rows[i].type);
	assert_int_equal(pubkey_bits(k->key), rows[i].bits);
	assert_int_equal(k->testing, rows[i].testing);
	assert_int_equal(k->strict_identity, rows[i].strict);
}

#define ROWS (sizeof rows / sizeof *rows)

static void
records(void **state)
{
	struct arena *a = arena_new(0);
	for (size_t i = 0; i < ROWS; i++) {
		struct key_record k;
		assert_ok(key_record_parse(a, str_c(rows[i].text), &k));
		expect_row(&k, i);
	}
	arena_free(&a);
}

static void
cached_records(void **state)
{
	struct key_cache *c = key_cache_new(0);
	uint64_t asked, known;
	for (int round = 0; round < 3; round++) {
		struct arena *a = arena_new(0);
		for (size_t i = 0; i < ROWS; i++) {
			struct key_record k;
			assert_ok(key_cache_get(c, a, str_c(rows[i].text), &k));
			expect_row(&k, i);
		}
		arena_free(&a);
	}
	key_cache_counts(c, &asked, &known);
	assert_int_equal(asked, 3 * ROWS);
	assert_int_equal(known, 2 * ROWS);
	key_cache_free(&c);
	assert_null(c);
	key_cache_free(&c);
}

/* A key outlives its cache and its place in it. */
static void
key_outlives_the_cache(void **state)
{
	struct key_cache *c = key_cache_new(1);
	struct arena *a = arena_new(0);
	struct key_record k;
	assert_ok(key_cache_get(c, a, STR(RSA), &k));
	for (int i = 0; i < 1000; i++) {
		char text[600];
		struct key_record other;
		struct arena *b = arena_new(0);
		snprintf(text, sizeof text, "n=%d; " RSA, i);
		assert_ok(key_cache_get(c, b, str_c(text), &other));
		assert_int_equal(other.state, KEY_RECORD_OK);
		arena_free(&b);
	}
	key_cache_free(&c);
	assert_int_equal(pubkey_bits(k.key), 1024);
	arena_free(&a);
}

/* The least recently used record goes first: one that is asked for all the
 * time stays, whatever passes by in its set. */
static void
used_records_stay(void **state)
{
	struct key_cache *c = key_cache_new(1);
	uint64_t asked, known;
	for (int i = 0; i < 500; i++) {
		char text[600];
		struct key_record k;
		struct arena *a = arena_new(0);
		assert_ok(key_cache_get(c, a, STR(RSA), &k));
		snprintf(text, sizeof text, "n=%d; " RSA, i);
		assert_ok(key_cache_get(c, a, str_c(text), &k));
		arena_free(&a);
	}
	key_cache_counts(c, &asked, &known);
	assert_int_equal(asked, 1000);
	assert_int_equal(known, 499);
	key_cache_free(&c);
}

static void
long_records(void **state)
{
	struct arena *a = arena_new(0);
	struct key_cache *c = key_cache_new(0);
	struct key_record k;
	struct buf b;
	buf_init(&b, 100000);
	buf_add_c(&b, RSA "; n=");
	while (b.len < KEY_RECORD_MAX_TEXT)
		buf_add_char(&b, 'x');
	for (int i = 0; i < 2; i++) {
		assert_ok(key_cache_get(c, a, buf_str(&b), &k));
		assert_int_equal(k.state, KEY_RECORD_OK);
	}
	uint64_t asked, known;
	key_cache_counts(c, &asked, &known);
	assert_int_equal(asked, 0); /* not for the cache */
	buf_add_char(&b, 'x');
	assert_ok(key_record_parse(a, buf_str(&b), &k));
	assert_int_equal(k.state, KEY_RECORD_SYNTAX);
	assert_string_equal(k.hint, "the record is too long");
	buf_done(&b);
	key_cache_free(&c);
	arena_free(&a);
}

static void *
ask_often(void *arg)
{
	struct key_cache *c = arg;
	size_t good = 0;
	for (int i = 0; i < 400; i++) {
		struct arena *a = arena_new(0);
		struct key_record k;
		char text[600];
		snprintf(text, sizeof text, "n=%d; " RSA, i % 37);
		if (key_cache_get(c, a, str_c(text), &k) == RES_OK &&
		    k.state == KEY_RECORD_OK && pubkey_bits(k.key) == 1024)
			good++;
		arena_free(&a);
	}
	return (void *)good;
}

static void
many_threads(void **state)
{
	struct key_cache *c = key_cache_new(8); /* crowded */
	pthread_t threads[4];
	for (size_t i = 0; i < 4; i++)
		assert_int_equal(
		    pthread_create(&threads[i], NULL, ask_often, c), 0);
	for (size_t i = 0; i < 4; i++) {
		void *good;
		pthread_join(threads[i], &good);
		assert_int_equal((size_t)good, 400);
	}
	key_cache_free(&c);
}

static void
out_of_memory(void **state)
{
	for (size_t limit = 1; limit < 600; limit += 7) {
		struct arena *a = arena_new(limit);
		struct key_record k;
		enum res r = key_record_parse(a, STR("k=rsa;\n" RSA), &k);
		assert_true(r == RES_OK || r == RES_NOMEM);
		if (r == RES_OK)
			assert_int_equal(k.state, KEY_RECORD_OK);
		arena_free(&a);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(records),
		cmocka_unit_test(cached_records),
		cmocka_unit_test(key_outlives_the_cache),
		cmocka_unit_test(used_records_stay),
		cmocka_unit_test(long_records),
		cmocka_unit_test(many_threads),
		cmocka_unit_test(out_of_memory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
