#include "archive/proof/shard_notes.h"

#include <stdlib.h>

#include "archive/format/record.h"
#include "archive/proof/checkpoints.h"
#include "archive/store/shard.h"

#define READ_MEMORY (CHECKPOINTS_MAX + 4096)
#define META_MAX    (SHARD_MAX_NOTE + 64)

/* --- what is known --- */

static void
add_key(struct shard_notes *n, const struct note_key *k)
{
	if (n->key_count == SHARD_MAX_KEYS) {
		memmove(n->keys, n->keys + 1,
		    (SHARD_MAX_KEYS - 1) * sizeof *n->keys);
		n->key_count--;
	}
	n->keys[n->key_count++] = *k;
}

static bool
knows(const struct shard_notes *n, const struct note_key *k)
{
	for (size_t i = 0; i < n->key_count; i++)
		if (note_key_same(&n->keys[i], k))
			return true;
	return false;
}

/* A checkpoint of this shard? */
static bool
is_ours(const struct shard *s, struct str bytes, struct note_head *out)
{
	struct note note;
	struct note_origin origin = note_origin_of(&s->header);
	return note_open(bytes, &note) == RES_OK &&
	    note_head_parse(note.text, out) == RES_OK &&
	    note_origin_same(&out->origin, &origin);
}

static void
keep_last(struct shard_notes *n, const struct note_head *h, struct str bytes)
{
	n->size = h->size;
	memcpy(n->root, h->root, sizeof n->root);
	memcpy(n->last, bytes.ptr, bytes.len); /* note_open knows the limit */
	n->last[bytes.len] = '\0';
}

/* --- recovery --- */

enum res
shard_notes_read(struct shard *s)
{
	struct shard_notes *n = &s->notes;
	struct note_key key;
	struct str text, bytes;
	struct note_head head;
	if (note_key_parse(str_c(s->header.key), &key) == RES_OK)
		add_key(n, &key);
	struct arena *a = arena_new(READ_MEMORY);
	if (a == NULL)
		return RES_NOMEM;
	enum res r = checkpoints_read(s->env->io, s->dir, a, &text);
	bool bad = r == RES_LIMIT;
	while (r == RES_OK && checkpoints_next(&text, &bytes)) {
		if (!is_ours(s, bytes, &head))
			bad = true;
		else if (head.size >= n->size)
			keep_last(n, &head, bytes);
	}
	arena_free(&a);
	if (bad)
		shard_alarm(s->env, "%s/" CHECKPOINTS_FILE ": damaged; see "
		    "hanaper archive verify", s->dir);
	return r == RES_LIMIT ? RES_OK : r;
}

void
shard_notes_frame(
    struct shard *s, const struct segment_frame *f, struct str meta)
{
	struct note note;
	struct note_handover h;
	if (f->header.type == FRAME_NOTE && f->header.number >= s->notes.size)
		s->notes.news--; /* a note is no news; see judge */
	if (f->header.type == FRAME_KEY &&
	    note_open(record_find(meta, NOTE_TEXT), &note) == RES_OK &&
	    note_handover_parse(note.text, &h) == RES_OK)
		add_key(&s->notes, &h.key);
}

/* By a key of the shard. */
static bool
is_signed(const struct shard_notes *n, struct str bytes)
{
	struct note note;
	if (note_open(bytes, &note) != RES_OK)
		return false;
	for (size_t i = 0; i < n->key_count; i++)
		if (note_check(&note, &n->keys[i]) == RES_OK)
			return true;
	return false;
}

static enum res
end_epoch(struct shard *s, const struct recovery *rec, struct err *err)
{
	shard_alarm(s->env, rec->signed_reached ?
	    "%s: its first %llu frames are not those that were signed: a new "
	    "epoch begins, and this shard gets no more mail" :
	    "%s: %llu frames were signed, and not all are there: a new epoch "
	    "begins, and this shard gets no more mail", s->dir,
	    (unsigned long long)s->notes.size);
	s->ended = true;
	return store_dir_new_epoch(
	    s->env->io, s->env->store_path, s->header.epoch, err);
}

enum res
shard_notes_judge(
    struct shard *s, const struct recovery *rec, struct err *err)
{
	struct shard_notes *n = &s->notes;
	struct store_identity id;
	n->news += rec->frames > n->size ? rec->frames - n->size : 0;
	enum res r = store_dir_identity(s->env->store_path, err, &id);
	if (r != RES_OK)
		return r;
	/* the store was restored, or another family's tree has changed */
	s->ended = s->header.epoch < id.epoch;
	if (n->size == 0)
		return RES_OK;
	if (n->key_count > 0 && !is_signed(n, str_c(n->last))) {
		shard_alarm(s->env, "%s/" CHECKPOINTS_FILE ": its last note "
		    "is damaged; see hanaper archive verify", s->dir);
		n->size = 0;
		n->last[0] = '\0';
		return RES_OK;
	}
	if (rec->signed_reached &&
	    memcmp(rec->signed_root, n->root, sizeof n->root) == 0)
		return RES_OK;
	return end_epoch(s, rec, err);
}

/* --- signing --- */

void
shard_head(const struct shard *s, struct shard_head *out)
{
	out->origin = note_origin_of(&s->header);
	out->tree = s->tree;
	out->can_sign = !s->holes && !s->damaged && !s->ended;
	out->writable = shard_writable(s);
	out->notes = s->notes;
}

static enum res
sign_handover(const struct shard_head *h, const struct note_key *key,
    struct signer *signer, int64_t now_us, struct buf *out)
{
	struct note_handover over = { .origin = h->origin, .key = *key,
		.time_us = now_us };
	struct buf text;
	buf_init(&text, SIGNER_MAX_NOTE);
	note_handover_format(&text, &over);
	enum res r = text.error;
	if (r == RES_OK)
		r = note_sign(signer, h->origin.store, buf_str(&text), now_us,
		    out);
	buf_done(&text);
	return r;
}

static enum res
sign_head(const struct shard_head *h, struct signer *signer, int64_t now_us,
    struct buf *out)
{
	struct note_head head = { .origin = h->origin, .size = h->tree.count,
		.time_us = now_us };
	struct buf text;
	enum res r = merkle_root(&h->tree, head.root);
	if (r != RES_OK)
		return r;
	buf_init(&text, SIGNER_MAX_NOTE);
	note_head_format(&text, &head);
	r = text.error;
	if (r == RES_OK)
		r = note_sign(signer, h->origin.store, buf_str(&text), now_us,
		    out);
	buf_done(&text);
	return r;
}

enum res
shard_head_sign(const struct shard_head *h, struct signer *signer,
    int64_t now_us, struct buf *out, enum frame_type *out_type)
{
	struct note_key keys[NOTE_MAX_SIGNATURES];
	size_t count;
	if (!h->can_sign)
		return RES_INVALID;
	enum res r = note_signing_keys(
	    signer, h->origin.store, now_us, keys, &count);
	if (r != RES_OK)
		return r;
	for (size_t i = 0; i < count && h->writable; i++)
		if (!knows(&h->notes, &keys[i])) {
			*out_type = FRAME_KEY;
			return sign_handover(
			    h, &keys[i], signer, now_us, out);
		}
	if (h->notes.news == 0)
		return RES_EXISTS;
	*out_type = FRAME_NOTE;
	r = sign_head(h, signer, now_us, out);
	/* it is of use only when the shard says whose key that is */
	if (r == RES_OK && !is_signed(&h->notes, buf_str(out)))
		r = RES_NOTFOUND;
	return r;
}

static enum res
append_frame(
    struct shard *s, enum frame_type type, struct str note, int64_t now_us)
{
	struct record rec;
	struct draft d, *one = &d;
	struct packer *p = packer_new();
	draft_init(&d, type, now_us);
	record_init(&rec, META_MAX);
	record_add(&rec, NOTE_TEXT, note);
	enum res r = p != NULL ? rec.buf.error : RES_NOMEM;
	if (r == RES_OK)
		r = draft_add_small(&d, p, BLOCK_META, buf_str(&rec.buf));
	if (r == RES_OK)
		r = shard_place(s, NULL, 0, s->durable, &d);
	if (r == RES_OK)
		r = shard_append(s, &one, 1);
	draft_done(&d);
	record_done(&rec);
	packer_free(&p);
	return r;
}

static enum res
add_handover(struct shard *s, struct str bytes, int64_t now_us)
{
	struct note note;
	struct note_handover h;
	enum res r = note_open(bytes, &note);
	if (r == RES_OK)
		r = note_handover_parse(note.text, &h);
	if (r == RES_OK && !shard_writable(s))
		r = RES_INVALID;
	if (r == RES_OK)
		r = append_frame(s, FRAME_KEY, bytes, now_us);
	if (r == RES_OK)
		add_key(&s->notes, &h.key);
	return r;
}

static enum res
add_checkpoint(struct shard *s, struct str bytes, int64_t now_us)
{
	struct note_head head;
	if (!is_ours(s, bytes, &head) || head.size > s->frames)
		return RES_INVALID;
	/* what came while it was signed */
	uint64_t newer = s->frames - head.size;
	enum res r = checkpoints_add(s->env->io, s->dir, bytes);
	if (r != RES_OK)
		return r;
	keep_last(&s->notes, &head, bytes);
	s->notes.news = newer < s->notes.news ? newer : s->notes.news;
	return shard_writable(s) ?
	    append_frame(s, FRAME_NOTE, bytes, now_us) : RES_OK;
}

enum res
shard_add_note(struct shard *s, enum frame_type type, struct str note,
    int64_t now_us)
{
	return type == FRAME_KEY ? add_handover(s, note, now_us) :
				   add_checkpoint(s, note, now_us);
}

void
shard_sign_all(struct shard *s, int64_t now_us)
{
	struct shard_head *h = malloc(sizeof *h);
	struct buf note;
	enum frame_type type;
	buf_init(&note, SHARD_MAX_NOTE);
	/* handovers may come before it, while frames can be written */
	for (int i = 0; h != NULL && i <= NOTE_MAX_SIGNATURES; i++) {
		shard_head(s, h);
		buf_reset(&note);
		if (shard_head_sign(h, s->env->signer, now_us, &note, &type) !=
			RES_OK ||
		    shard_add_note(s, type, buf_str(&note), now_us) != RES_OK ||
		    type == FRAME_NOTE)
			break;
	}
	buf_done(&note);
	free(h);
}
