/* The result words of RFC 8601 §2.7, for every method. */
#ifndef AUTH_RESULT_H
#define AUTH_RESULT_H

enum auth_result {
	AUTH_NONE,
	AUTH_PASS,
	AUTH_FAIL,
	AUTH_SOFTFAIL,
	AUTH_POLICY,
	AUTH_NEUTRAL,
	AUTH_TEMPERROR,
	AUTH_PERMERROR,
};

/* "none", "pass", … */
const char *auth_result_word(enum auth_result r);

#endif
