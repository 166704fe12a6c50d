#include "archive/state/gzip.h"

#include <zlib.h>

#define CHUNK       65536
#define GZIP_WINDOW (15 + 16) /* zlib's way to ask for the gzip form */
#define MEM_LEVEL   8

static enum res
run(z_stream *z, struct str bytes, struct buf *out)
{
	int rc = Z_OK;
	while (rc != Z_STREAM_END) {
		if (z->avail_in == 0 && bytes.len != 0) {
			struct str part = str_sub(bytes, 0, CHUNK);
			z->next_in = (z_const Bytef *)part.ptr;
			z->avail_in = (uInt)part.len;
			bytes = str_skip(bytes, part.len);
		}
		unsigned char chunk[4096];
		z->next_out = chunk;
		z->avail_out = sizeof chunk;
		rc = deflate(z, bytes.len == 0 ? Z_FINISH : Z_NO_FLUSH);
		if (rc != Z_OK && rc != Z_STREAM_END && rc != Z_BUF_ERROR)
			return RES_INVALID;
		buf_add(out, chunk, sizeof chunk - z->avail_out);
		if (out->error != RES_OK)
			return out->error;
	}
	return RES_OK;
}

enum res
gzip_compress(struct str bytes, struct buf *out)
{
	z_stream z = { .next_in = NULL };
	if (deflateInit2(&z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, GZIP_WINDOW,
		MEM_LEVEL, Z_DEFAULT_STRATEGY) != Z_OK)
		return RES_NOMEM;
	enum res r = run(&z, bytes, out);
	deflateEnd(&z);
	return r;
}
