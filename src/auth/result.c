#include "auth/result.h"

const char *
auth_result_word(enum auth_result r)
{
	switch (r) {
	case AUTH_NONE:
		return "none";
	case AUTH_PASS:
		return "pass";
	case AUTH_FAIL:
		return "fail";
	case AUTH_SOFTFAIL:
		return "softfail";
	case AUTH_POLICY:
		return "policy";
	case AUTH_NEUTRAL:
		return "neutral";
	case AUTH_TEMPERROR:
		return "temperror";
	case AUTH_PERMERROR:
		return "permerror";
	}
	return "temperror";
}
