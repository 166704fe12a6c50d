#include "flow/longline.h"

#include <string.h>

struct longline {
	struct sink sink;
	size_t used; /* octets of the line under way, its CR included */
	bool *seen;
};

static void
push(struct sink *s, const char *bytes, size_t len)
{
	struct longline *l = (struct longline *)s;
	while (len > 0 && !*l->seen) {
		const char *end = memchr(bytes, '\n', len);
		size_t n = end != NULL ? (size_t)(end - bytes) : len;
		l->used += n;
		if (l->used > LONGLINE_MAX_OCTETS + 1)
			*l->seen = true;
		if (end == NULL)
			return;
		l->used = 0;
		bytes += n + 1;
		len -= n + 1;
	}
}

static enum res
finish(struct sink *s)
{
	struct longline *l = (struct longline *)s;
	/* a last line without its CRLF */
	if (l->used > LONGLINE_MAX_OCTETS)
		*l->seen = true;
	return RES_OK;
}

struct sink *
longline_sink(struct arena *a, bool *out_seen)
{
	struct longline *l = ARENA_NEW(a, struct longline);
	if (l == NULL)
		return NULL;
	*l = (struct longline){ { push, finish }, 0, out_seen };
	return &l->sink;
}
