#include "archive/store/draft.h"

#include <string.h>

#include "archive/store/segment_reader.h"
#include "base/codec.h"
#include "keys/digest.h"

void
draft_init_pooled(struct draft *d, enum frame_type type, int64_t time_us,
    struct bufpool *pool)
{
	static const char room[FRAME_HEADER_BYTES];
	*d = (struct draft){ .header = { .type = (uint8_t)type,
				 .time_us = time_us },
		.pool = pool };
	d->bytes = bufpool_take(pool, DRAFT_MAX_BYTES);
	buf_add(&d->bytes, room, sizeof room);
}

void
draft_init(struct draft *d, enum frame_type type, int64_t time_us)
{
	draft_init_pooled(d, type, time_us, NULL);
}

void
draft_done(struct draft *d)
{
	bufpool_give(d->pool, &d->bytes);
}

/* Pad the block that ends at d->bytes.len and note length and CRC. */
static enum res
end_block(struct draft *d, enum frame_block b, uint64_t max)
{
	static const char zeros[8];
	uint64_t at = frame_block_offset(&d->header, b);
	uint64_t stored = d->bytes.len - at;
	buf_add(&d->bytes, zeros, (size_t)(frame_padded(stored) - stored));
	if (d->bytes.error != RES_OK)
		return d->bytes.error;
	if (stored > max)
		return RES_LIMIT;
	d->header.stored[b] = stored;
	d->header.crc[b] =
	    crc32c(0, d->bytes.ptr + at, (size_t)frame_padded(stored));
	d->header.total = frame_total(&d->header);
	return RES_OK;
}

static enum res
take_salt(struct draft *d, uint8_t out[FRAME_SALT_BYTES])
{
	if (d->salts_left == 0) {
		enum res r = digest_random(d->salts, sizeof d->salts);
		if (r != RES_OK)
			return r;
		d->salts_left = FRAME_BLOCKS;
	}
	memcpy(out, d->salts[--d->salts_left], FRAME_SALT_BYTES);
	return RES_OK;
}

enum res
draft_add_small(
    struct draft *d, struct packer *p, enum frame_block b, struct str plain)
{
	uint8_t salt[FRAME_SALT_BYTES], hash[DIGEST_LEN];
	if (plain.len == 0)
		return RES_OK;
	if (plain.len > SEGMENT_MAX_RECORD)
		return RES_LIMIT;
	enum res r = take_salt(d, salt);
	if (r == RES_OK)
		r = digest_sha256(plain.ptr, plain.len, hash);
	if (r == RES_OK)
		r = leaf_commit(b, salt, hash, d->commitments[b]);
	if (r != RES_OK)
		return r;
	buf_add(&d->bytes, salt, sizeof salt);
	r = packer_whole(p, plain, &d->bytes);
	return r == RES_OK ? end_block(d, b, FRAME_MAX_SMALL_BLOCK) : r;
}

enum res
draft_body_begin(struct draft *d, uint64_t plain, const uint8_t sha256[32])
{
	uint8_t head[FRAME_BODY_FILE_BYTES];
	memcpy(d->body.sha256, sha256, sizeof d->body.sha256);
	d->header.body_plain = plain;
	enum res r = take_salt(d, d->body.salt);
	if (r == RES_OK)
		r = leaf_commit(BLOCK_BODY, d->body.salt, sha256,
		    d->commitments[BLOCK_BODY]);
	if (r != RES_OK)
		return r;
	buf_add(&d->bytes, head, frame_body_encode(0, &d->body, head));
	return d->bytes.error;
}

enum res
draft_body_end(struct draft *d)
{
	return end_block(d, BLOCK_BODY, FRAME_MAX_BODY_BLOCK);
}

/* Replace the body block by one that says where the bytes are. */
static enum res
refer(struct draft *d, unsigned flag)
{
	uint8_t block[FRAME_BODY_FILE_BYTES];
	d->bytes.len = (size_t)frame_block_offset(&d->header, BLOCK_BODY);
	d->header.flags &=
	    (uint16_t)~(FRAME_BODY_IN_FILE | FRAME_BODY_IN_FRAME);
	d->header.flags |= (uint16_t)flag;
	buf_add(&d->bytes, block, frame_body_encode(flag, &d->body, block));
	return end_block(d, BLOCK_BODY, FRAME_MAX_BODY_BLOCK);
}

enum res
draft_body_in_file(struct draft *d, uint64_t file_bytes, uint32_t file_crc,
    const uint8_t file_name[16])
{
	d->body.file_bytes = file_bytes;
	d->body.file_crc = file_crc;
	memcpy(d->body.file_name, file_name, sizeof d->body.file_name);
	return refer(d, FRAME_BODY_IN_FILE);
}

enum res
draft_refer(struct draft *d, uint64_t frame, uint64_t offset)
{
	d->body.frame = frame;
	d->body.offset = offset;
	d->header.type = FRAME_DELIVERY;
	return refer(d, FRAME_BODY_IN_FRAME);
}

enum res
draft_place(struct draft *d, const struct shard_header *shard,
    uint64_t number, uint64_t durable_upto)
{
	d->header.number = number;
	d->header.durable_upto = durable_upto;
	d->header.total = frame_total(&d->header);
	enum res r =
	    leaf_hash(shard, &d->header, d->commitments, d->header.leaf);
	if (r != RES_OK)
		return r;
	return frame_header_encode(
	    &d->header, shard->nonce, (uint8_t *)d->bytes.ptr);
}
