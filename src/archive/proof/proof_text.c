/* Proofs as text, and checking them: nothing here knows a store. */
#include "archive/proof/proof.h"

#include <inttypes.h>

#include "base/codec.h"
#include "keys/digest.h"

#define PROOF_TITLE       "hanaper-proof 1\n"
#define CONSISTENCY_TITLE "hanaper-consistency 1\n"

/* --- writing --- */

static void
put_hex(struct buf *b, const char *name, const void *bytes, size_t len)
{
	buf_addf(b, "%s ", name);
	hex_encode(b, bytes, len);
	buf_add_char(b, '\n');
}

static void
put_block(struct buf *b, enum frame_block n, const struct proof_block *p)
{
	buf_add_c(b, frame_block_name(n));
	switch (p->how) {
	case PROOF_ABSENT:
		buf_add_c(b, " absent\n");
		break;
	case PROOF_ERASED:
		buf_add_c(b, " erased\n");
		break;
	case PROOF_COMMITTED:
		put_hex(b, " committed", p->commitment, LEAF_HASH_BYTES);
		break;
	case PROOF_DISCLOSED:
		buf_add_c(b, " disclosed ");
		hex_encode(b, p->salt, sizeof p->salt);
		buf_add_char(b, ' ');
		if (n == BLOCK_BODY)
			hex_encode(b, p->sha256, sizeof p->sha256);
		else
			base64_encode(b, p->plain.ptr, p->plain.len);
		buf_add_char(b, '\n');
		break;
	}
}

static void
put_path(struct buf *b, const struct merkle_path *path)
{
	for (size_t i = 0; i < path->count; i++)
		put_hex(b, "path", path->nodes[i].hash, LEAF_HASH_BYTES);
}

static void
put_key(struct buf *b, bool has_key, const struct note_key *key)
{
	if (!has_key)
		return;
	buf_add_c(b, "key ");
	note_key_format(b, key);
	buf_add_char(b, '\n');
}

void
proof_format(struct buf *out, const struct proof *p)
{
	buf_add_c(out, PROOF_TITLE "shard ");
	hex_encode(out, p->origin.store, sizeof p->origin.store);
	buf_addf(out,
	    "/%" PRIu32 "/%" PRIu32 "\nframe %" PRIu64 "\ntype %u\n"
	    "time %" PRId64 "\n",
	    p->origin.epoch, p->origin.shard, p->frame, (unsigned)p->type,
	    p->time_us);
	for (int i = 0; i < FRAME_BLOCKS; i++)
		put_block(out, (enum frame_block)i, &p->blocks[i]);
	put_hex(out, "leaf", p->leaf, sizeof p->leaf);
	put_path(out, &p->path);
	put_key(out, p->has_key, &p->key);
	buf_add_c(out, "note\n");
	buf_add_str(out, p->note);
}

void
consistency_format(struct buf *out, const struct consistency *c)
{
	buf_add_c(out, CONSISTENCY_TITLE);
	put_path(out, &c->path);
	put_key(out, c->has_key, &c->key);
	buf_add_c(out, "old\n");
	buf_add_str(out, c->old_note);
	buf_add_c(out, "new\n");
	buf_add_str(out, c->new_note);
}

/* --- reading --- */

struct lines {
	struct str rest;
	unsigned number;
	struct err *err;
};

/* The next line when it begins with this word; the rest of it. */
static bool
take(struct lines *l, const char *word, struct str *out)
{
	struct str rest = l->rest, line, name = str_c(word);
	if (rest.len == 0 || !str_split(&rest, '\n', &line) ||
	    rest.ptr == NULL || !str_starts(line, name))
		return false;
	line = str_skip(line, name.len);
	if (line.len > 0 && line.ptr[0] != ' ')
		return false;
	*out = str_skip(line, 1);
	l->rest = rest;
	l->number++;
	return true;
}

static enum res
bad_line(const struct lines *l, const char *what)
{
	err_set(l->err, "line %u of the proof: %s expected", l->number + 1,
	    what);
	return RES_SYNTAX;
}

static bool
get_hex(struct str text, void *out, size_t len)
{
	struct buf b;
	buf_init(&b, len + 1);
	bool good = text.len == 2 * len && hex_decode(text, &b) == RES_OK;
	if (good)
		memcpy(out, b.ptr, len);
	buf_done(&b);
	return good;
}

static bool
take_number(struct lines *l, const char *word, uint64_t max, uint64_t *out)
{
	struct str s;
	return take(l, word, &s) && str_to_u64(s, max, out) == RES_OK;
}

static bool
take_origin(struct lines *l, struct note_origin *out)
{
	struct str s, store, epoch;
	uint64_t e, n;
	if (!take(l, "shard", &s) || !str_split(&s, '/', &store) ||
	    !str_split(&s, '/', &epoch) ||
	    !get_hex(store, out->store, sizeof out->store) ||
	    str_to_u64(epoch, UINT32_MAX, &e) != RES_OK ||
	    str_to_u64(s, UINT32_MAX, &n) != RES_OK)
		return false;
	out->epoch = (uint32_t)e;
	out->shard = (uint32_t)n;
	return true;
}

static enum res
get_disclosed(struct str s, struct arena *a, enum frame_block b,
    struct proof_block *out)
{
	struct str salt;
	struct buf plain;
	if (!str_split(&s, ' ', &salt) ||
	    !get_hex(salt, out->salt, sizeof out->salt))
		return RES_SYNTAX;
	if (b == BLOCK_BODY)
		return get_hex(s, out->sha256, sizeof out->sha256) ?
		    RES_OK : RES_SYNTAX;
	buf_init(&plain, SEGMENT_MAX_RECORD);
	enum res r = base64_decode(s, false, &plain);
	if (r == RES_OK) {
		out->plain = arena_dup(a, buf_str(&plain));
		r = out->plain.ptr != NULL ? RES_OK : RES_NOMEM;
	}
	if (r == RES_OK)
		r = digest_sha256(plain.ptr, plain.len, out->sha256);
	buf_done(&plain);
	return r;
}

static enum res
take_block(struct lines *l, struct arena *a, enum frame_block b,
    struct proof_block *out)
{
	struct str s, how;
	enum res r = RES_SYNTAX;
	if (!take(l, frame_block_name(b), &s) || !str_split(&s, ' ', &how))
		return bad_line(l, frame_block_name(b));
	*out = (struct proof_block){ .how = PROOF_ABSENT };
	if (s.ptr == NULL && str_eq(how, STR("absent"))) {
		r = RES_OK;
	} else if (s.ptr == NULL && str_eq(how, STR("erased"))) {
		out->how = PROOF_ERASED;
		r = RES_OK;
	} else if (str_eq(how, STR("committed"))) {
		out->how = PROOF_COMMITTED;
		if (get_hex(s, out->commitment, sizeof out->commitment))
			r = RES_OK;
	} else if (str_eq(how, STR("disclosed"))) {
		out->how = PROOF_DISCLOSED;
		r = get_disclosed(s, a, b, out);
	}
	if (r == RES_SYNTAX) {
		l->number--;
		return bad_line(l, "what is said of a block");
	}
	return r;
}

static enum res
take_path(struct lines *l, struct merkle_path *path)
{
	struct str s;
	path->count = 0;
	while (take(l, "path", &s)) {
		struct merkle_node n = { .from = 0 };
		if (path->count == MERKLE_MAX_PATH ||
		    !get_hex(s, n.hash, sizeof n.hash)) {
			l->number--;
			return bad_line(l, "a hash in hex");
		}
		path->nodes[path->count++] = n;
	}
	return RES_OK;
}

static enum res
take_key(struct lines *l, bool *out_has, struct note_key *key)
{
	struct str s;
	*out_has = take(l, "key", &s);
	if (!*out_has || note_key_parse(s, key) == RES_OK)
		return RES_OK;
	l->number--;
	return bad_line(l, "a verification key");
}

/* There is one way to write each proof. */
static enum res
compare_text(struct buf *again, struct str text, struct err *err)
{
	enum res r = again->error;
	if (r == RES_OK && !str_eq(buf_str(again), text)) {
		err_set(err, "the proof is not written as it should be");
		r = RES_SYNTAX;
	}
	buf_done(again);
	return r;
}

bool
proof_is_consistency(struct str text)
{
	return str_starts(text, STR(CONSISTENCY_TITLE));
}

enum res
proof_parse(
    struct str text, struct arena *a, struct err *err, struct proof *out)
{
	struct lines l = { text, 0, err };
	struct proof p = { .frame = 0 };
	struct str s;
	uint64_t type, time_us;
	enum res r = RES_OK;
	if (text.len > PROOF_MAX_TEXT ||
	    !str_starts(text, STR(PROOF_TITLE)))
		return bad_line(&l, "\"hanaper-proof 1\"");
	l.rest = str_skip(text, sizeof PROOF_TITLE - 1);
	l.number = 1;
	if (!take_origin(&l, &p.origin))
		return bad_line(&l, "shard STORE/EPOCH/SHARD");
	if (!take_number(&l, "frame", UINT32_MAX, &p.frame))
		return bad_line(&l, "frame NUMBER");
	if (!take_number(&l, "type", 255, &type))
		return bad_line(&l, "type NUMBER");
	if (!take_number(&l, "time", INT64_MAX, &time_us))
		return bad_line(&l, "time NUMBER");
	p.type = (uint8_t)type;
	p.time_us = (int64_t)time_us;
	for (int i = 0; i < FRAME_BLOCKS && r == RES_OK; i++)
		r = take_block(&l, a, (enum frame_block)i, &p.blocks[i]);
	if (r != RES_OK)
		return r;
	if (!take(&l, "leaf", &s) || !get_hex(s, p.leaf, sizeof p.leaf))
		return bad_line(&l, "leaf HASH");
	r = take_path(&l, &p.path);
	if (r == RES_OK)
		r = take_key(&l, &p.has_key, &p.key);
	if (r != RES_OK)
		return r;
	if (!take(&l, "note", &s) || s.len > 0)
		return bad_line(&l, "note");
	p.note = l.rest;
	struct buf again;
	buf_init(&again, PROOF_MAX_TEXT);
	proof_format(&again, &p);
	r = compare_text(&again, text, err);
	if (r == RES_OK)
		*out = p;
	return r;
}

enum res
consistency_parse(
    struct str text, struct err *err, struct consistency *out)
{
	static const struct str middle = { "\nnew\n", 5 };
	struct lines l = { text, 0, err };
	struct consistency c = { .has_key = false };
	struct str s;
	if (text.len > PROOF_MAX_TEXT || !proof_is_consistency(text))
		return bad_line(&l, "\"hanaper-consistency 1\"");
	l.rest = str_skip(text, sizeof CONSISTENCY_TITLE - 1);
	l.number = 1;
	enum res r = take_path(&l, &c.path);
	if (r == RES_OK)
		r = take_key(&l, &c.has_key, &c.key);
	if (r != RES_OK)
		return r;
	size_t at = str_find(l.rest, middle);
	if (!take(&l, "old", &s) || s.len > 0 || at == SIZE_MAX)
		return bad_line(&l, "old, a note, new, a note");
	at -= sizeof "old\n" - 1;
	c.old_note = str_sub(l.rest, 0, at + 1);
	c.new_note = str_skip(l.rest, at + middle.len);
	struct buf again;
	buf_init(&again, PROOF_MAX_TEXT);
	consistency_format(&again, &c);
	r = compare_text(&again, text, err);
	if (r == RES_OK)
		*out = c;
	return r;
}

/* --- checking --- */

static enum res
wrong(struct err *err, const char *what)
{
	err_set(err, "%s", what);
	return RES_CORRUPT;
}

/* RES_NOTFOUND: a block was erased. */
static enum res
make_leaf(const struct proof *p, uint8_t out[LEAF_HASH_BYTES])
{
	uint8_t c[FRAME_BLOCKS][LEAF_HASH_BYTES] = { 0 };
	struct shard_header shard = { .number = p->origin.shard };
	const struct frame_header frame = { .number = p->frame,
		.type = p->type, .time_us = p->time_us };
	memcpy(shard.store_uuid, p->origin.store, sizeof shard.store_uuid);
	enum res r = RES_OK;
	for (int i = 0; i < FRAME_BLOCKS && r == RES_OK; i++) {
		const struct proof_block *b = &p->blocks[i];
		if (b->how == PROOF_ERASED)
			return RES_NOTFOUND;
		if (b->how == PROOF_COMMITTED)
			memcpy(c[i], b->commitment, sizeof c[i]);
		if (b->how == PROOF_DISCLOSED)
			r = leaf_commit(
			    (enum frame_block)i, b->salt, b->sha256, c[i]);
	}
	return r == RES_OK ? leaf_hash(&shard, &frame, c, out) : r;
}

static enum res
open_head(struct str bytes, struct err *err, struct note_head *out)
{
	struct note n;
	if (note_open(bytes, &n) != RES_OK ||
	    note_head_parse(n.text, out) != RES_OK)
		return wrong(err, "the note is no checkpoint of an archive");
	return RES_OK;
}

enum res
proof_check(const struct proof *p, struct err *err, struct note_head *out)
{
	uint8_t leaf[LEAF_HASH_BYTES];
	struct note_head head;
	enum res r = open_head(p->note, err, &head);
	if (r != RES_OK)
		return r;
	if (!note_origin_same(&head.origin, &p->origin))
		return wrong(err, "the note is of another shard");
	r = make_leaf(p, leaf);
	if (r == RES_OK && memcmp(leaf, p->leaf, sizeof leaf) != 0)
		return wrong(err, "the leaf is not that of what is disclosed");
	if (r != RES_OK && r != RES_NOTFOUND)
		return r;
	r = merkle_check_inclusion(
	    &p->path, p->frame, head.size, p->leaf, head.root);
	if (r == RES_CORRUPT)
		return wrong(err, "the path does not lead to the signed root");
	if (r == RES_OK)
		*out = head;
	return r;
}

enum res
consistency_check(const struct consistency *c, struct err *err,
    struct note_head *out_old, struct note_head *out_new)
{
	struct note_head old, new;
	enum res r = open_head(c->old_note, err, &old);
	if (r == RES_OK)
		r = open_head(c->new_note, err, &new);
	if (r != RES_OK)
		return r;
	if (!note_origin_same(&old.origin, &new.origin))
		return wrong(err, "the notes are of different shards");
	r = merkle_check_consistency(
	    &c->path, old.size, new.size, old.root, new.root);
	if (r == RES_CORRUPT)
		return wrong(err, "the newer tree does not begin with the "
		    "older one");
	if (r == RES_OK) {
		*out_old = old;
		*out_new = new;
	}
	return r;
}

enum res
proof_check_note(
    struct str bytes, const struct note_key *key, struct err *err)
{
	struct note n;
	if (note_open(bytes, &n) != RES_OK)
		return wrong(err, "this is no signed note");
	enum res r = note_check(&n, key);
	if (r == RES_NOTFOUND)
		return wrong(err, "the note is not signed by this key");
	if (r == RES_CORRUPT)
		return wrong(err, "the note's signature is wrong");
	return r;
}
