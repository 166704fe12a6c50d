/* Checking that a held frame proves what the frame it was copied from did. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "archive/keeping/held.h"
#include "archive/proof/verify_inside.h"
#include "base/codec.h"
#include "keys/digest.h"

struct inner {
	struct shard_header shard; /* what is known of it */
	struct frame_header header;
	uint8_t salts[FRAME_BLOCKS][FRAME_SALT_BYTES];
	bool has_head;             /* and `path` */
	uint64_t size;
	uint8_t root[LEAF_HASH_BYTES];
	struct merkle_path path;
};

static bool
copy_exact(struct str s, void *to, size_t len)
{
	if (s.len != len)
		return false;
	memcpy(to, s.ptr, len);
	return true;
}

static bool
read_path(struct str meta, struct merkle_path *out)
{
	struct record_reader r;
	struct str value;
	unsigned tag;
	out->count = 0;
	if (record_open(meta, &r) != RES_OK)
		return false;
	while (record_next(&r, &tag, &value))
		if (tag == HELD_PATH &&
		    (out->count == MERKLE_MAX_PATH ||
			!copy_exact(value, out->nodes[out->count++].hash,
			    LEAF_HASH_BYTES)))
			return false;
	return r.error == RES_OK;
}

static bool
read_inner(struct str meta, struct inner *out)
{
	struct str header = record_find(meta, HELD_HEADER);
	struct str shard = record_find(meta, HELD_SHARD);
	struct str epoch = record_find(meta, HELD_EPOCH);
	struct str size = record_find(meta, HELD_SIZE);
	if (header.len != FRAME_HEADER_BYTES || shard.len != 4 ||
	    epoch.len != 4 || (size.ptr != NULL && size.len != 8) ||
	    frame_header_decode_untagged((const uint8_t *)header.ptr,
		&out->header) != RES_OK ||
	    !copy_exact(record_find(meta, HELD_SALTS), out->salts,
		sizeof out->salts) ||
	    !copy_exact(record_find(meta, HELD_UUID), out->shard.store_uuid,
		sizeof out->shard.store_uuid) ||
	    !read_path(meta, &out->path))
		return false;
	out->shard.number = get_le32((const uint8_t *)shard.ptr);
	out->shard.epoch = get_le32((const uint8_t *)epoch.ptr);
	out->has_head = size.ptr != NULL;
	if (!out->has_head)
		return out->path.count == 0;
	out->size = get_le64((const uint8_t *)size.ptr);
	return copy_exact(
	    record_find(meta, HELD_ROOT), out->root, sizeof out->root);
}

/* The leaf of before, made again from salts and plain bytes. */
static enum res
make_leaf(const struct inner *in, const struct segment_content *c,
    uint8_t out[LEAF_HASH_BYTES])
{
	uint8_t commitments[FRAME_BLOCKS][LEAF_HASH_BYTES] = { 0 };
	const struct str plain[] = { record_find(c->meta, HELD_META),
		c->evidence, c->edits };
	enum res r = RES_OK;
	for (int b = 0; r == RES_OK && b < FRAME_BLOCKS; b++) {
		uint8_t hash[DIGEST_LEN];
		if (in->header.stored[b] == 0)
			continue;
		if (b == BLOCK_BODY)
			memcpy(hash, c->body.sha256, sizeof hash);
		else
			r = digest_sha256(plain[b].ptr, plain[b].len, hash);
		if (r == RES_OK)
			r = leaf_commit((enum frame_block)b, in->salts[b],
			    hash, commitments[b]);
	}
	if (r == RES_OK)
		r = leaf_hash(&in->shard, &in->header,
		    (const uint8_t(*)[LEAF_HASH_BYTES])commitments, out);
	return r;
}

/* The note must speak of the head that the path leads to. Its signature is
 * checked where the key is still known here. */
static const char *
judge_note(const struct verify *v, const struct inner *in, struct str bytes)
{
	struct note note;
	struct note_head head;
	const struct note_origin origin = note_origin_of(&in->shard);
	if (note_open(bytes, &note) != RES_OK ||
	    note_head_parse(note.text, &head) != RES_OK)
		return "its note is damaged";
	if (!in->has_head || !note_origin_same(&head.origin, &origin) ||
	    head.size != in->size ||
	    memcmp(head.root, in->root, sizeof head.root) != 0)
		return "its note speaks of another tree";
	for (const struct checked_key *k = v->keys; k != NULL; k = k->next)
		if (note_check(&note, &k->key) == RES_CORRUPT)
			return "the signature of its note is wrong";
	return NULL;
}

static enum res
judge(const struct verify *v, struct inner *in,
    const struct segment_content *c, const char **out_why)
{
	uint8_t leaf[LEAF_HASH_BYTES];
	struct str note = record_find(c->meta, HELD_NOTE);
	*out_why = NULL;
	if (!read_inner(c->meta, in)) {
		*out_why = "what it says of its origin cannot be read";
		return RES_OK;
	}
	if (memcmp(in->shard.store_uuid, v->id.uuid, sizeof v->id.uuid) != 0) {
		*out_why = "it is of another store";
		return RES_OK;
	}
	enum res r = make_leaf(in, c, leaf);
	if (r != RES_OK)
		return r;
	if (memcmp(leaf, in->header.leaf, sizeof leaf) != 0) {
		*out_why = "it is not what the frame it was copied from had";
		return RES_OK;
	}
	if (in->has_head)
		r = merkle_check_inclusion(&in->path, in->header.number,
		    in->size, leaf, in->root);
	if (r == RES_CORRUPT || r == RES_INVALID) {
		*out_why = "its path does not lead to the head of its shard";
		return RES_OK;
	}
	if (note.ptr != NULL)
		*out_why = judge_note(v, in, note);
	return r;
}

enum res
verify_check_held(struct verify *v, const struct segment_frame *f,
    const struct segment_content *c)
{
	const char *why = NULL;
	struct inner *in = calloc(1, sizeof *in);
	enum res r = in != NULL ? judge(v, in, c, &why) : RES_NOMEM;
	if (r == RES_OK && why != NULL)
		verify_frame_fault(v, f, "held: %s", why);
	free(in);
	return r;
}
