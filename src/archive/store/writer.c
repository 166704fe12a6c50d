#include "archive/store/writer.h"

#include <stdio.h>
#include <stdlib.h>

#include "archive/format/period.h"
#include "archive/store/writer_inside.h"

const char *
writer_family(const struct writer *w)
{
	return w->family;
}

static void
count_group(struct writer *w, size_t count)
{
	struct writer_counters *c = &w->counters;
	bool any = false;
	for (size_t i = 0; i < count; i++) {
		const struct draft *d = w->group[i]->draft;
		if (w->group[i]->result != RES_OK) {
			c->refused++;
			continue;
		}
		any = true;
		c->frames++;
		c->deliveries += d->header.type == FRAME_DELIVERY;
		c->bytes_raw += d->header.body_plain;
		c->bytes_stored += d->header.total;
		if (d->header.flags & FRAME_BODY_IN_FILE)
			c->bytes_stored += d->body.file_bytes;
	}
	c->groups += any;
}

static void
take_first(struct writer *w, size_t *n)
{
	struct job *j = w->first;
	w->first = j->next;
	if (w->first == NULL)
		w->last = &w->first;
	w->group[(*n)++] = j;
}

/* Take what is queued; imports only as far as the month is the same. */
static size_t
take_group(struct writer *w)
{
	size_t n = 0;
	uint64_t bytes = 0;
	while (w->first != NULL && n < WRITER_MAX_GROUP) {
		struct job *j = w->first;
		if (j->draft == NULL && n > 0)
			break; /* a note is a group of its own */
		if (j->draft == NULL) {
			take_first(w, &n);
			break;
		}
		uint64_t more = j->draft->bytes.len;
		if (n > 0 && bytes + more > WRITER_MAX_BYTES)
			break;
		if (n > 0 && w->by_date &&
		    period_of(j->draft->header.time_us) !=
			period_of(w->group[0]->draft->header.time_us))
			break;
		take_first(w, &n);
		bytes += more;
	}
	return n;
}

/* With the mutex held. */
static void
publish_head(struct writer *w)
{
	w->has_head = w->shard != NULL;
	if (w->has_head)
		shard_head(w->shard, &w->head);
}

static void *
writer_main(void *arg)
{
	struct writer *w = arg;
	pthread_mutex_lock(&w->mutex);
	for (;;) {
		while (w->first == NULL && !w->stop)
			pthread_cond_wait(&w->work, &w->mutex);
		if (w->first == NULL)
			break;
		size_t count = take_group(w);
		bool leave = w->group[0]->leave != 0;
		pthread_mutex_unlock(&w->mutex);
		if (leave)
			writer_leave_shard(w, w->group[0]);
		else if (w->group[0]->draft == NULL)
			writer_write_note(w, w->group[0]);
		else
			writer_write_group(w, count);
		pthread_mutex_lock(&w->mutex);
		publish_head(w);
		if (w->group[0]->draft != NULL)
			count_group(w, count);
		/* woken with the lock held, each would only wait for it */
		pthread_mutex_unlock(&w->mutex);
		for (size_t i = 0; i < count; i++)
			sem_post(&w->group[i]->done);
		pthread_mutex_lock(&w->mutex);
	}
	pthread_mutex_unlock(&w->mutex);
	return NULL;
}

/* --- life --- */

enum res
writer_new(
    const struct writer_options *o, struct err *err, struct writer **out)
{
	if (!store_family_valid(o->family)) {
		err_set(err, "archive family \"%s\": use up to %d of a-z, 0-9 "
		    "and -", o->family, SHARD_MAX_FAMILY);
		return RES_INVALID;
	}
	struct writer *w = calloc(1, sizeof *w);
	if (w == NULL)
		return RES_NOMEM;
	w->env = *o->env;
	snprintf(w->family, sizeof w->family, "%s", o->family);
	w->roll_bytes = o->roll_bytes;
	w->retry_us = o->retry_us != 0 ? o->retry_us : WRITER_RETRY_US;
	w->clock = o->clock;
	w->by_date = o->by_date;
	w->without_index = o->without_index;
	w->lazy_index = o->lazy_index;
	leaving_init(&w->leaving);
	w->last = &w->first;
	w->wall_us = clock_now_us(&w->clock);
	w->mono_us = clock_mono_us();
	pthread_mutex_init(&w->mutex, NULL);
	pthread_cond_init(&w->work, NULL);
	enum res r = RES_OK;
	if (!w->by_date)
		r = writer_open_newest(w, NULL, err);
	publish_head(w); /* nobody else knows `w` yet */
	if (r == RES_OK && pthread_create(&w->thread, NULL, writer_main, w) != 0)
		r = RES_NOMEM;
	if (r != RES_OK) {
		applier_stop(&w->applier);
		leaving_wait(&w->leaving);
		shard_close(&w->shard);
		dictionary_unref(&w->dictionary);
		pthread_cond_destroy(&w->work);
		pthread_mutex_destroy(&w->mutex);
		free(w);
		return r;
	}
	*out = w;
	return RES_OK;
}

void
writer_free(struct writer **writer)
{
	struct writer *w = *writer;
	if (w == NULL)
		return;
	pthread_mutex_lock(&w->mutex);
	w->stop = true;
	pthread_cond_signal(&w->work);
	pthread_mutex_unlock(&w->mutex);
	pthread_join(w->thread, NULL);
	applier_stop(&w->applier);
	applier_stop(&w->poisoned_applier);
	leaving_wait(&w->leaving);
	trainer_stop(&w->trainer);
	shard_close(&w->shard);
	shard_close(&w->poisoned);
	dictionary_unref(&w->dictionary);
	pthread_cond_destroy(&w->work);
	pthread_mutex_destroy(&w->mutex);
	free(w);
	*writer = NULL;
}

void
writer_do_job(struct writer *w, struct job *j)
{
	(void)sem_init(&j->done, 0, 0); /* fails for shared ones only */
	pthread_mutex_lock(&w->mutex);
	*w->last = j;
	w->last = &j->next;
	pthread_mutex_unlock(&w->mutex);
	pthread_cond_signal(&w->work);
	while (sem_wait(&j->done) != 0)
		; /* a signal */
	(void)sem_destroy(&j->done);
}

enum res
writer_submit(struct writer *w, struct draft *d, uint64_t *out_id)
{
	struct job j = { .draft = d, .result = RES_IO };
	writer_do_job(w, &j);
	if (j.result == RES_OK)
		*out_id = j.id;
	return j.result;
}

enum res
writer_leave(struct writer *w, uint32_t shard)
{
	struct job j = { .leave = shard, .result = RES_IO };
	writer_do_job(w, &j);
	return j.result;
}

struct dictionary *
writer_dictionary(struct writer *w)
{
	pthread_mutex_lock(&w->mutex);
	struct dictionary *d = dictionary_ref(w->dictionary);
	pthread_mutex_unlock(&w->mutex);
	return d;
}

void
writer_counters(struct writer *w, struct writer_counters *out)
{
	pthread_mutex_lock(&w->mutex);
	*out = w->counters;
	if (w->applier != NULL)
		out->unapplied = applier_unapplied(w->applier);
	pthread_mutex_unlock(&w->mutex);
}
