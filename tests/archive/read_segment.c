/* Reads a segment from standard input and prints its frames, one a line. For
 * tests in other languages. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "archive/store/segment_reader.h"

#define MAX_SEGMENT ((size_t)16 << 20)

static void
print_hex(const char *name, struct str s)
{
	printf(" %s ", name);
	for (size_t i = 0; i < s.len; i++)
		printf("%02x", (unsigned char)s.ptr[i]);
}

static enum res
print_frame(struct segment_reader *r, const struct segment_frame *f,
    struct err *err)
{
	struct segment_content c;
	struct buf body;
	struct arena *a = arena_new(0);
	if (a == NULL)
		return RES_NOMEM;
	buf_init(&body, MAX_SEGMENT);
	struct sink *sink = sink_buf(a, &body);
	enum res res = segment_reader_load(r, a, f, err, &c);
	if (res == RES_OK)
		res = sink != NULL ? segment_reader_body(r, f, err, sink) :
				     RES_NOMEM;
	if (res == RES_OK) {
		printf("frame %llu type %u time %lld",
		    (unsigned long long)f->header.number, f->header.type,
		    (long long)f->header.time_us);
		print_hex("meta", c.meta);
		print_hex("body", buf_str(&body));
		printf("\n");
	}
	buf_done(&body);
	arena_free(&a);
	return res;
}

static enum res
print_all(const char *dir, struct err *err)
{
	struct segment_reader *r;
	struct segment_frame f;
	uint64_t at = SHARD_HEADER_BYTES;
	enum res res = segment_reader_open(dir, NULL, err, &r);
	if (res != RES_OK)
		return res;
	while ((res = segment_reader_at(r, at, &f)) == RES_OK) {
		res = print_frame(r, &f, err);
		if (res != RES_OK)
			break;
		at = segment_frame_end(&f);
	}
	segment_reader_close(&r);
	return res == RES_NOTFOUND ? RES_OK : res;
}

int
main(void)
{
	char dir[] = "/tmp/hanaper-segment-XXXXXX", path[64], piece[4096];
	struct err err = { "" };
	size_t n;
	if (mkdtemp(dir) == NULL)
		return 2;
	snprintf(path, sizeof path, "%s/segment", dir);
	FILE *f = fopen(path, "wb");
	if (f == NULL)
		return 2;
	while ((n = fread(piece, 1, sizeof piece, stdin)) > 0)
		if (fwrite(piece, 1, n, f) != n)
			return 2;
	fclose(f);
	enum res r = print_all(dir, &err);
	if (r != RES_OK)
		fprintf(stderr, "%s: %s\n", res_text(r), err.text);
	unlink(path);
	rmdir(dir);
	return r == RES_OK ? 0 : 1;
}
