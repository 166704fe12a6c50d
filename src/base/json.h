/* Writes JSON (RFC 8259) into a buf, one call per token; commas are placed by
 * themselves. Bytes that are no valid UTF-8 become U+FFFD, control bytes are
 * escaped: hostile mail cannot break a line. The buf's sticky error is the
 * only one. Depth at most 32. */
#ifndef BASE_JSON_H
#define BASE_JSON_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/str.h"

struct json {
	struct buf *out;
	uint32_t filled; /* bit d: something was written at depth d */
	unsigned depth;
};

void json_init(struct json *j, struct buf *out);
void json_open(struct json *j, char bracket); /* '{' or '[' */
void json_close(struct json *j, char bracket); /* '}' or ']' */
void json_key(struct json *j, const char *key);
void json_str(struct json *j, struct str s);
void json_int(struct json *j, int64_t n);
void json_bool(struct json *j, bool b);
void json_null(struct json *j);

/* The pairs that come up again and again. */
void json_key_str(struct json *j, const char *key, struct str s);
void json_key_c(struct json *j, const char *key, const char *s); /* NULL: null */
void json_key_int(struct json *j, const char *key, int64_t n);
void json_key_bool(struct json *j, const char *key, bool b);

#endif
