/* What a frame commits to (archive.md §6): its leaf in the shard's Merkle
 * tree. A leaf is made of salted commitments to the blocks, so that it stays
 * valid after a block is erased and reveals nothing about it. */
#ifndef ARCHIVE_LEAF_H
#define ARCHIVE_LEAF_H

#include <stdint.h>

#include "archive/format/segment.h"

#define LEAF_HASH_BYTES 32

/* C_x = SHA-256("hanaper-x-v1" 0 ‖ letter ‖ salt ‖ SHA-256(plain)), with the
 * letters M, V (evidence), E (edits) and B. */
HN_CHECK enum res leaf_commit(enum frame_block b,
    const uint8_t salt[FRAME_SALT_BYTES], const uint8_t plain_sha256[32],
    uint8_t out[LEAF_HASH_BYTES]);

/* RFC 6962 §2.1 leaf hash: SHA-256(0 ‖ "hanaper-leaf-v1" 0 ‖ store uuid ‖
 * shard ‖ frame number ‖ type ‖ time ‖ four commitments); a commitment of an
 * absent block is zeros. */
HN_CHECK enum res leaf_hash(const struct shard_header *shard,
    const struct frame_header *frame,
    const uint8_t commitments[FRAME_BLOCKS][LEAF_HASH_BYTES],
    uint8_t out[LEAF_HASH_BYTES]);

#endif
