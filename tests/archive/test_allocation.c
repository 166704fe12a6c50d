/* The n-th allocation of the whole process fails, for every n that a store's
 * life has: opening, storing, indexing, searching, closing. Nothing may crash;
 * what was acknowledged is there afterwards, and the store goes on. The same
 * for an index that is to forget a message: it does, or nothing is left of
 * the attempt.
 *
 * HANAPER_ALLOCATIONS=all tries each n; else every 211th, from a place that
 * differs by process. Not under ASan, which has its own malloc. */
#include "archive/index/forget.h"
#include "archive/index/generations.h"
#include "archive/search/search.h"
#include "nth_malloc.h"
#include "store_test.h"

/* Crashes are tested elsewhere, and this is done thousands of times. */
struct life {
	char path[PATH_MAX];
	unsigned long long next, acknowledged[64];
	size_t count;
};

/* What test_submit does, but it may fail anywhere. */
static enum res
submit(struct store *s, unsigned long long n)
{
	char text[4096];
	uint64_t id;
	enum res r = RES_NOMEM;
	struct arena *a = arena_new(0);
	struct spool *sp = a != NULL ? spool_new(a, s) : NULL;
	if (sp != NULL) {
		struct str body = test_text(text, sizeof text, n);
		sink_push(spool_sink(sp), body.ptr, body.len);
		r = sink_finish(spool_sink(sp));
		const struct store_message m = { .family = "mail",
			.time_us = TEST_TIME,
			.meta = STR("\1\3\0\3\0\0\0a@b"),
			.body = sp };
		if (r == RES_OK)
			r = store_submit(s, &m, &id);
	}
	arena_free(&a);
	return r;
}

static void
search(const char *path)
{
	struct archive_reader *r;
	struct query *q;
	struct search_hit *hits;
	struct search_coverage coverage;
	struct str cursor;
	struct err err = { "" };
	size_t count;
	const struct search_options o = { .snippets = true };
	if (archive_reader_open(path, &err, &r) != RES_OK)
		return;
	struct arena *a = arena_new(0);
	enum res res = a != NULL ? query_parse(a, STR("message OR x*"),
	    TEST_TIME / 1000000, &err, &q) : RES_NOMEM;
	if (res == RES_OK)
		res = archive_search(r, a, q, &o, &err, &hits, &count, &cursor,
		    &coverage);
	(void)res;
	arena_free(&a);
	archive_reader_close(&r);
}

/* False: no allocation failed any more. */
static bool
one_life(struct life *l, long n)
{
	struct store *s;
	struct err err = { "" };
	const struct store_options o = { .path = l->path,
		.retry_us = 1,
		.io = test_fast_io(),
		.clock = { TEST_TIME } };
	atomic_store(&nth_malloc, n + 1);
	if (store_open(&o, &err, &s) == RES_OK) {
		for (int i = 0; i < 3; i++) {
			unsigned long long number = l->next++;
			if (submit(s, number) == RES_OK)
				l->acknowledged[l->count++] = number;
		}
		store_close(&s);
	}
	search(l->path);
	return atomic_exchange(&nth_malloc, 0) < 0;
}

static void
judge(const struct life *l, long n)
{
	struct inventory v;
	struct store *s;
	struct err err = { "" };
	const struct store_options o = { .path = l->path,
		.retry_us = 1,
		.io = test_fast_io(),
		.clock = { TEST_TIME } };
	if (store_open(&o, &err, &s) != RES_OK)
		fail_msg("allocation %ld: %s", n, err.text);
	assert_ok(submit(s, 1000000));
	store_close(&s);
	inventory_take(&v, l->path);
	for (size_t i = 0; i < l->count; i++) {
		char text[4096];
		size_t found = inventory_count(&v,
		    test_text(text, sizeof text, l->acknowledged[i]));
		if (found != 1)
			fail_msg("allocation %ld: message %llu is there %zu "
			    "times", n, l->acknowledged[i], found);
	}
	inventory_done(&v);
}

static void
nth_allocation(void **state)
{
	const char *which = getenv("HANAPER_ALLOCATIONS");
	long step = which != NULL && strcmp(which, "all") == 0 ? 1 : 211;
	long first = step == 1 ? 0 : (long)getpid() % step;
	bool failed = true;
	long n = first;
	/* libcrypto cannot be started without memory: that is not ours */
	struct life warm = { .next = 1 };
	scratch_make(warm.path);
	assert_false(one_life(&warm, -1));
	judge(&warm, -1);
	scratch_remove(warm.path);
	for (; failed; n += step) {
		struct life l = { .next = 1 };
		scratch_make(l.path);
		failed = one_life(&l, n);
		judge(&l, n);
		scratch_remove(l.path);
	}
	print_message("up to allocation %ld\n", n);
	assert_true(n > 300);
}

static void
nth_allocation_of_forgetting(void **state)
{
	(void)state;
	const char *which = getenv("HANAPER_ALLOCATIONS");
	long step = which != NULL && strcmp(which, "all") == 0 ? 1 : 37;
	long n = step == 1 ? 0 : (long)getpid() % step;
	const uint64_t number = 1;
	struct life l = { .next = 1 };
	char dir[PATH_MAX];
	bool failed = true;
	scratch_make(l.path);
	assert_false(one_life(&l, -1));
	assert_ok(io_path(dir, "%s/families/mail/2026-05.1", l.path));
	for (; failed; n += step) {
		struct err err = { "" };
		atomic_store(&nth_malloc, n + 1);
		enum res r = forget_prepare(dir, &number, 1, NULL, &err);
		failed = atomic_exchange(&nth_malloc, 0) < 0;
		if (generation_exists(dir, GENERATION_WORK) ||
		    generation_exists(dir, GENERATION_NEW) != (r == RES_OK))
			fail_msg("allocation %ld: %s", n, err.text);
		if (!failed)
			assert_ok(r);
	}
	print_message("up to allocation %ld\n", n);
	assert_true(n > 300);
	scratch_remove(l.path);
}

int
main(void)
{
	/* cmocka would print a skipped test as a failed one */
	if (!NTH_MALLOC) {
		puts("1..1\nok 1 - nth_allocation # SKIP the sanitizer's own "
		     "malloc is in use");
		return 0;
	}
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nth_allocation),
		cmocka_unit_test(nth_allocation_of_forgetting),
	};
	return cmocka_run_group_tests_name("allocation", tests, NULL, NULL);
}
