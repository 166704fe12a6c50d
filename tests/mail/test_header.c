#include "hn_test.h"

#include <stdio.h>

#include "mail/header.h"

static struct arena *arena;

static int
setup(void **state)
{
	(void)state;
	arena = arena_new((size_t)256 << 20);
	return arena == NULL;
}

static int
teardown(void **state)
{
	(void)state;
	arena_free(&arena);
	return 0;
}

static void
add(struct header *h, const char *name, const char *value)
{
	assert_ok(header_add(h, str_c(name), str_c(value)));
}

static void
test_order_and_lookup(void **state)
{
	(void)state;
	struct header *h = header_new(arena, 0);
	add(h, "Received", " one");
	add(h, "From", " a@example.org");
	add(h, "received", " two");
	add(h, "RECEIVED", " three");
	assert_int_equal(header_count(h), 4);
	assert_int_equal(header_count_name(h, STR("rEceived")), 3);
	assert_int_equal(header_count_name(h, STR("Subject")), 0);
	assert_null(header_find(h, STR("Subject")));
	assert_null(header_find_last(h, STR("Subject")));
	assert_null(header_at(h, 4));

	const struct field *f = header_find(h, STR("received"));
	assert_str(f->value, " one");
	assert_str(f->name, "Received");
	assert_int_equal(f->index, 0);
	assert_int_equal(f->occurrence, 1);
	f = header_next_same(h, f);
	assert_str(f->value, " two");
	assert_int_equal(f->index, 2);
	assert_int_equal(f->occurrence, 2);
	f = header_next_same(h, f);
	assert_str(f->value, " three");
	assert_null(header_next_same(h, f));
	assert_ptr_equal(f, header_find_last(h, STR("Received")));
	f = header_prev_same(h, f);
	assert_str(f->value, " two");
	f = header_prev_same(h, f);
	assert_null(header_prev_same(h, f));
	assert_str(header_at(h, 1)->name, "From");
}

static void
test_bytes_are_kept(void **state)
{
	(void)state;
	struct header *h = header_new(arena, 0);
	add(h, "Subject \t",
	    "no space\r\n\tfold \x80\x01 \r bare\nnot a fold ");
	assert_str(header_at(h, 0)->name, "Subject");
	assert_str(header_at(h, 0)->raw_name, "Subject \t");
	assert_str(header_at(h, 0)->value,
	    "no space\r\n\tfold \x80\x01 \r bare\nnot a fold ");
	assert_non_null(header_find(h, STR("SUBJECT")));
	assert_null(header_find(h, STR("Subject ")));
	assert_ok(header_add(h, STR("X"), str_of("a\0b", 3)));
	assert_int_equal(header_at(h, 1)->value.len, 3);
	add(h, "", "");
	assert_int_equal(header_at(h, 2)->name.len, 0);
}

static void
test_milter_folds(void **state)
{
	(void)state;
	static const struct {
		const char *in, *out;
	} rows[] = {
		{ " a\n b\n\tc", " a\r\n b\r\n\tc" },
		{ "\n b", "\r\n b" },
		{ " a\r\n b", " a\r\n b" },
		{ " a\nb", " a\nb" },
		{ " a\n", " a\n" },
		{ " a\n\n b", " a\n\r\n b" },
	};
	struct header *h = header_new(arena, 0);
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		add(h, "X", rows[i].in);
		assert_str(header_at(h, i)->value, rows[i].out);
	}
}

static void
test_exact(void **state)
{
	(void)state;
	struct header *h = header_new(arena, 20);
	assert_int_equal(header_room(h), 20);
	assert_ok(header_add_exact(h, STR("X"), STR(" a\n b")));
	assert_str(header_at(h, 0)->value, " a\n b");
	assert_int_equal(header_room(h), 10);
	assert_int_equal(
	    header_add_exact(h, STR("X"), STR("123456")), RES_LIMIT);
	assert_true(header_overflowed(h));
}

static void
test_byte_limit(void **state)
{
	(void)state;
	/* Name 1 + value 5 + 4 = 10 bytes; the fold counts as it is stored. */
	for (size_t max = 9; max <= 11; max++) {
		struct header *h = header_new(arena, max);
		enum res r = header_add(h, STR("X"), STR("12\n\t"));
		assert_int_equal(r, max < 10 ? RES_LIMIT : RES_OK);
		assert_int_equal(header_overflowed(h), max < 10);
		assert_int_equal(header_count(h), max < 10 ? 0 : 1);
		assert_int_equal(header_bytes(h), max < 10 ? 0 : 10);
		if (max >= 10)
			assert_int_equal(
			    header_add(h, STR("Y"), STR("")), RES_LIMIT);
	}
	struct header *h = header_new(arena, 0);
	assert_int_equal(
	    header_add(h, str_of("x", SIZE_MAX / 2), STR("")), RES_LIMIT);
}

static void
test_field_limit(void **state)
{
	(void)state;
	struct header *h = header_new(arena, (size_t)64 << 20);
	for (size_t i = 0; i < HEADER_MAX_FIELDS; i++) {
		char name[32];
		int n = snprintf(name, sizeof name, "X-%zu", i / 2);
		assert_ok(header_add(h, str_of(name, (size_t)n), STR(" v")));
	}
	assert_false(header_overflowed(h));
	assert_int_equal(header_add(h, STR("Y"), STR(" v")), RES_LIMIT);
	assert_true(header_overflowed(h));
	assert_int_equal(header_count(h), HEADER_MAX_FIELDS);

	/* All are found, each twice, and picked bottom-up. */
	struct header_pick *p = header_pick_new(arena, h);
	for (size_t i = 0; i < HEADER_MAX_FIELDS / 2; i++) {
		char text[32];
		const struct field *f;
		int n = snprintf(text, sizeof text, "x-%zu", i);
		struct str name = str_of(text, (size_t)n);
		assert_int_equal(header_count_name(h, name), 2);
		assert_ok(header_pick_take(p, name, &f));
		assert_int_equal(f->index, 2 * i + 1);
		assert_ok(header_pick_take(p, name, &f));
		assert_int_equal(f->index, 2 * i);
		assert_int_equal(header_pick_take(p, name, &f), RES_NOTFOUND);
	}
}

static void
test_one_name_many_times(void **state)
{
	(void)state;
	struct header *h = header_new(arena, (size_t)64 << 20);
	for (size_t i = 0; i < HEADER_MAX_FIELDS; i++)
		add(h, "Authentication-Results", " x");
	size_t n = 0;
	for (const struct field *f =
		 header_find_last(h, STR("authentication-results"));
	     f != NULL; f = header_prev_same(h, f))
		n++;
	assert_int_equal(n, HEADER_MAX_FIELDS);
}

static void
test_pick(void **state)
{
	(void)state;
	struct header *h = header_new(arena, 0);
	add(h, "A", "1");
	add(h, "B", "2");
	add(h, "a", "3");
	struct header_pick *p = header_pick_new(arena, h);
	struct header_pick *other = header_pick_new(arena, h);
	const struct field *f = NULL;
	assert_ok(header_pick_take(p, STR("A"), &f));
	assert_str(f->value, "3");
	assert_ok(header_pick_take(p, STR("b"), &f));
	assert_str(f->value, "2");
	assert_ok(header_pick_take(p, STR("a"), &f));
	assert_str(f->value, "1");
	assert_int_equal(header_pick_take(p, STR("a"), &f), RES_NOTFOUND);
	assert_int_equal(header_pick_take(p, STR("c"), &f), RES_NOTFOUND);
	assert_str(f->value, "1");
	assert_ok(header_pick_take(other, STR("a"), &f));
	assert_str(f->value, "3");
}

static void
test_unfold(void **state)
{
	(void)state;
	static const struct {
		const char *in, *out;
	} rows[] = {
		{ "", "" },
		{ " a ", "a" },
		{ " a\r\n b", "a b" },
		{ "\r\n a\r\n\t\r\n b\r\n ", "a\t b" },
		{ "a\r\nb", "a\r\nb" },
		{ "a\rb\nc", "a\rb\nc" },
	};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
		assert_str(
		    header_unfold(arena, str_c(rows[i].in)), rows[i].out);
	assert_non_null(header_unfold(arena, STR_EMPTY).ptr);
}

/* The n-th allocation fails: what was added stays usable. */
static void
test_no_memory(void **state)
{
	(void)state;
	size_t added = 0;
	for (size_t max = 16; added < 400; max += 1000) {
		struct arena *a = arena_new(max);
		struct header *h = header_new(a, 0);
		enum res r = RES_OK;
		added = 0;
		while (h != NULL && added < 400 && r == RES_OK) {
			char name[16];
			snprintf(name, sizeof name, "X-%zu", added);
			r = header_add(h, str_c(name), STR(" v"));
			added += r == RES_OK;
		}
		if (h != NULL) {
			assert_int_equal(header_count(h), added);
			assert_int_equal(header_overflowed(h), r != RES_OK);
			assert_true(r == RES_OK || r == RES_NOMEM);
			assert_int_equal(
			    header_find(h, STR("X-0")) != NULL, added > 0);
		}
		arena_free(&a);
	}
}

static void
test_name_valid(void **state)
{
	(void)state;
	assert_true(header_name_valid(STR("Subject")));
	assert_true(header_name_valid(STR("!~")));
	assert_false(header_name_valid(STR("")));
	assert_false(header_name_valid(STR("a:b")));
	assert_false(header_name_valid(STR("a b")));
	assert_false(header_name_valid(STR("a\x7f")));
	assert_false(header_name_valid(STR("\xc3\xa9")));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
		    test_order_and_lookup, setup, teardown),
		cmocka_unit_test_setup_teardown(
		    test_bytes_are_kept, setup, teardown),
		cmocka_unit_test_setup_teardown(
		    test_milter_folds, setup, teardown),
		cmocka_unit_test_setup_teardown(test_exact, setup, teardown),
		cmocka_unit_test_setup_teardown(
		    test_byte_limit, setup, teardown),
		cmocka_unit_test_setup_teardown(
		    test_field_limit, setup, teardown),
		cmocka_unit_test_setup_teardown(
		    test_one_name_many_times, setup, teardown),
		cmocka_unit_test_setup_teardown(test_pick, setup, teardown),
		cmocka_unit_test_setup_teardown(test_unfold, setup, teardown),
		cmocka_unit_test(test_no_memory),
		cmocka_unit_test(test_name_valid),
	};
	return cmocka_run_group_tests_name("mail/header", tests, NULL, NULL);
}
