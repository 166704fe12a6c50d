#include "hn_test.h"

#include "base/hash.h"

static void
test_bytes_matter(void **state)
{
	(void)state;
	char text[40];
	memset(text, 'a', sizeof text);
	for (size_t n = 0; n <= sizeof text; n++) {
		uint64_t h = hash_bytes(str_of(text, n));
		assert_true(h == hash_bytes(str_of(text, n)));
		if (n < sizeof text)
			assert_true(h != hash_bytes(str_of(text, n + 1)));
		for (size_t i = 0; i < n; i++) {
			text[i] ^= 1;
			assert_true(h != hash_bytes(str_of(text, n)));
			text[i] ^= 1;
		}
	}
}

/* Folds exactly the 26 capitals, at every place of a word. */
static void
test_lower(void **state)
{
	(void)state;
	for (int c = 0; c < 256; c++) {
		for (size_t place = 0; place < 20; place++) {
			char a[20], b[20];
			memset(a, '.', sizeof a);
			memset(b, '.', sizeof b);
			a[place] = (char)c;
			b[place] = ascii_lower((char)c);
			assert_true(hash_lower(str_of(a, 20)) ==
			    hash_lower(str_of(b, 20)));
			b[place] = (char)(c ^ 0x20);
			assert_int_equal(hash_lower(str_of(a, 20)) ==
				hash_lower(str_of(b, 20)),
			    ascii_is_alpha((char)c));
		}
	}
	assert_true(hash_lower(STR("abc")) == hash_bytes(STR("abc")));
	assert_true(hash_lower(STR("ABC")) != hash_bytes(STR("ABC")));
}

/* Names that differ little fall evenly into few slots. */
static void
test_spread(void **state)
{
	(void)state;
	unsigned slots[64] = { 0 };
	for (uint32_t i = 0; i < 64 * 256; i++)
		slots[hash_bytes(str_of(&i, sizeof i)) & 63]++;
	for (size_t i = 0; i < 64; i++)
		assert_in_range(slots[i], 128, 384);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bytes_matter),
		cmocka_unit_test(test_lower),
		cmocka_unit_test(test_spread),
	};
	return cmocka_run_group_tests_name("base/hash", tests, NULL, NULL);
}
