#include "tests/hn_test.h"

#include <pthread.h>
#include <stdio.h>

#include "dns/cache.h"

#define S 1000000 /* one second */

static struct dns_answer *
make(const char *name, enum dns_status status, uint32_t ttl, size_t bytes)
{
	static char data[100000];
	struct dns_record r = { .data = str_of(data, bytes) };
	struct dns_answer *a = dns_answer_new(
	    str_c(name), DNS_TXT, status, ttl, &r, status == DNS_OK ? 1 : 0);
	assert_non_null(a);
	return a;
}

static void
put(struct dns_cache *c, const char *name, enum dns_status status, uint32_t ttl,
    size_t bytes, int64_t now)
{
	struct dns_answer *a = make(name, status, ttl, bytes);
	dns_cache_put(c, a, now);
	dns_answer_unref(&a);
}

static bool
has(struct dns_cache *c, const char *name, int64_t now)
{
	struct dns_answer *a = dns_cache_get(c, str_c(name), DNS_TXT, now);
	bool there = a != NULL;
	if (there)
		assert_str(a->name, name);
	dns_answer_unref(&a);
	return there;
}

static void
lives_for_its_ttl(void **state)
{
	struct dns_cache *c = dns_cache_new(0, 0);
	put(c, "a", DNS_OK, 10, 5, 100 * S);
	assert_true(has(c, "a", 100 * S));
	assert_true(has(c, "a", 110 * S - 1));
	assert_false(has(c, "a", 110 * S));
	assert_int_equal(dns_cache_count(c), 0);
	/* another type, another name */
	put(c, "a", DNS_OK, 10, 5, 0);
	assert_null(dns_cache_get(c, STR("a"), DNS_A, 0));
	assert_false(has(c, "aa", 0));
	dns_cache_free(&c);
	dns_cache_free(&c);
}

static void
negative_answers(void **state)
{
	struct dns_cache *c = dns_cache_new(0, 0);
	put(c, "nx", DNS_NXDOMAIN, 10, 0, 0);
	put(c, "nodata", DNS_NODATA, 100000, 0, 0);
	assert_true(has(c, "nx", 9 * S));
	assert_false(has(c, "nx", 10 * S));
	assert_true(has(c, "nodata", DNS_CACHE_MAX_NEGATIVE * (int64_t)S - 1));
	assert_false(has(c, "nodata", DNS_CACHE_MAX_NEGATIVE * (int64_t)S));
	dns_cache_free(&c);
}

static void
failures_are_not_kept(void **state)
{
	static const enum dns_status no[] = { DNS_SERVFAIL, DNS_TIMEOUT,
		DNS_BOGUS, DNS_BADNAME };
	struct dns_cache *c = dns_cache_new(0, 0);
	for (size_t i = 0; i < sizeof(no) / sizeof(no[0]); i++)
		put(c, "x", no[i], 100, 0, 0);
	put(c, "zero", DNS_OK, 0, 5, 0);
	assert_int_equal(dns_cache_count(c), 0);
	dns_cache_free(&c);
}

static void
newer_replaces_older(void **state)
{
	struct dns_cache *c = dns_cache_new(0, 0);
	put(c, "a", DNS_OK, 10, 5, 0);
	put(c, "a", DNS_OK, 20, 7, 0);
	assert_int_equal(dns_cache_count(c), 1);
	struct dns_answer *a = dns_cache_get(c, STR("a"), DNS_TXT, 15 * S);
	assert_non_null(a);
	assert_int_equal(a->records[0].data.len, 7);
	/* what was handed out outlives its entry */
	put(c, "a", DNS_NXDOMAIN, 20, 0, 0);
	assert_int_equal(a->records[0].data.len, 7);
	dns_answer_unref(&a);
	dns_cache_free(&c);
}

static void
bounded_in_number(void **state)
{
	/* 16 shards of 4 */
	struct dns_cache *c = dns_cache_new(64, 0);
	char name[16];
	for (int i = 0; i < 1000; i++) {
		snprintf(name, sizeof(name), "n%d", i);
		put(c, name, DNS_OK, 100, 5, 0);
		assert_true(has(c, name, 0));
		assert_true(dns_cache_count(c) <= 64);
	}
	assert_true(dns_cache_count(c) > 48);
	dns_cache_free(&c);
}

static void
least_recently_used_leaves(void **state)
{
	struct dns_cache *c = dns_cache_new(64, 0);
	char name[16];
	put(c, "kept", DNS_OK, 100, 5, 0);
	for (int i = 0; i < 1000; i++) {
		snprintf(name, sizeof(name), "n%d", i);
		put(c, name, DNS_OK, 100, 5, 0);
		assert_true(has(c, "kept", 0));
	}
	assert_false(has(c, "n0", 0));
	dns_cache_free(&c);
}

static void
bounded_in_bytes(void **state)
{
	/* 100,000 bytes a shard: one large answer in each at most */
	struct dns_cache *c = dns_cache_new(0, 1600000);
	char name[16];
	for (int i = 0; i < 200; i++) {
		snprintf(name, sizeof(name), "n%d", i);
		put(c, name, DNS_OK, 100, 60000, 0);
		assert_true(has(c, name, 0));
	}
	assert_true(dns_cache_count(c) <= 16);
	/* what never fits does not push out others */
	size_t before = dns_cache_count(c);
	put(c, "huge", DNS_OK, 100, 100000, 0);
	assert_int_equal(dns_cache_count(c), before);
	dns_cache_free(&c);
}

static void *
hammer(void *arg)
{
	struct dns_cache *c = arg;
	char name[16];
	for (int i = 0; i < 5000; i++) {
		snprintf(name, sizeof(name), "n%d", i % 150);
		struct dns_answer *a =
		    dns_cache_get(c, str_c(name), DNS_TXT, i * 1000);
		if (a == NULL) {
			a = dns_answer_new(
			    str_c(name), DNS_TXT, DNS_OK, 1, NULL, 0);
			if (a != NULL)
				dns_cache_put(c, a, i * 1000);
		}
		dns_answer_unref(&a);
	}
	return NULL;
}

static void
many_threads(void **state)
{
	struct dns_cache *c = dns_cache_new(100, 0);
	pthread_t threads[4];
	for (int i = 0; i < 4; i++)
		assert_int_equal(
		    pthread_create(&threads[i], NULL, hammer, c), 0);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	assert_true(dns_cache_count(c) <= 112);
	dns_cache_free(&c);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lives_for_its_ttl),
		cmocka_unit_test(negative_answers),
		cmocka_unit_test(failures_are_not_kept),
		cmocka_unit_test(newer_replaces_older),
		cmocka_unit_test(bounded_in_number),
		cmocka_unit_test(least_recently_used_leaves),
		cmocka_unit_test(bounded_in_bytes),
		cmocka_unit_test(many_threads),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
