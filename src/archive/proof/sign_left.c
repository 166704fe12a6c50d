/* Signing shards that no writer of ours has open: an import leaves its own
 * behind unsigned, and so does whoever was killed, or had no key. */
#include <stdlib.h>
#include <unistd.h>

#include "archive/index/index.h"
#include "archive/proof/checkpoints.h"
#include "archive/store/shard.h"
#include "archive/store/store.h"
#include "base/clock.h"

#define MEMORY (CHECKPOINTS_MAX * 2)

/* Size of the largest tree that the shard's file has a note of. */
static enum res
size_signed(const struct shard_entry *e, uint64_t *out)
{
	struct str text, bytes;
	struct note note;
	struct note_head head;
	struct arena *a = arena_new(MEMORY);
	if (a == NULL)
		return RES_NOMEM;
	*out = 0;
	enum res r = checkpoints_read(&archive_io_system, e->dir, a, &text);
	while (r == RES_OK && checkpoints_next(&text, &bytes))
		if (note_open(bytes, &note) == RES_OK &&
		    note_head_parse(note.text, &head) == RES_OK &&
		    head.size > *out)
			*out = head.size;
	arena_free(&a);
	return r;
}

/* Seen from outside, by its index; without one it is looked into. The frame
 * behind those signed is the note itself. */
static bool
seems_signed(const struct shard_entry *e)
{
	struct index_position applied;
	uint64_t size;
	return size_signed(e, &size) == RES_OK && size > 0 &&
	    index_peek(e->dir, &applied) == RES_OK &&
	    applied.frames <= size + 1;
}

static enum res
sign(const struct shard_env *env, const struct shard_entry *e, int64_t now_us,
    struct buf *note)
{
	struct err err = { "" };
	struct shard *s;
	enum res r = shard_open(env, e, 0, &err, &s);
	if (r != RES_OK)
		return r;
	uint64_t before = s->notes.size;
	shard_sign_all(s, now_us);
	if (s->notes.size > before) {
		buf_add_c(note, s->notes.last);
		r = note->error;
	} else if (s->notes.news == 0) {
		r = RES_EXISTS;
	} else {
		r = s->holes || s->damaged || s->ended ? RES_CORRUPT
						       : RES_AGAIN;
	}
	shard_close(&s);
	return r;
}

/* RES_DENIED: a writer has it; RES_EXISTS: all of it is signed. */
static enum res
sign_entry(const struct shard_env *env, const struct shard_entry *e,
    int64_t now_us, struct buf *note)
{
	int lock = -1;
	if (e->status != RES_OK)
		return RES_EXISTS; /* told by whoever opens the store */
	enum res r = shard_lock(env->io, e->dir, &lock);
	if (r != RES_OK)
		return r;
	bool done = seems_signed(e);
	env->io->close(env->io, lock);
	return done ? RES_EXISTS : sign(env, e, now_us, note);
}

unsigned
store_checkpoint_left(struct store *s, store_checkpoint_fn told, void *context)
{
	const struct shard_env *env = store_env(s);
	struct shard_entry *entries;
	struct err err = { "" };
	size_t count = 0;
	unsigned failed = 0;
	struct arena *a = arena_new(0);
	enum res r = a == NULL ? RES_NOMEM
			       : store_dir_shards(env->store_path, NULL, a,
				     &err, &entries, &count);
	if (r != RES_OK) {
		shard_alarm(
		    env, "%s", err.text[0] != '\0' ? err.text : res_text(r));
		failed = 1;
	}
	const struct clock clock = store_clock(s);
	for (size_t i = 0; r == RES_OK && i < count; i++) {
		struct buf note;
		buf_init(&note, SHARD_MAX_NOTE);
		enum res one =
		    sign_entry(env, &entries[i], clock_now_us(&clock), &note);
		if (one != RES_EXISTS && one != RES_DENIED) {
			failed += one != RES_OK;
			told(context, entries[i].header.family, one,
			    buf_str(&note));
		}
		buf_done(&note);
	}
	arena_free(&a);
	return failed;
}
