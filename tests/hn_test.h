/* What every cmocka test includes: the headers cmocka wants before its own,
 * and shorthands for views. One group per program, so that its TAP output
 * has one plan. */
#ifndef HN_TEST_H
#define HN_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/str.h"

#define assert_str(s, literal) hn_assert_str((s), (literal), __FILE__, __LINE__)

static inline void
hn_assert_str(struct str s, const char *want, const char *file, int line)
{
	if (!str_eq(s, str_c(want))) {
		print_error("got \"%.*s\", expected \"%s\"\n", STR_ARG(s), want);
		_fail(file, line);
	}
}

#define assert_ok(call) assert_int_equal((call), RES_OK)

#endif
