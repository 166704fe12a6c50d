/* A new shard, and what it says about the one before it. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "archive/store/shard_inside.h"
#include "keys/digest.h"

#define MAX_ORDINAL 999999

/* The first PERIOD.N that nobody made yet. */
static enum res
make_shard_dir(struct shard *s, const char *family, const char *period)
{
	const struct archive_io *io = s->env->io;
	char families[PATH_MAX], parent[PATH_MAX];
	enum res r = io_path(families, "%s/families", s->env->store_path);
	if (r == RES_OK)
		r = io_path(parent, "%s/%s", families, family);
	if (r == RES_OK)
		r = io_make_dir(io, families, parent);
	for (unsigned n = 1; r == RES_OK && n <= MAX_ORDINAL; n++) {
		r = io_path(s->dir, "%s/%s.%u", parent, period, n);
		if (r != RES_OK)
			return r;
		if (io->mkdir(io, s->dir) == 0)
			return io->fsync_dir(io, parent) < 0 ?
			    io_error(errno) : RES_OK;
		if (errno != EEXIST)
			return io_error(errno);
	}
	return r != RES_OK ? r : RES_LIMIT;
}

static void
format_key(const struct note_key *k, char out[SHARD_MAX_KEY + 1])
{
	struct buf b;
	buf_init(&b, SHARD_MAX_KEY);
	note_key_format(&b, k);
	if (b.error == RES_OK) {
		memcpy(out, b.ptr, b.len);
		out[b.len] = '\0';
	}
	buf_done(&b);
}

/* Who signs this shard's notes: as far as is known now. */
static void
put_key(struct shard *s, const struct shard_link *previous, int64_t now_us)
{
	struct shard_header *h = &s->header;
	struct note_key key;
	memcpy(h->key, previous->key, sizeof h->key);
	if (note_newest_key(s->env->signer, h->store_uuid, now_us, &key) ==
	    RES_OK)
		format_key(&key, h->key);
}

static enum res
fill_header(struct shard *s, const char *family, const char *period,
    const struct shard_link *previous, int64_t now_us, struct err *err)
{
	struct store_identity id;
	enum res r = store_dir_take_number(
	    s->env->io, s->env->store_path, err, &id);
	if (r != RES_OK)
		return r;
	struct shard_header *h = &s->header;
	h->number = id.next_shard;
	h->epoch = id.epoch;
	memcpy(h->store_uuid, id.uuid, sizeof h->store_uuid);
	snprintf(h->family, sizeof h->family, "%s", family);
	snprintf(h->period, sizeof h->period, "%s", period);
	snprintf(h->tokenizer, sizeof h->tokenizer, "%s", SHARD_TOKENIZER);
	h->created_us = now_us;
	h->previous = previous->number;
	h->previous_bytes = previous->bytes;
	h->previous_frames = previous->frames;
	memcpy(h->previous_root, previous->root, sizeof h->previous_root);
	memcpy(h->previous_note, previous->note, sizeof h->previous_note);
	put_key(s, previous, now_us);
	return digest_random(h->nonce, sizeof h->nonce);
}

static enum res
write_header(struct shard *s)
{
	uint8_t bytes[SHARD_HEADER_BYTES];
	char bodies[PATH_MAX];
	enum res r = io_path(bodies, "%s/bodies", s->dir);
	if (r != RES_OK)
		return r;
	/* durable with the segment beside it */
	if (s->env->io->mkdir(s->env->io, bodies) < 0)
		return io_error(errno);
	shard_header_encode(&s->header, bytes);
	return io_put_file(
	    s->env->io, s->dir, "segment", bytes, sizeof bytes);
}

enum res
shard_create(const struct shard_env *env, const char *family,
    const char *period, const struct shard_link *previous, int64_t now_us,
    struct err *err, struct shard **out)
{
	struct shard *s = shard_new(env);
	if (s == NULL)
		return RES_NOMEM;
	enum res r = fill_header(s, family, period, previous, now_us, err);
	if (r == RES_OK)
		r = make_shard_dir(s, family, period);
	if (r == RES_OK)
		r = shard_lock(env->io, s->dir, &s->lock);
	if (r == RES_OK)
		r = write_header(s);
	if (r == RES_OK)
		r = shard_open_segment(s);
	if (r != RES_OK) {
		err_set(err, "%s: cannot make a shard: %s",
		    s->dir[0] != '\0' ? s->dir : env->store_path, res_text(r));
		shard_close(&s);
		return r;
	}
	s->durable = s->allocated = SHARD_HEADER_BYTES;
	r = shard_notes_read(s);
	if (r != RES_OK) {
		shard_close(&s);
		return r;
	}
	*out = s;
	return RES_OK;
}

struct shard_link
shard_link_of(const struct shard *s)
{
	struct shard_link l = { .number = s->header.number,
		.bytes = s->durable, .frames = s->frames };
	if (s->holes || merkle_root(&s->tree, l.root) != RES_OK)
		memset(l.root, 0, sizeof l.root);
	memcpy(l.note, s->notes.last, sizeof l.note);
	if (s->notes.key_count > 0)
		format_key(&s->notes.keys[s->notes.key_count - 1], l.key);
	return l;
}
