/* Checking what is signed of a shard, and by whom. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "archive/format/record.h"
#include "archive/proof/checkpoints.h"
#include "archive/proof/verify_inside.h"

static void
add_key(struct verify *v, const struct note_key *k)
{
	struct checked_key *c = arena_alloc(v->arena, sizeof *c);
	if (c == NULL)
		return; /* its notes are then called unknown: never silent */
	*c = (struct checked_key){ *k, v->keys };
	v->keys = c;
}

static enum res
add_note(struct verify *v, const struct kept_note *n)
{
	if (v->note_count == v->note_cap) {
		size_t cap = v->note_cap == 0 ? 64 : v->note_cap * 2;
		struct kept_note *more =
		    arena_array(v->arena, cap, sizeof *more);
		if (more == NULL)
			return RES_NOMEM;
		if (v->note_count > 0)
			memcpy(more, v->notes, v->note_count * sizeof *more);
		v->notes = more;
		v->note_cap = cap;
	}
	v->notes[v->note_count++] = *n;
	return RES_OK;
}

static bool
is_checkpoint(struct verify *v, struct str bytes, struct note_head *out)
{
	struct note note;
	struct note_origin origin = note_origin_of(&v->entry->header);
	return note_open(bytes, &note) == RES_OK &&
	    note_head_parse(note.text, out) == RES_OK &&
	    note_origin_same(&out->origin, &origin);
}

enum res
verify_read_checkpoints(struct verify *v)
{
	struct str text, bytes;
	uint64_t position = 0;
	enum res r = checkpoints_read(
	    &archive_io_system, v->entry->dir, v->arena, &text);
	if (r == RES_NOMEM)
		return r;
	if (r != RES_OK) {
		verify_shard_fault(v, CHECKPOINTS_FILE ": cannot be read: %s",
		    res_text(r));
		return RES_OK;
	}
	while (r == RES_OK && checkpoints_next(&text, &bytes)) {
		struct kept_note n = { .bytes = bytes,
			.position = ++position };
		if (!is_checkpoint(v, bytes, &n.head))
			verify_shard_fault(v, CHECKPOINTS_FILE ": note %" PRIu64
			    " is damaged", position);
		else
			r = add_note(v, &n);
	}
	return r;
}

enum res
verify_read_successors(struct verify *v)
{
	enum res r = RES_OK;
	for (size_t i = 0; i < v->entry_count && r == RES_OK; i++) {
		const struct shard_entry *e = &v->entries[i];
		struct kept_note n = { .where = e->dir };
		if (e->status != RES_OK ||
		    e->header.previous != v->entry->header.number ||
		    e->header.previous_note[0] == '\0')
			continue;
		n.bytes = str_c(e->header.previous_note);
		if (!is_checkpoint(v, n.bytes, &n.head))
			verify_shard_fault(v, "the note in the header of %s is "
			    "damaged", e->dir);
		else
			r = add_note(v, &n);
	}
	return r;
}

static void HN_PRINTF(3, 4)
note_fault(struct verify *v, const struct kept_note *n, const char *fmt, ...)
{
	char text[VERIFY_MAX_TEXT];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	if (n->position != 0)
		verify_shard_fault(v,
		    CHECKPOINTS_FILE ": note %" PRIu64 " of %" PRIu64
				     " frames: %s",
		    n->position, n->head.size, text);
	else
		verify_shard_fault(v,
		    "the note of %" PRIu64 " frames in the header of %s: %s",
		    n->head.size, n->where, text);
}

enum res
verify_compare_roots(struct verify *v)
{
	uint8_t root[LEAF_HASH_BYTES];
	bool made = false;
	if (v->number < v->next_size || v->holes)
		return RES_OK;
	v->next_size = UINT64_MAX;
	for (size_t i = 0; i < v->note_count; i++) {
		const struct kept_note *n = &v->notes[i];
		if (n->head.size > v->number && n->head.size < v->next_size)
			v->next_size = n->head.size;
		if (n->head.size != v->number)
			continue;
		enum res r = made ? RES_OK : merkle_root(&v->tree, root);
		if (r != RES_OK)
			return r;
		made = true;
		if (memcmp(root, n->head.root, sizeof root) != 0)
			note_fault(v, n, "the frames are not those that were "
			    "signed");
	}
	return RES_OK;
}

/* Every signature by a key that the shard names. */
static void
check_signatures(struct verify *v, const struct kept_note *k)
{
	struct note n;
	if (note_open(k->bytes, &n) != RES_OK)
		return; /* it was opened before */
	for (size_t i = 0; i < n.count; i++) {
		const struct checked_key *c = v->keys;
		struct note one = { .text = n.text, .count = 1,
			.signatures = { n.signatures[i] } };
		enum res r = RES_NOTFOUND;
		for (; c != NULL && r == RES_NOTFOUND; c = c->next)
			r = note_check(&one, &c->key);
		if (r == RES_NOTFOUND)
			note_fault(v, k, "signature %zu is by a key that the "
			    "shard does not name", i + 1);
		else if (r != RES_OK)
			note_fault(v, k, "signature %zu is wrong", i + 1);
	}
	v->counts.notes += k->position != 0;
}

uint64_t
verify_judge_notes(struct verify *v)
{
	uint64_t upto = 0;
	for (size_t i = 0; i < v->note_count; i++) {
		const struct kept_note *n = &v->notes[i];
		check_signatures(v, n);
		if (n->head.size > v->number)
			note_fault(v, n, "the segment has only %" PRIu64
			    " frames", v->number);
		else if (n->head.size > upto)
			upto = n->head.size;
		if (n->head.size == 0)
			note_fault(v, n, "it signs nothing");
	}
	return upto;
}

void
verify_check_note_frame(
    struct verify *v, const struct segment_frame *f, struct str meta)
{
	struct str bytes = record_find(meta, NOTE_TEXT);
	struct note_head head;
	if (!is_checkpoint(v, bytes, &head)) {
		verify_frame_fault(
		    v, f, "its note is no checkpoint of this shard");
		return;
	}
	if (head.size > f->header.number)
		verify_frame_fault(v, f, "its note speaks of later frames");
	for (size_t i = 0; i < v->note_count; i++)
		if (v->notes[i].position != 0 &&
		    str_eq(v->notes[i].bytes, bytes)) {
			v->notes[i].framed = true;
			return;
		}
	verify_frame_fault(v, f, "its note is missing in " CHECKPOINTS_FILE);
}

void
verify_check_key_frame(
    struct verify *v, const struct segment_frame *f, struct str meta)
{
	struct note n;
	struct note_handover h;
	struct note_origin origin = note_origin_of(&v->entry->header);
	if (note_open(record_find(meta, NOTE_TEXT), &n) != RES_OK ||
	    note_handover_parse(n.text, &h) != RES_OK ||
	    !note_origin_same(&h.origin, &origin)) {
		verify_frame_fault(v, f, "it hands no key over");
		return;
	}
	bool vouched = v->keys == NULL; /* the first key of all */
	for (const struct checked_key *c = v->keys; c != NULL && !vouched;
	     c = c->next)
		vouched = note_check(&n, &c->key) == RES_OK;
	if (!vouched)
		verify_frame_fault(
		    v, f, "no key before it vouches for the new key");
	if (note_check(&n, &h.key) != RES_OK)
		verify_frame_fault(v, f, "the new key itself did not sign");
	add_key(v, &h.key);
}

void
verify_check_first_key(struct verify *v)
{
	struct note_key key, old;
	struct note n;
	const struct shard_header *h = &v->entry->header;
	if (h->key[0] == '\0')
		return;
	if (note_key_parse(str_c(h->key), &key) != RES_OK) {
		verify_shard_fault(v,
		    "its header has no verification key that can be read");
		return;
	}
	add_key(v, &key);
	const struct shard_entry *p =
	    h->previous != 0 ? verify_by_number(v, h->previous) : NULL;
	if (p == NULL || note_key_parse(str_c(p->header.key), &old) != RES_OK ||
	    note_key_same(&key, &old))
		return;
	/* else the new key signed the last note of the shard before, beside
	 * one that was known there */
	if (note_open(str_c(h->previous_note), &n) != RES_OK ||
	    note_check(&n, &key) != RES_OK)
		verify_shard_fault(v, "its key is not the one of shard %" PRIu32
		    ", and did not sign the last note there", h->previous);
}
