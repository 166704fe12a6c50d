/* Rescue from any bytes at all, header and nonce included: each byte is either
 * in a frame or named as damage, in order, once; and it ends. */
#include <stdlib.h>

#include "archive/keeping/rescue.h"
#include "in_memory.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MAX_BYTES ((size_t)256 << 10)

static uint64_t upto;

static void
damage(void *context, uint64_t from, uint64_t to, const char *what)
{
	(void)context;
	(void)what;
	if (from != upto || to <= from)
		abort();
	upto = to;
}

static enum res
frame(void *context, struct segment_reader *r, struct arena *a,
    const struct segment_frame *f, const struct segment_content *c,
    enum res loaded)
{
	(void)context;
	(void)a;
	(void)c;
	(void)loaded;
	if (f->offset != upto)
		abort();
	upto = segment_frame_end(f);
	enum res res = segment_reader_body(r, f, NULL, sink_null());
	(void)res; /* damaged or not */
	return RES_OK;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct rescue_ops ops = { damage, frame };
	struct archive_io io = archive_io_system;
	struct segment_reader *r;
	struct err err = { "" };
	io.open = in_memory_open;
	if (size > MAX_BYTES)
		return 0;
	in_memory_put(data, size);
	if (segment_reader_open_damaged("/x/segment", "/x", &io, &err, &r) !=
	    RES_OK)
		return 0;
	upto = SHARD_HEADER_BYTES;
	if (rescue_walk(r, &ops, NULL, &err) == RES_OK && upto > size)
		abort();
	segment_reader_close(&r);
	return 0;
}
