/* The segment reader and the scan after a crash over arbitrary frames. Tags
 * and CRCs are put right first: without that no change would get past them,
 * and what lies behind must hold even when they are right by chance. */
#include <stdlib.h>
#include <string.h>

#include "archive/store/recover.h"
#include "archive/store/segment_reader.h"
#include "base/codec.h"
#include "keys/digest.h"
#include "in_memory.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MAX_FRAMES ((size_t)256 << 10)

/* Tag and CRCs of what begins like a frame at `p`. */
static void
put_right(uint8_t *p, size_t len, const uint8_t nonce[16])
{
	static const size_t lengths[] = { 40, 44, 48, 56 };
	size_t at = FRAME_HEADER_BYTES;
	for (size_t b = 0; b < FRAME_BLOCKS; b++) {
		uint64_t stored = b == BLOCK_BODY ? get_le64(p + 56) :
						    get_le32(p + lengths[b]);
		if (stored > len - at || frame_padded(stored) > len - at)
			break;
		size_t padded = (size_t)frame_padded(stored);
		put_le32(p + 104 + 4 * b, crc32c(0, p + at, padded));
		at += padded;
	}
	put_le64(p + 32, at);
	uint8_t hash[DIGEST_LEN];
	const struct str parts[] = { str_of(nonce, 16), str_of(p, 120) };
	if (digest_sha256_parts(parts, 2, hash) == RES_OK)
		memcpy(p + 120, hash, 8);
}

static void
read_all(struct segment_reader *r)
{
	struct segment_frame f;
	uint64_t at = SHARD_HEADER_BYTES, least = 0;
	for (;;) {
		struct segment_content c;
		enum res res = segment_reader_at(r, at, &f);
		if (res == RES_CORRUPT || res == RES_UNSUPPORTED)
			res = segment_reader_resync(r, at + 8, least, &f);
		if (res != RES_OK)
			break;
		struct arena *a = arena_new(0);
		if (a == NULL)
			abort();
		res = segment_reader_load(r, a, &f, NULL, &c);
		res = segment_reader_body(r, &f, NULL, sink_null());
		(void)res;
		arena_free(&a);
		if (segment_frame_end(&f) <= at)
			abort();
		at = segment_frame_end(&f);
		least = f.header.number;
	}
	if (segment_reader_find(r, 1, &f) == RES_OK && f.header.number != 1)
		abort();
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static uint8_t bytes[SHARD_HEADER_BYTES + MAX_FRAMES];
	static struct recovery rec;
	struct archive_io io = archive_io_system;
	struct shard_header h = { .number = 7, .epoch = 1, .family = "mail" };
	struct segment_reader *r;
	io.open = in_memory_open;
	if (size > MAX_FRAMES)
		return 0;
	shard_header_encode(&h, bytes);
	if (size > 0)
		memcpy(bytes + SHARD_HEADER_BYTES, data, size);
	size_t all = SHARD_HEADER_BYTES + size;
	for (size_t at = SHARD_HEADER_BYTES; at + FRAME_HEADER_BYTES <= all;
	     at += 8)
		if (memcmp(bytes + at, "\xF5HNF", 4) == 0)
			put_right(bytes + at, all - at, h.nonce);
	in_memory_put(bytes, all);
	if (segment_reader_open("/x", &io, NULL, &r) != RES_OK)
		abort();
	read_all(r);
	if (recover_scan(r, 0, 0, NULL, NULL, &rec) == RES_OK && rec.end > all)
		abort();
	segment_reader_close(&r);
	return 0;
}
