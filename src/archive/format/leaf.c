#include "archive/format/leaf.h"

#include "base/codec.h"
#include "keys/digest.h"

enum res
leaf_commit(enum frame_block b, const uint8_t salt[FRAME_SALT_BYTES],
    const uint8_t plain_sha256[32], uint8_t out[LEAF_HASH_BYTES])
{
	static const char label[] = "hanaper-x-v1";
	static const char letters[] = "MVEB";
	const struct str parts[] = {
		str_of(label, sizeof label), /* with its NUL */
		str_of(letters + b, 1),
		str_of(salt, FRAME_SALT_BYTES),
		str_of(plain_sha256, 32),
	};
	return digest_sha256_parts(parts, 4, out);
}

enum res
leaf_hash(const struct shard_header *shard, const struct frame_header *frame,
    const uint8_t commitments[FRAME_BLOCKS][LEAF_HASH_BYTES],
    uint8_t out[LEAF_HASH_BYTES])
{
	static const char label[] = "\0hanaper-leaf-v1"; /* 0: RFC 6962 leaf */
	uint8_t fixed[4 + 8 + 1 + 8];
	put_le32(fixed, shard->number);
	put_le64(fixed + 4, frame->number);
	fixed[12] = frame->type;
	put_le64(fixed + 13, (uint64_t)frame->time_us);
	const struct str parts[] = {
		str_of(label, sizeof label), /* with its NUL */
		str_of(shard->store_uuid, sizeof shard->store_uuid),
		str_of(fixed, sizeof fixed),
		str_of(commitments, FRAME_BLOCKS * LEAF_HASH_BYTES),
	};
	return digest_sha256_parts(parts, 4, out);
}
