/* Proofs out of the store. */
#include "archive/proof/proof.h"

#include <inttypes.h>
#include <stdlib.h>

#include "archive/format/record.h"
#include "archive/proof/shard_notes.h"
#include "archive/search/reader.h"
#include "keys/digest.h"

/* --- notes and keys of a shard --- */

/* The newest note of the file that is a checkpoint of this shard. */
static enum res
newest_note(const struct shard_view *v, struct arena *a, struct err *err,
    struct str *out, struct note_head *out_head)
{
	struct str text, bytes;
	struct note_origin origin = note_origin_of(&v->entry.header);
	enum res r = checkpoints_read(
	    &archive_io_system, v->entry.dir, a, &text);
	if (r != RES_OK) {
		err_set(err, "%s/" CHECKPOINTS_FILE ": %s", v->entry.dir,
		    res_text(r));
		return r;
	}
	*out = STR_EMPTY;
	while (checkpoints_next(&text, &bytes)) {
		struct note n;
		struct note_head h;
		if (note_open(bytes, &n) == RES_OK &&
		    note_head_parse(n.text, &h) == RES_OK &&
		    note_origin_same(&h.origin, &origin) &&
		    (out->len == 0 || h.size >= out_head->size)) {
			*out = bytes;
			*out_head = h;
		}
	}
	return out->len > 0 ? RES_OK : RES_AGAIN;
}

enum res
proof_newest_note(struct archive_reader *r, struct arena *a, uint32_t shard,
    struct err *err, struct str *out)
{
	struct note_head head;
	const struct shard_view *v = reader_find(r, shard);
	return v != NULL ? newest_note(v, a, err, out, &head) : RES_NOTFOUND;
}

static enum res
given_note(const struct shard_view *v, struct str bytes, struct err *err,
    struct note_head *out)
{
	struct note n;
	struct note_origin origin = note_origin_of(&v->entry.header);
	if (note_open(bytes, &n) != RES_OK ||
	    note_head_parse(n.text, out) != RES_OK) {
		err_set(err, "this is no checkpoint of an archive");
		return RES_SYNTAX;
	}
	if (!note_origin_same(&out->origin, &origin)) {
		err_set(err, "the note is of shard %" PRIu32 ", epoch %" PRIu32
		    " of a store; the message is in shard %" PRIu32
		    ", epoch %" PRIu32, out->origin.shard, out->origin.epoch,
		    origin.shard, origin.epoch);
		return RES_SYNTAX;
	}
	return RES_OK;
}

/* A key of the shard that signed the note. */
static bool
find_signer(struct str bytes, const char *vkey, struct note_key *out)
{
	struct note n;
	struct note_key k;
	if (note_key_parse(str_c(vkey), &k) != RES_OK ||
	    note_open(bytes, &n) != RES_OK || note_check(&n, &k) != RES_OK)
		return false;
	*out = k;
	return true;
}

static bool
signer_of_frame(struct segment_reader *sr, const struct segment_frame *f,
    struct str bytes, struct note_key *out)
{
	struct segment_content c;
	struct note n, by;
	struct note_handover h;
	bool found = false;
	struct arena *a = arena_new(0);
	if (a != NULL && segment_reader_load(sr, a, f, NULL, &c) == RES_OK &&
	    note_open(record_find(c.meta, NOTE_TEXT), &n) == RES_OK &&
	    note_handover_parse(n.text, &h) == RES_OK &&
	    note_open(bytes, &by) == RES_OK)
		found = note_check(&by, &h.key) == RES_OK;
	if (found)
		*out = h.key;
	arena_free(&a);
	return found;
}

/* --- leaves --- */

struct walk {
	uint64_t size;             /* leaves wanted */
	struct merkle tree;
	struct merkle_pass *pass;  /* may be NULL */
	struct merkle_table *table; /* may be NULL */
	struct str note;           /* whose signer is looked for */
	bool *has_key;
	struct note_key *key;
};

static enum res
visit(struct walk *w, struct segment_reader *sr, const struct segment_frame *f)
{
	enum res r = merkle_add(&w->tree, f->header.leaf);
	if (r == RES_OK && w->pass != NULL)
		r = merkle_pass_leaf(w->pass, f->header.leaf);
	if (r == RES_OK && w->table != NULL)
		r = merkle_table_add(w->table, f->header.leaf);
	if (w->has_key != NULL && !*w->has_key &&
	    f->header.type == FRAME_KEY)
		*w->has_key = signer_of_frame(sr, f, w->note, w->key);
	return r;
}

/* The first w->size frames; a missing one is RES_CORRUPT. */
static enum res
walk_leaves(struct walk *w, struct segment_reader *sr, struct err *err)
{
	uint64_t at = SHARD_HEADER_BYTES;
	enum res r = RES_OK;
	merkle_init(&w->tree);
	if (w->has_key != NULL)
		*w->has_key = find_signer(
		    w->note, segment_reader_shard(sr)->key, w->key);
	for (uint64_t n = 0; r == RES_OK && n < w->size; n++) {
		struct segment_frame f;
		r = segment_reader_at(sr, at, &f);
		if (r == RES_NOTFOUND && w->size == UINT64_MAX)
			return RES_OK;
		if (r == RES_OK && f.header.number != n)
			r = RES_CORRUPT;
		if (r == RES_OK)
			r = visit(w, sr, &f);
		if (r == RES_NOTFOUND || r == RES_CORRUPT) {
			err_set(err, "%s/segment: frame %" PRIu64 " at %" PRIu64
			    " is missing or damaged: nothing behind it can be "
			    "proved", segment_reader_dir(sr), n, at);
			return RES_CORRUPT;
		}
		at = segment_frame_end(&f);
	}
	return r;
}

enum res
proof_table(struct archive_reader *r, uint32_t shard, struct err *err,
    struct merkle_table *out)
{
	struct walk w = { .size = UINT64_MAX, .table = out };
	merkle_table_init(out);
	struct shard_view *v = reader_find(r, shard);
	enum res res = v != NULL ? reader_segment(r, v, err) : RES_NOTFOUND;
	if (res == RES_OK)
		res = walk_leaves(&w, v->segment, err);
	if (res == RES_OK)
		res = merkle_table_build(out);
	if (res != RES_OK)
		merkle_table_done(out);
	return res;
}

/* Fill in a plan: from the table, or by a walk that also sees whether the tree
 * is the signed one. */
static enum res
fill(struct shard_view *v, struct merkle_table *table,
    const struct note_head *head, struct str note, struct merkle_path *path,
    struct err *err, bool *has_key, struct note_key *key)
{
	uint8_t root[LEAF_HASH_BYTES];
	struct merkle_pass pass;
	struct walk w = { .size = head->size, .pass = &pass, .note = note,
		.has_key = has_key, .key = key };
	if (table != NULL) {
		*has_key = find_signer(note, v->entry.header.key, key);
		return merkle_table_fill(table, path);
	}
	merkle_pass_begin(&pass, path);
	enum res r = walk_leaves(&w, v->segment, err);
	if (r == RES_OK)
		r = merkle_pass_end(&pass);
	if (r == RES_OK)
		r = merkle_root(&w.tree, root);
	if (r == RES_OK && memcmp(root, head->root, sizeof root) != 0) {
		err_set(err, "%s: its first %" PRIu64 " frames are not those "
		    "that were signed", v->entry.dir, head->size);
		r = RES_CORRUPT;
	}
	return r;
}

/* --- proofs --- */

static void
set_blocks(const struct segment_frame *f, const struct segment_content *c,
    struct proof *p)
{
	const struct str plain[] = { c->meta, c->evidence, c->edits };
	for (int i = 0; i < FRAME_BLOCKS; i++) {
		struct proof_block *b = &p->blocks[i];
		switch (c->state[i]) {
		case BLOCK_ABSENT:
			b->how = PROOF_ABSENT;
			break;
		case BLOCK_WHOLE:
			b->how = PROOF_DISCLOSED;
			if (i != BLOCK_BODY)
				b->plain = plain[i];
			break;
		case BLOCK_ERASED:
		case BLOCK_DAMAGED:
			b->how = PROOF_ERASED;
			break;
		}
	}
	p->frame = f->header.number;
	p->type = f->header.type;
	p->time_us = f->header.time_us;
	memcpy(p->leaf, f->header.leaf, sizeof p->leaf);
}

static enum res
add_salts(struct segment_reader *sr, const struct segment_frame *f,
    const struct segment_content *c, struct proof *p)
{
	enum res r = RES_OK;
	for (int i = 0; i < FRAME_BLOCKS && r == RES_OK; i++) {
		struct proof_block *b = &p->blocks[i];
		if (b->how != PROOF_DISCLOSED)
			continue;
		r = segment_reader_salt(
		    sr, f, (enum frame_block)i, b->salt);
		if (r == RES_OK && i == BLOCK_BODY)
			memcpy(b->sha256, c->body.sha256, sizeof b->sha256);
		else if (r == RES_OK)
			r = digest_sha256(
			    b->plain.ptr, b->plain.len, b->sha256);
	}
	return r;
}

/* Keep only that it was there. */
static enum res
hide(struct proof_block *b, enum frame_block n)
{
	if (b->how != PROOF_DISCLOSED)
		return RES_OK;
	b->how = PROOF_COMMITTED;
	return leaf_commit(n, b->salt, b->sha256, b->commitment);
}

enum res
proof_make(struct archive_reader *r, struct arena *a, uint64_t id,
    const struct proof_options *o, struct err *err, struct proof *out)
{
	struct shard_view *v;
	struct segment_frame f;
	struct segment_content c;
	struct note_head head;
	struct proof p = { .frame = 0 };
	enum res res = reader_frame(r, id, err, &v, &f);
	if (res == RES_OK)
		res = segment_reader_load(v->segment, a, &f, err, &c);
	if (res != RES_OK)
		return res;
	set_blocks(&f, &c, &p);
	res = add_salts(v->segment, &f, &c, &p);
	if (res == RES_OK && o->without_envelope)
		res = hide(&p.blocks[BLOCK_META], BLOCK_META);
	p.origin = note_origin_of(&v->entry.header);
	p.note = o->note;
	if (res == RES_OK)
		res = o->note.len > 0 ?
		    given_note(v, o->note, err, &head) :
		    newest_note(v, a, err, &p.note, &head);
	if (res == RES_AGAIN || (res == RES_OK && p.frame >= head.size)) {
		err_set(err, "no %scheckpoint covers this message%s",
		    o->note.len > 0 ? "such " : "", o->note.len > 0 ? "" :
		    " yet; make one with: hanaper archive checkpoint");
		return RES_AGAIN;
	}
	if (res == RES_OK)
		res = merkle_plan_inclusion(p.frame, head.size, &p.path);
	if (res == RES_OK)
		res = fill(v, o->table, &head, p.note, &p.path, err,
		    &p.has_key, &p.key);
	/* what is given away is right */
	if (res == RES_OK)
		res = proof_check(&p, err, &head);
	if (res == RES_OK)
		*out = p;
	return res;
}

enum res
consistency_make(struct archive_reader *r, struct arena *a, struct str one,
    struct str other, struct err *err, struct consistency *out)
{
	struct note n;
	struct note_head old, new;
	struct consistency c = { .old_note = one, .new_note = other };
	(void)a;
	if (note_open(one, &n) != RES_OK ||
	    note_head_parse(n.text, &old) != RES_OK) {
		err_set(err, "the first note is no checkpoint of an archive");
		return RES_SYNTAX;
	}
	struct shard_view *v = reader_find(r, old.origin.shard);
	if (v == NULL) {
		err_set(err, "the store has no shard %" PRIu32,
		    old.origin.shard);
		return RES_NOTFOUND;
	}
	enum res res = given_note(v, one, err, &old);
	if (res == RES_OK)
		res = given_note(v, other, err, &new);
	if (res == RES_OK && old.size > new.size) {
		struct note_head h = old;
		old = new;
		new = h;
		c.old_note = other;
		c.new_note = one;
	}
	if (res == RES_OK)
		res = reader_segment(r, v, err);
	if (res == RES_OK)
		res = merkle_plan_consistency(old.size, new.size, &c.path);
	if (res == RES_OK)
		res = fill(v, NULL, &new, c.new_note, &c.path, err,
		    &c.has_key, &c.key);
	if (res == RES_OK)
		res = consistency_check(&c, err, &old, &new);
	if (res == RES_OK)
		*out = c;
	return res;
}
