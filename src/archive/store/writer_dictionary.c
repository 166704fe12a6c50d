/* What a writer's mail is packed with, and that the open shard has it. */
#include "archive/store/writer_inside.h"

void
writer_set_dictionary(struct writer *w, struct dictionary *d)
{
	pthread_mutex_lock(&w->mutex);
	struct dictionary *old = w->dictionary;
	w->dictionary = d;
	pthread_mutex_unlock(&w->mutex);
	dictionary_unref(&old);
}

void
writer_adopt_dictionary(struct writer *w)
{
	struct dictionary *d;
	struct err err = { "" };
	if (w->dictionary != NULL)
		return;
	enum res r = shard_read_dictionary(w->shard, &err, &d);
	if (r == RES_OK)
		writer_set_dictionary(w, d);
	else if (r != RES_NOTFOUND)
		shard_alarm(&w->env, "%s: its dictionary cannot be used: %s",
		    w->shard->dir, err.text[0] != '\0' ? err.text :
		    res_text(r));
}

enum res
writer_bring_dictionary(struct writer *w, const struct dictionary *d)
{
	if (d == NULL || shard_has_dictionary(w->shard, d))
		return RES_OK;
	return shard_add_dictionary(w->shard, d, clock_now_us(&w->clock));
}

enum res
writer_bring_dictionaries(struct writer *w, size_t count)
{
	enum res r = RES_OK;
	for (size_t i = 0; i < count && (r == RES_OK || r == RES_LIMIT); i++)
		r = writer_bring_dictionary(w, w->group[i]->draft->dictionary);
	if (r != RES_LIMIT)
		return r;
	writer_set_dictionary(w, NULL);
	writer_adopt_dictionary(w); /* the next come with one that is here */
	return RES_OK;
}

/* Is there mail enough for the first dictionary, or for a better one? */
static bool
train_due(const struct writer *w)
{
	const struct dictionary *d = w->dictionary;
	uint64_t least =
	    d != NULL ? TRAINER_SECOND_FRAMES : TRAINER_FIRST_FRAMES;
	return w->trainer == NULL && w->shard->frames >= least &&
	    w->shard->frames >= w->train_at &&
	    (d == NULL || d->parts.samples < TRAIN_MAX_SAMPLES) &&
	    w->shard->dictionary_count < SEGMENT_MAX_DICTIONARIES;
}

void
writer_train(struct writer *w)
{
	struct dictionary *d;
	if (w->trainer != NULL && trainer_poll(w->trainer, &d)) {
		trainer_stop(&w->trainer);
		if (d != NULL)
			writer_set_dictionary(w, d);
	}
	if (!train_due(w))
		return;
	w->train_at = w->shard->frames * 2;
	w->trainer =
	    trainer_start(w->env.store_path, w->family, w->dictionary);
}
