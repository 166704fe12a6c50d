/* The bytes of a segment (archive.md §3, archive-format(5)): a shard header
 * of 4,096 bytes, then frames, each 8-aligned: a header of 128 bytes and up
 * to four blocks. Pure functions over bytes; little endian throughout.
 *
 * A frame header is never modified after it was written. Its tag is keyed by
 * the shard's nonce, which never leaves the shard: a segment file mailed to
 * us inside a message can therefore not be taken for frames of ours.
 *
 *   META      salt 16, one zstd frame of an encoded record
 *   EVIDENCE  the same
 *   EDITS     the same
 *   BODY      salt 16, SHA-256 of the plain bytes 32, then
 *             one zstd frame                       (no flag)
 *             bytes u64, CRC u32, 0 u32, name 16   (FRAME_BODY_IN_FILE)
 *             frame number u64, its offset u64     (FRAME_BODY_IN_FRAME)
 *
 * Blocks are padded with zeros to a multiple of 8; stored lengths are without
 * padding, CRCs include it. An absent block has length 0. A block that was
 * erased is all zeros. */
#ifndef ARCHIVE_SEGMENT_H
#define ARCHIVE_SEGMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/res.h"
#include "base/str.h"

#define SHARD_HEADER_BYTES 4096
#define FRAME_HEADER_BYTES 128
#define SHARD_MAX_FAMILY   31 /* [a-z0-9-] */
#define SHARD_MAX_PERIOD   7  /* "2026-11" */
#define SHARD_MAX_NOTE     1024
#define SHARD_MAX_KEY      128
#define SHARD_NONCE_BYTES  16
#define FRAME_SALT_BYTES   16

struct shard_header {
	uint16_t flags;
	uint32_t number;          /* unique in the store, from 1 */
	uint32_t epoch;           /* of the store, from 1 */
	uint8_t store_uuid[16];
	char family[SHARD_MAX_FAMILY + 1];
	char period[SHARD_MAX_PERIOD + 1];
	int64_t created_us;
	uint8_t nonce[SHARD_NONCE_BYTES];
	char tokenizer[16];
	/* the family's shard before this one; 0 = none */
	uint32_t previous;
	uint64_t previous_bytes;  /* its last durable length */
	uint64_t previous_frames;
	uint8_t previous_root[32];
	char previous_note[SHARD_MAX_NOTE + 1];
	char key[SHARD_MAX_KEY + 1];
};

void shard_header_encode(
    const struct shard_header *h, uint8_t out[SHARD_HEADER_BYTES]);
/* RES_CORRUPT: no header or a damaged one; RES_UNSUPPORTED: of a version
 * this program does not know. */
HN_CHECK enum res shard_header_decode(
    const uint8_t bytes[SHARD_HEADER_BYTES], struct shard_header *out);
/* What stands where the fields are, right or wrong: for rescue. */
void shard_header_guess(
    const uint8_t bytes[SHARD_HEADER_BYTES], struct shard_header *out);

enum frame_type {
	FRAME_MESSAGE = 1,
	FRAME_DELIVERY = 2,   /* one more delivery of a message of this shard */
	FRAME_DICTIONARY = 3,
	FRAME_EVIDENCE = 4,
	FRAME_EVENT = 5,
	FRAME_TOMBSTONE = 6,
	FRAME_NOTE = 7,
	FRAME_KEY = 8,
	FRAME_SEAL = 9,
	FRAME_HELD = 10,
};

#define FRAME_BODY_IN_FILE  0x0001u
#define FRAME_BODY_IN_FRAME 0x0002u

enum frame_block { BLOCK_META, BLOCK_EVIDENCE, BLOCK_EDITS, BLOCK_BODY,
	FRAME_BLOCKS };

/* Stored lengths. The three small blocks hold records of a few KB; the body
 * goes to a file of its own beyond its limit. */
#define FRAME_MAX_SMALL_BLOCK ((uint64_t)4 << 20)
#define FRAME_MAX_BODY_BLOCK  (((uint64_t)4 << 20) + 64)
#define FRAME_BODY_HEAD       (FRAME_SALT_BYTES + 32)
#define FRAME_BODY_FILE_BYTES (FRAME_BODY_HEAD + 32)
#define FRAME_BODY_FRAME_BYTES (FRAME_BODY_HEAD + 16)

struct frame_header {
	uint8_t type;             /* enum frame_type, or of a later version */
	uint16_t flags;
	uint64_t number;          /* 0, 1, … in the shard */
	int64_t time_us;
	uint64_t durable_upto;    /* offset known durable when it was written */
	uint64_t total;           /* header, blocks and padding */
	uint64_t stored[FRAME_BLOCKS];
	uint32_t dictionary;      /* 1 + number of its frame; 0 = none */
	uint64_t body_plain;      /* bytes of the message as presented */
	uint8_t leaf[32];
	uint32_t crc[FRAME_BLOCKS];
};

static inline uint64_t
frame_padded(uint64_t stored)
{
	return (stored + 7) & ~(uint64_t)7;
}
/* Offset of a block from the start of its frame. */
uint64_t frame_block_offset(const struct frame_header *h, enum frame_block b);
/* What `total` must be. */
uint64_t frame_total(const struct frame_header *h);

/* RES_IO when libcrypto fails. */
HN_CHECK enum res frame_header_encode(const struct frame_header *h,
    const uint8_t nonce[SHARD_NONCE_BYTES], uint8_t out[FRAME_HEADER_BYTES]);
/* Checks magic, tag, version and lengths. RES_CORRUPT: no frame of this
 * shard; RES_UNSUPPORTED: a frame of a later version (`out` untouched). */
HN_CHECK enum res frame_header_decode(const uint8_t bytes[FRAME_HEADER_BYTES],
    const uint8_t nonce[SHARD_NONCE_BYTES], struct frame_header *out);
/* The same without the tag, where the nonce is lost. Anybody can write such
 * a header: only to be believed where a frame must stand. */
HN_CHECK enum res frame_header_decode_untagged(
    const uint8_t bytes[FRAME_HEADER_BYTES], struct frame_header *out);

enum block_state {
	BLOCK_ABSENT,
	BLOCK_WHOLE,
	BLOCK_ERASED,   /* all zeros where bytes were written */
	BLOCK_DAMAGED,
};
/* The state of `b`, whose padded bytes (frame_padded(stored)) are given. */
enum block_state frame_block_check(
    const struct frame_header *h, enum frame_block b, const void *bytes);
/* "META", "EVIDENCE", "EDITS", "BODY". */
const char *frame_block_name(enum frame_block b);

/* The fixed part of a BODY block and what follows it. */
struct frame_body {
	uint8_t salt[FRAME_SALT_BYTES];
	uint8_t sha256[32];       /* of the plain bytes */
	/* FRAME_BODY_IN_FILE */
	uint64_t file_bytes;      /* bodies/<name in hex>.zst: one zstd frame */
	uint32_t file_crc;
	uint8_t file_name[16];
	/* FRAME_BODY_IN_FRAME */
	uint64_t frame, offset;   /* of the message frame in this shard */
};
/* The file's name in bodies/: 32 hex digits and ".zst". */
#define FRAME_BODY_NAME 37
void frame_body_name(const struct frame_body *b, char out[FRAME_BODY_NAME]);
/* `bytes` holds at least the first min(stored, 80) bytes of the block. */
HN_CHECK enum res frame_body_decode(const struct frame_header *h,
    const uint8_t *bytes, size_t len, struct frame_body *out);
/* Writes what stands before the zstd frame, or all of a referring block; the
 * flags tell which. Returns its length (<= FRAME_BODY_FILE_BYTES). */
size_t frame_body_encode(unsigned flags, const struct frame_body *b,
    uint8_t out[FRAME_BODY_FILE_BYTES]);

#endif
