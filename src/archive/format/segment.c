#include "archive/format/segment.h"

#include <string.h>

#include "base/codec.h"
#include "keys/digest.h"

/* The bytes catch transfers that strip the eighth bit or change line ends. */
static const uint8_t shard_magic[8] = { 0x89, 'H', 'N', 'S', 'E', 'G', '\r',
	'\n' };
static const uint8_t frame_magic[4] = { 0xF5, 'H', 'N', 'F' };
#define SHARD_VERSION 1
#define FRAME_VERSION 1
#define TAG_BYTES     8
#define MAX_PLAIN     ((uint64_t)1 << 48) /* only sanity */

/* Offsets in the shard header. */
enum {
	SH_MAGIC = 0,
	SH_VERSION = 8,
	SH_FLAGS = 10,
	SH_NUMBER = 12,
	SH_EPOCH = 16,
	SH_UUID = 20,
	SH_FAMILY = 36,
	SH_PERIOD = 68,
	SH_CREATED = 76,
	SH_NONCE = 84,
	SH_TOKENIZER = 100,
	SH_PREVIOUS = 116,
	SH_PREVIOUS_BYTES = 120,
	SH_PREVIOUS_FRAMES = 128,
	SH_PREVIOUS_ROOT = 136,
	SH_NOTE = 168,
	SH_KEY = SH_NOTE + SHARD_MAX_NOTE,
	SH_TEXT = SH_KEY + SHARD_MAX_KEY,
	SH_CRC = SHARD_HEADER_BYTES - 4,
};

/* Offsets in the frame header. */
enum {
	FH_MAGIC = 0,
	FH_VERSION = 4,
	FH_TYPE = 5,
	FH_FLAGS = 6,
	FH_NUMBER = 8,
	FH_TIME = 16,
	FH_DURABLE = 24,
	FH_TOTAL = 32,
	FH_META = 40,
	FH_EVIDENCE = 44,
	FH_EDITS = 48,
	FH_DICTIONARY = 52,
	FH_BODY = 56,
	FH_PLAIN = 64,
	FH_LEAF = 72,
	FH_CRC = 104,
	FH_TAG = 120,
};

/* For whoever finds such a file without us. */
static const char shard_text[] =
    "\nHanaper archive segment, version 1. Integers are little endian.\n"
    "This header: 4096 bytes. Then frames, each at a multiple of 8:\n"
    "128 bytes of frame header, then the blocks META, EVIDENCE, EDITS and\n"
    "BODY, each padded with zeros to a multiple of 8. Frame header:\n"
    "  0 magic F5 'HNF'     4 version u8       5 type u8   6 flags u16\n"
    "  8 frame number u64  16 time us i64     24 durable upto u64\n"
    " 32 total length u64  40 META u32        44 EVIDENCE u32\n"
    " 48 EDITS u32         52 dictionary u32  56 BODY u64\n"
    " 64 plain body u64    72 leaf hash 32   104 CRC-32C of the blocks 4x4\n"
    "120 first 8 bytes of SHA-256(nonce, bytes 0-119 of the frame header)\n"
    "Type 1 is a message. META, EVIDENCE and EDITS: salt 16, one zstd frame\n"
    "of records (version u8, then tag u16, length u32, bytes). BODY: salt\n"
    "16, SHA-256 of the message 32, one zstd frame holding the message as\n"
    "it was presented. With flag 1 the body's zstd frame is a file of its\n"
    "own, bodies/NAME.zst: bytes u64, CRC u32, zero u32, name 16 follow the\n"
    "SHA-256. With flag 2 it is the body of another frame: its number u64\n"
    "and offset u64 follow. A block of zeros was erased. The nonce of this shard stands\n"
    "at 84 of this header and is secret. See archive-format(5).\n";
_Static_assert(SH_TEXT + sizeof shard_text <= SH_CRC, "the text fits");

static void
put_text(uint8_t *p, size_t room, const char *text)
{
	size_t len = strnlen(text, room);
	memcpy(p, text, len);
	memset(p + len, 0, room - len);
}

static void
get_text(const uint8_t *p, size_t room, char *out)
{
	memcpy(out, p, room);
	out[room] = '\0';
}

void
shard_header_encode(
    const struct shard_header *h, uint8_t out[SHARD_HEADER_BYTES])
{
	memset(out, 0, SHARD_HEADER_BYTES);
	memcpy(out + SH_MAGIC, shard_magic, sizeof shard_magic);
	put_le16(out + SH_VERSION, SHARD_VERSION);
	put_le16(out + SH_FLAGS, h->flags);
	put_le32(out + SH_NUMBER, h->number);
	put_le32(out + SH_EPOCH, h->epoch);
	memcpy(out + SH_UUID, h->store_uuid, sizeof h->store_uuid);
	put_text(out + SH_FAMILY, SHARD_MAX_FAMILY + 1, h->family);
	put_text(out + SH_PERIOD, SHARD_MAX_PERIOD + 1, h->period);
	put_le64(out + SH_CREATED, (uint64_t)h->created_us);
	memcpy(out + SH_NONCE, h->nonce, sizeof h->nonce);
	put_text(out + SH_TOKENIZER, sizeof h->tokenizer, h->tokenizer);
	put_le32(out + SH_PREVIOUS, h->previous);
	put_le64(out + SH_PREVIOUS_BYTES, h->previous_bytes);
	put_le64(out + SH_PREVIOUS_FRAMES, h->previous_frames);
	memcpy(out + SH_PREVIOUS_ROOT, h->previous_root,
	    sizeof h->previous_root);
	put_text(out + SH_NOTE, SHARD_MAX_NOTE, h->previous_note);
	put_text(out + SH_KEY, SHARD_MAX_KEY, h->key);
	memcpy(out + SH_TEXT, shard_text, sizeof shard_text);
	put_le32(out + SH_CRC, crc32c(0, out, SH_CRC));
}

void
shard_header_guess(
    const uint8_t bytes[SHARD_HEADER_BYTES], struct shard_header *out)
{
	struct shard_header h = {
		.flags = get_le16(bytes + SH_FLAGS),
		.number = get_le32(bytes + SH_NUMBER),
		.epoch = get_le32(bytes + SH_EPOCH),
		.created_us = (int64_t)get_le64(bytes + SH_CREATED),
		.previous = get_le32(bytes + SH_PREVIOUS),
		.previous_bytes = get_le64(bytes + SH_PREVIOUS_BYTES),
		.previous_frames = get_le64(bytes + SH_PREVIOUS_FRAMES),
	};
	memcpy(h.store_uuid, bytes + SH_UUID, sizeof h.store_uuid);
	get_text(bytes + SH_FAMILY, SHARD_MAX_FAMILY, h.family);
	get_text(bytes + SH_PERIOD, SHARD_MAX_PERIOD, h.period);
	memcpy(h.nonce, bytes + SH_NONCE, sizeof h.nonce);
	get_text(bytes + SH_TOKENIZER, sizeof h.tokenizer - 1, h.tokenizer);
	memcpy(h.previous_root, bytes + SH_PREVIOUS_ROOT,
	    sizeof h.previous_root);
	get_text(bytes + SH_NOTE, SHARD_MAX_NOTE, h.previous_note);
	get_text(bytes + SH_KEY, SHARD_MAX_KEY, h.key);
	*out = h;
}

enum res
shard_header_decode(
    const uint8_t bytes[SHARD_HEADER_BYTES], struct shard_header *out)
{
	if (memcmp(bytes + SH_MAGIC, shard_magic, sizeof shard_magic) != 0 ||
	    get_le32(bytes + SH_CRC) != crc32c(0, bytes, SH_CRC))
		return RES_CORRUPT;
	if (get_le16(bytes + SH_VERSION) != SHARD_VERSION)
		return RES_UNSUPPORTED;
	shard_header_guess(bytes, out);
	return RES_OK;
}

uint64_t
frame_block_offset(const struct frame_header *h, enum frame_block b)
{
	uint64_t at = FRAME_HEADER_BYTES;
	for (int i = 0; i < (int)b; i++)
		at += frame_padded(h->stored[i]);
	return at;
}

uint64_t
frame_total(const struct frame_header *h)
{
	return frame_block_offset(h, FRAME_BLOCKS);
}

static enum res
frame_tag(const uint8_t *header, const uint8_t *nonce, uint8_t out[TAG_BYTES])
{
	uint8_t hash[DIGEST_LEN];
	const struct str parts[] = { str_of(nonce, SHARD_NONCE_BYTES),
		str_of(header, FH_TAG) };
	enum res r = digest_sha256_parts(parts, 2, hash);
	memcpy(out, hash, TAG_BYTES);
	return r;
}

enum res
frame_header_encode(const struct frame_header *h,
    const uint8_t nonce[SHARD_NONCE_BYTES], uint8_t out[FRAME_HEADER_BYTES])
{
	memcpy(out + FH_MAGIC, frame_magic, sizeof frame_magic);
	out[FH_VERSION] = FRAME_VERSION;
	out[FH_TYPE] = h->type;
	put_le16(out + FH_FLAGS, h->flags);
	put_le64(out + FH_NUMBER, h->number);
	put_le64(out + FH_TIME, (uint64_t)h->time_us);
	put_le64(out + FH_DURABLE, h->durable_upto);
	put_le64(out + FH_TOTAL, h->total);
	put_le32(out + FH_META, (uint32_t)h->stored[BLOCK_META]);
	put_le32(out + FH_EVIDENCE, (uint32_t)h->stored[BLOCK_EVIDENCE]);
	put_le32(out + FH_EDITS, (uint32_t)h->stored[BLOCK_EDITS]);
	put_le32(out + FH_DICTIONARY, h->dictionary);
	put_le64(out + FH_BODY, h->stored[BLOCK_BODY]);
	put_le64(out + FH_PLAIN, h->body_plain);
	memcpy(out + FH_LEAF, h->leaf, sizeof h->leaf);
	for (int i = 0; i < FRAME_BLOCKS; i++)
		put_le32(out + FH_CRC + 4 * i, h->crc[i]);
	return frame_tag(out, nonce, out + FH_TAG);
}

static bool
lengths_fit(const struct frame_header *h)
{
	for (int i = 0; i < BLOCK_BODY; i++)
		if (h->stored[i] > FRAME_MAX_SMALL_BLOCK ||
		    (h->stored[i] != 0 && h->stored[i] < FRAME_SALT_BYTES))
			return false;
	uint64_t body = h->stored[BLOCK_BODY];
	if (body > FRAME_MAX_BODY_BLOCK || (body != 0 && body < FRAME_BODY_HEAD))
		return false;
	unsigned where = h->flags & (FRAME_BODY_IN_FILE | FRAME_BODY_IN_FRAME);
	if (where == (FRAME_BODY_IN_FILE | FRAME_BODY_IN_FRAME) ||
	    (where == FRAME_BODY_IN_FILE && body != FRAME_BODY_FILE_BYTES) ||
	    (where == FRAME_BODY_IN_FRAME && body != FRAME_BODY_FRAME_BYTES))
		return false;
	return h->body_plain <= MAX_PLAIN && h->total == frame_total(h);
}

enum res
frame_header_decode_untagged(
    const uint8_t bytes[FRAME_HEADER_BYTES], struct frame_header *out)
{
	if (memcmp(bytes + FH_MAGIC, frame_magic, sizeof frame_magic) != 0)
		return RES_CORRUPT;
	if (bytes[FH_VERSION] != FRAME_VERSION)
		return RES_UNSUPPORTED;
	struct frame_header h = {
		.type = bytes[FH_TYPE],
		.flags = get_le16(bytes + FH_FLAGS),
		.number = get_le64(bytes + FH_NUMBER),
		.time_us = (int64_t)get_le64(bytes + FH_TIME),
		.durable_upto = get_le64(bytes + FH_DURABLE),
		.total = get_le64(bytes + FH_TOTAL),
		.stored = { get_le32(bytes + FH_META),
		    get_le32(bytes + FH_EVIDENCE), get_le32(bytes + FH_EDITS),
		    get_le64(bytes + FH_BODY) },
		.dictionary = get_le32(bytes + FH_DICTIONARY),
		.body_plain = get_le64(bytes + FH_PLAIN),
	};
	memcpy(h.leaf, bytes + FH_LEAF, sizeof h.leaf);
	for (int i = 0; i < FRAME_BLOCKS; i++)
		h.crc[i] = get_le32(bytes + FH_CRC + 4 * i);
	if (!lengths_fit(&h))
		return RES_CORRUPT;
	*out = h;
	return RES_OK;
}

enum res
frame_header_decode(const uint8_t bytes[FRAME_HEADER_BYTES],
    const uint8_t nonce[SHARD_NONCE_BYTES], struct frame_header *out)
{
	uint8_t tag[TAG_BYTES];
	if (memcmp(bytes + FH_MAGIC, frame_magic, sizeof frame_magic) != 0)
		return RES_CORRUPT;
	enum res r = frame_tag(bytes, nonce, tag);
	if (r != RES_OK)
		return r;
	if (memcmp(tag, bytes + FH_TAG, TAG_BYTES) != 0)
		return RES_CORRUPT;
	return frame_header_decode_untagged(bytes, out);
}

static bool
all_zero(const uint8_t *p, uint64_t len)
{
	return len == 0 || (p[0] == 0 && memcmp(p, p + 1, len - 1) == 0);
}

enum block_state
frame_block_check(
    const struct frame_header *h, enum frame_block b, const void *bytes)
{
	uint64_t len = frame_padded(h->stored[b]);
	if (len == 0)
		return BLOCK_ABSENT;
	if (crc32c(0, bytes, len) == h->crc[b])
		return BLOCK_WHOLE;
	return all_zero(bytes, len) ? BLOCK_ERASED : BLOCK_DAMAGED;
}

const char *
frame_block_name(enum frame_block b)
{
	static const char *const names[FRAME_BLOCKS] = { "META", "EVIDENCE",
		"EDITS", "BODY" };
	return names[b];
}

void
frame_body_name(const struct frame_body *b, char out[FRAME_BODY_NAME])
{
	static const char digits[] = "0123456789abcdef";
	for (size_t i = 0; i < sizeof b->file_name; i++) {
		out[2 * i] = digits[b->file_name[i] >> 4];
		out[2 * i + 1] = digits[b->file_name[i] & 15];
	}
	memcpy(out + 2 * sizeof b->file_name, ".zst", sizeof ".zst");
}

enum res
frame_body_decode(const struct frame_header *h, const uint8_t *bytes,
    size_t len, struct frame_body *out)
{
	size_t want = FRAME_BODY_HEAD;
	if (h->flags & FRAME_BODY_IN_FILE)
		want = FRAME_BODY_FILE_BYTES;
	else if (h->flags & FRAME_BODY_IN_FRAME)
		want = FRAME_BODY_FRAME_BYTES;
	if (len < want || h->stored[BLOCK_BODY] < want)
		return RES_CORRUPT;
	struct frame_body b = { .frame = UINT64_MAX };
	memcpy(b.salt, bytes, sizeof b.salt);
	memcpy(b.sha256, bytes + FRAME_SALT_BYTES, sizeof b.sha256);
	const uint8_t *more = bytes + FRAME_BODY_HEAD;
	if (h->flags & FRAME_BODY_IN_FILE) {
		b.file_bytes = get_le64(more);
		b.file_crc = get_le32(more + 8);
		memcpy(b.file_name, more + 16, sizeof b.file_name);
	} else if (h->flags & FRAME_BODY_IN_FRAME) {
		b.frame = get_le64(more);
		b.offset = get_le64(more + 8);
	}
	*out = b;
	return RES_OK;
}

size_t
frame_body_encode(unsigned flags, const struct frame_body *b,
    uint8_t out[FRAME_BODY_FILE_BYTES])
{
	memcpy(out, b->salt, sizeof b->salt);
	memcpy(out + FRAME_SALT_BYTES, b->sha256, sizeof b->sha256);
	uint8_t *more = out + FRAME_BODY_HEAD;
	if (flags & FRAME_BODY_IN_FILE) {
		put_le64(more, b->file_bytes);
		put_le32(more + 8, b->file_crc);
		put_le32(more + 12, 0);
		memcpy(more + 16, b->file_name, sizeof b->file_name);
		return FRAME_BODY_FILE_BYTES;
	}
	if (flags & FRAME_BODY_IN_FRAME) {
		put_le64(more, b->frame);
		put_le64(more + 8, b->offset);
		return FRAME_BODY_FRAME_BYTES;
	}
	return FRAME_BODY_HEAD;
}
