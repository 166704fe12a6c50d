/* Signed notes on their way into the open shard. */
#include <stdlib.h>

#include "archive/store/writer_inside.h"

void
writer_write_note(struct writer *w, struct job *j)
{
	struct shard *s = w->shard;
	j->result = RES_AGAIN;
	if (s == NULL || s->header.number != j->shard)
		return;
	j->result = shard_add_note(
	    s, j->note_type, j->note, clock_now_us(&w->clock));
	if (j->result == RES_OK && w->applier != NULL)
		applier_wake(w->applier, s->durable, s->frames);
}

/* One note: *out_more when it was a handover, which a checkpoint follows. */
static enum res
add_note(struct writer *w, struct shard_head *h, struct buf *note,
    bool *out_more)
{
	struct job j = { .result = RES_IO };
	pthread_mutex_lock(&w->mutex);
	bool there = w->has_head;
	if (there)
		*h = w->head;
	pthread_mutex_unlock(&w->mutex);
	buf_reset(note);
	*out_more = false;
	if (!there)
		return RES_NOTFOUND;
	enum res r = shard_head_sign(h, w->env.signer,
	    clock_now_us(&w->clock), note, &j.note_type);
	if (r == RES_EXISTS && h->notes.size > 0) {
		buf_reset(note);
		buf_add_c(note, h->notes.last);
		return note->error;
	}
	if (r != RES_OK)
		return r == RES_EXISTS ? RES_NOTFOUND : r;
	j.note = buf_str(note);
	j.shard = h->origin.shard;
	writer_do_job(w, &j);
	*out_more = j.note_type == FRAME_KEY;
	return j.result;
}

enum res
writer_checkpoint(struct writer *w, struct buf *out)
{
	struct shard_head *h = malloc(sizeof *h);
	struct buf note;
	bool more = true;
	enum res r = h != NULL ? RES_OK : RES_NOMEM;
	buf_init(&note, SHARD_MAX_NOTE);
	/* one handover for each key that signs, at most */
	for (int i = 0; r == RES_OK && more && i <= NOTE_MAX_SIGNATURES; i++)
		r = add_note(w, h, &note, &more);
	if (r == RES_OK && more)
		r = RES_AGAIN;
	if (r == RES_OK) {
		buf_add_str(out, buf_str(&note));
		r = out->error;
	}
	buf_done(&note);
	free(h);
	return r;
}
