#include "base/res.h"

const char *
res_text(enum res r)
{
	switch (r) {
	case RES_OK:
		return "ok";
	case RES_NOMEM:
		return "out of memory";
	case RES_LIMIT:
		return "limit reached";
	case RES_SYNTAX:
		return "syntax error";
	case RES_IO:
		return "input/output error";
	case RES_AGAIN:
		return "temporarily unavailable";
	case RES_NOTFOUND:
		return "not found";
	case RES_EXISTS:
		return "exists already";
	case RES_DENIED:
		return "permission denied";
	case RES_UNSUPPORTED:
		return "not supported";
	case RES_CORRUPT:
		return "damaged data";
	case RES_INVALID:
		return "invalid value";
	case RES_TIMEOUT:
		return "timed out";
	}
	return "unknown result";
}
