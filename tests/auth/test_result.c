#include "auth/result.h"

#include "hn_test.h"

/* RFC 8601 §2.7, written down once more. */
static const struct {
	enum auth_result result;
	const char *word;
} words[] = {
	{ AUTH_NONE, "none" },
	{ AUTH_PASS, "pass" },
	{ AUTH_FAIL, "fail" },
	{ AUTH_SOFTFAIL, "softfail" },
	{ AUTH_POLICY, "policy" },
	{ AUTH_NEUTRAL, "neutral" },
	{ AUTH_TEMPERROR, "temperror" },
	{ AUTH_PERMERROR, "permerror" },
};

static void
all_words(void **state)
{
	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		assert_string_equal(
		    auth_result_word(words[i].result), words[i].word);
}

int
main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(all_words) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
