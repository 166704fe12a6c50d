/* Canonicalization: the fast one and the reference give the same, and so does
 * any split. The first bytes choose algorithm and cuts. */
#include <stdint.h>
#include <stdlib.h>

#include "mail/canon.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef struct sink *canon_fn(struct arena *, enum canon, struct sink *);

static void
run(struct arena *a, canon_fn *fn, enum canon c, struct str text, size_t cut,
    size_t piece, struct buf *out)
{
	struct sink *s = fn(a, c, sink_buf(a, out));
	struct str first = str_sub(text, 0, cut), rest = str_skip(text, cut);
	sink_push(s, first.ptr, first.len);
	while (rest.len > 0) {
		struct str p = str_sub(rest, 0, piece);
		sink_push(s, p.ptr, p.len);
		rest = str_skip(rest, p.len);
	}
	if (sink_finish(s) != RES_OK)
		abort();
}

static void
compare(
    struct arena *a, enum canon c, struct str text, size_t cut, size_t piece)
{
	struct buf want, got;
	buf_init(&want, SIZE_MAX / 2);
	buf_init(&got, SIZE_MAX / 2);
	run(a, canon_body_reference, c, text, 0, SIZE_MAX, &want);
	run(a, canon_body, c, text, 0, SIZE_MAX, &got);
	if (!str_eq(buf_str(&want), buf_str(&got)))
		abort();
	buf_reset(&got);
	run(a, canon_body, c, text, cut, piece, &got);
	if (!str_eq(buf_str(&want), buf_str(&got)))
		abort();
	buf_done(&want);
	buf_done(&got);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 3)
		return 0;
	enum canon c = data[0] & 1 ? CANON_RELAXED : CANON_SIMPLE;
	struct arena *a = arena_new(0);
	compare(a, c, str_of(data + 3, size - 3),
	    data[1] + 256u * (data[0] / 2), data[2] + 1u);
	arena_free(&a);
	return 0;
}
