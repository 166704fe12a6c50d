/* A stream that bytes are pushed into. Chunk borders mean nothing: any split
 * of the same bytes gives the same result, and each sink has a test of that.
 * Errors are sticky inside the sink: push may go on being called, finish
 * tells. finish is called exactly once, after the last push.
 *
 * A sink that feeds another holds it as `next` and finishes it. Sinks live in
 * an arena; there is no free. */
#ifndef BASE_SINK_H
#define BASE_SINK_H

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/res.h"

struct sink {
	void (*push)(struct sink *s, const char *bytes, size_t len);
	enum res (*finish)(struct sink *s);
};

static inline void
sink_push(struct sink *s, const char *bytes, size_t len)
{
	s->push(s, bytes, len);
}

static inline HN_CHECK enum res
sink_finish(struct sink *s)
{
	return s->finish(s);
}

/* Everything to each of `count` sinks, in order. finish finishes all and
 * returns the first error. The array is copied. NULL without memory. */
struct sink *sink_tee(struct arena *a, struct sink *const *sinks, size_t count);

/* Appends to `b` (kept by the caller); finish returns b->error. */
struct sink *sink_buf(struct arena *a, struct buf *b);

/* Counts bytes into *count and passes them on; past `max` nothing is passed
 * and finish returns RES_LIMIT. `next` may be NULL. */
struct sink *sink_limit(
    struct arena *a, uint64_t max, uint64_t *count, struct sink *next);

/* Drops everything. */
struct sink *sink_null(void);

#endif
