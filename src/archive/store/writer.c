#include "archive/store/writer.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>

#include "archive/format/period.h"
#include "archive/index/applier.h"
#include "archive/index/index.h"
#include "archive/store/leaving.h"
#include "archive/store/spool.h"
#include "archive/store/trainer.h"

/* Frame numbers are the lower half of an id. */
#define MAX_FRAMES (UINT32_MAX - WRITER_MAX_GROUP)
/* Links looked at in the start: for the length, for the index. */
#define MAX_LINKS 256
#define CATCH_UP LEAVING_MAX
/* How long imports wait for the index, in all, before a group. */
#define MAX_THROTTLE_US 30000000
#define THROTTLE_STEP_US 5000

/* One submission, on the stack of the thread that waits for it. */
struct job {
	struct draft *draft;  /* NULL: a note for the shard of this number */
	enum frame_type note_type;
	struct str note;
	uint32_t shard;
	struct job *next;
	pthread_cond_t wake;
	bool done;
	enum res result;
	uint64_t id;
	bool moved; /* its body file stands in the shard */
	uint32_t leave; /* no draft: a shard to be left */
};

struct writer {
	struct shard_env env;
	char family[SHARD_MAX_FAMILY + 1];
	uint64_t roll_bytes;
	int64_t retry_us;
	struct clock clock;
	bool by_date, without_index;
	pthread_t thread;
	pthread_mutex_t mutex; /* guards the queue, stop and counters */
	pthread_cond_t work;
	struct job *first, **last;
	bool stop;
	struct writer_counters counters;
	struct applier *applier; /* of `shard`; changed by the writer only */
	struct shard_head head;  /* of `shard` after the last group */
	bool has_head;
	struct dictionary *dictionary; /* the same; NULL: none yet */
	/* the writer's thread only */
	struct shard *shard;
	struct shard_link link;    /* what the next shard calls previous */
	struct shard *poisoned;    /* to be cut once it is linked */
	struct applier *poisoned_applier;
	struct leaving leaving;
	struct trainer *trainer;   /* makes the first dictionary */
	uint64_t train_at;         /* once the shard has so many frames */
	bool abandon;              /* a shard is offline: start a new one */
	int64_t not_before_us;     /* monotonic: next try */
	bool blocked, ahead;       /* said so already */
	int64_t wall_us, mono_us;  /* read together at the start */
	struct job *group[WRITER_MAX_GROUP];
	struct draft *placed[WRITER_MAX_GROUP];
};

const char *
writer_family(const struct writer *w)
{
	return w->family;
}

/* --- which shard --- */

/* The month it is now. The wall clock may jump; how far it can have come
 * since the start is what the monotonic one says. */
static int64_t
month_now(const struct writer *w)
{
	if (w->clock.fixed_us >= 0)
		return period_of(w->clock.fixed_us);
	return period_of(w->wall_us + (clock_mono_us() - w->mono_us));
}

/* The month a message is filed under: its own, but never further ahead than
 * the next one. */
static int64_t
month_for(struct writer *w, int64_t time_us)
{
	int64_t month = period_of(time_us), now = month_now(w);
	if (month <= now + 1) {
		w->ahead = false;
		return month;
	}
	if (!w->ahead)
		shard_alarm(&w->env,
		    "archive family %s: the clock is more than a month ahead, "
		    "no new shard is begun for it", w->family);
	w->ahead = true;
	return now;
}

/* An applier for the shard; without one mail is stored all the same. */
static struct applier *
follow(struct writer *w, const struct shard *s)
{
	struct applier *a = NULL;
	struct err err = { "" };
	const struct applier_options o = {
		.dir = s->dir,
		.durable_bytes = s->durable,
		.durable_frames = s->frames,
		.alarm = w->env.alarm,
		.alarm_context = w->env.alarm_context,
	};
	if (!w->without_index && applier_start(&o, &err, &a) != RES_OK)
		shard_alarm(&w->env, "%s: no index: %s", s->dir, err.text);
	return a;
}

static void
set_applier(struct writer *w, struct applier *a)
{
	pthread_mutex_lock(&w->mutex);
	w->applier = a;
	pthread_mutex_unlock(&w->mutex);
}

/* --- dictionaries --- */

static void
set_dictionary(struct writer *w, struct dictionary *d)
{
	pthread_mutex_lock(&w->mutex);
	struct dictionary *old = w->dictionary;
	w->dictionary = d;
	pthread_mutex_unlock(&w->mutex);
	dictionary_unref(&old);
}

/* A shard from before brings its dictionary along. */
static void
adopt_dictionary(struct writer *w)
{
	struct dictionary *d;
	struct err err = { "" };
	if (w->dictionary != NULL)
		return;
	enum res r = shard_read_dictionary(w->shard, &err, &d);
	if (r == RES_OK)
		set_dictionary(w, d);
	else if (r != RES_NOTFOUND)
		shard_alarm(&w->env, "%s: its dictionary cannot be used: %s",
		    w->shard->dir, err.text[0] != '\0' ? err.text :
		    res_text(r));
}

/* Put the dictionary into the shard if it is not there yet. RES_LIMIT: there
 * are too many. */
static enum res
bring_dictionary(struct writer *w, const struct dictionary *d)
{
	if (d == NULL || shard_has_dictionary(w->shard, d))
		return RES_OK;
	return shard_add_dictionary(w->shard, d, clock_now_us(&w->clock));
}

/* Whatever the group was packed with must stand before it. */
static enum res
bring_dictionaries(struct writer *w, size_t count)
{
	enum res r = RES_OK;
	for (size_t i = 0; i < count && (r == RES_OK || r == RES_LIMIT); i++)
		r = bring_dictionary(w, w->group[i]->draft->dictionary);
	if (r != RES_LIMIT)
		return r;
	set_dictionary(w, NULL);
	adopt_dictionary(w); /* the next ones come with one that is here */
	return RES_OK;
}

/* The first dictionary of a family, when there is mail enough. */
static void
train(struct writer *w)
{
	struct dictionary *d;
	if (w->trainer != NULL && trainer_poll(w->trainer, &d)) {
		trainer_stop(&w->trainer);
		if (d != NULL)
			set_dictionary(w, d);
	}
	if (w->dictionary != NULL || w->trainer != NULL ||
	    w->shard->frames < w->train_at)
		return;
	w->train_at = w->shard->frames * 2;
	w->trainer = trainer_start(w->env.store_path, w->family);
}

/* Leave the shard behind; `seal`: no more will come for it. */
static void
retire(struct writer *w, bool seal)
{
	struct shard *s = w->shard;
	struct applier *a = w->applier;
	if (s == NULL)
		return;
	if (seal || s->poisoned || w->by_date)
		shard_sign_all(s, clock_now_us(&w->clock));
	w->link = shard_link_of(s);
	set_applier(w, NULL);
	w->shard = NULL;
	if (!s->poisoned) {
		leaving_add(&w->leaving, s, a, seal);
		return;
	}
	w->poisoned = s;
	w->poisoned_applier = a;
	pthread_mutex_lock(&w->mutex);
	w->counters.poisoned++;
	pthread_mutex_unlock(&w->mutex);
	shard_alarm(&w->env,
	    "%s: a write failed; the shard ends at %llu bytes, a new one is "
	    "begun", s->dir, (unsigned long long)w->link.bytes);
}

/* The poisoned shard has a successor that tells its length. */
static void
retire_poisoned(struct writer *w)
{
	if (w->poisoned == NULL)
		return;
	enum res r = shard_drop_tail(w->poisoned);
	if (r != RES_OK) /* tried again at the next start */
		shard_alarm(&w->env, "%s: cannot be cut: %s",
		    w->poisoned->dir, res_text(r));
	leaving_add(&w->leaving, w->poisoned, w->poisoned_applier, true);
	w->poisoned = NULL;
	w->poisoned_applier = NULL;
}

static const struct shard_entry *
find_number(const struct shard_entry *e, size_t count, uint32_t number)
{
	for (size_t i = count; i-- > 0;)
		if (e[i].status == RES_OK && e[i].header.number == number)
			return &e[i];
	return NULL;
}

/* A shard left behind must be as long as its successor says. */
static void
check_length(struct writer *w, const struct shard_entry *e, uint64_t bytes)
{
	char path[PATH_MAX];
	struct stat st;
	if (io_path(path, "%s/segment", e->dir) != RES_OK ||
	    stat(path, &st) < 0 || (uint64_t)st.st_size == bytes)
		return;
	enum res r = shard_cut(&w->env, e->dir, bytes);
	if (r != RES_OK && r != RES_CORRUPT)
		shard_alarm(&w->env, "%s: cannot be brought to its length: %s",
		    e->dir, res_text(r));
}

/* A sealed shard whose index was not complete when the process ended. Only
 * the newest few: what is older is the operator's `reindex`. */
static void
catch_up(struct writer *w, const struct shard_entry *e, uint64_t bytes)
{
	struct index_position at;
	struct shard *s;
	struct err err = { "" };
	if (w->without_index ||
	    (index_peek(e->dir, &at) == RES_OK && at.offset >= bytes))
		return;
	enum res r = shard_open(&w->env, e, bytes, &err, &s);
	if (r == RES_OK)
		leaving_add(&w->leaving, s, follow(w, s), true);
	else if (r != RES_DENIED)
		shard_alarm(&w->env, "%s", err.text);
}

/* Look at the newest links between shards: sorted by age, so the last ones. */
static void
check_links(struct writer *w, const struct shard_entry *e, size_t count)
{
	size_t first = count > MAX_LINKS ? count - MAX_LINKS : 0;
	for (size_t i = first; i < count; i++) {
		uint64_t bytes = e[i].header.previous_bytes;
		if (e[i].status != RES_OK || bytes == 0)
			continue;
		const struct shard_entry *previous =
		    find_number(e, count, e[i].header.previous);
		if (previous == NULL)
			continue; /* expired, or offline */
		check_length(w, previous, bytes);
		if (i + CATCH_UP >= count)
			catch_up(w, previous, bytes);
	}
}

/* The newest shard that may be written: of the family, or of one month. */
static enum res
open_newest(struct writer *w, const char *period, struct err *err)
{
	struct shard_entry *entries;
	const struct shard_entry *newest = NULL;
	size_t count;
	struct arena *a = arena_new(0);
	if (a == NULL)
		return RES_NOMEM;
	enum res r = store_dir_shards(
	    w->env.store_path, w->family, a, err, &entries, &count);
	w->abandon = false;
	w->link = (struct shard_link){ .number = 0 };
	if (r == RES_OK)
		check_links(w, entries, count);
	for (size_t i = 0; i < count && r == RES_OK; i++) {
		if (period != NULL && strcmp(entries[i].period, period) != 0)
			continue;
		if (entries[i].status != RES_OK) {
			shard_alarm(&w->env, "%s: offline: %s", entries[i].dir,
			    res_text(entries[i].status));
			w->abandon = true;
		} else if (newest == NULL ||
		    entries[i].header.number > newest->header.number) {
			newest = &entries[i];
		}
	}
	if (r == RES_OK && newest != NULL && !w->abandon) {
		r = shard_open(&w->env, newest, 0, err, &w->shard);
		if (r != RES_OK && r != RES_DENIED && r != RES_NOMEM &&
		    r != RES_AGAIN) {
			shard_alarm(&w->env, "%s: offline: %s", newest->dir,
			    res_text(r));
			r = RES_OK; /* go on in a new one */
		} else if (r == RES_OK) {
			set_applier(w, follow(w, w->shard));
			adopt_dictionary(w);
		}
	}
	arena_free(&a);
	return r;
}

static enum res
create_next(struct writer *w, int64_t month)
{
	char period[SHARD_MAX_PERIOD + 1];
	struct err err = { "" };
	int64_t now = clock_now_us(&w->clock);
	period_format(month, period);
	enum res r = shard_create(&w->env, w->family, period, &w->link, now,
	    &err, &w->shard);
	if (r != RES_OK) {
		if (!w->blocked)
			shard_alarm(&w->env, "archive family %s: %s",
			    w->family, err.text);
		return r;
	}
	retire_poisoned(w);
	set_applier(w, follow(w, w->shard));
	w->link = (struct shard_link){ .number = 0 };
	if (w->dictionary != NULL)
		r = bring_dictionary(w, w->dictionary);
	return w->shard->poisoned ? r : RES_OK; /* else tried again */
}

static bool
is_full(const struct writer *w)
{
	return w->shard->durable >= w->roll_bytes ||
	    w->shard->frames >= MAX_FRAMES;
}

/* Does a message of `month` belong elsewhere than into the open shard? */
static bool
other_month(const struct writer *w, int64_t month)
{
	int64_t open;
	if (period_parse(str_c(w->shard->header.period), &open) != RES_OK)
		return true;
	return w->by_date ? month != open : month > open;
}

static enum res
leave_if_due(struct writer *w, int64_t month)
{
	struct shard *s = w->shard;
	if (s == NULL)
		return RES_OK;
	if (!shard_writable(s)) {
		retire(w, true);
		return RES_OK;
	}
	bool elsewhere = other_month(w, month);
	if (!is_full(w) && !elsewhere)
		return RES_OK;
	if (elsewhere && w->by_date && !is_full(w)) {
		retire(w, false); /* more may come for it */
		return RES_OK;
	}
	enum res r = shard_seal(s, clock_now_us(&w->clock));
	if (r == RES_AGAIN)
		return r; /* no space for a seal is none for a shard */
	retire(w, true);
	return RES_OK;
}

/* A shard that takes frames of this month, or why there is none now. */
static enum res
ensure_shard(struct writer *w, int64_t month)
{
	if (clock_mono_us() < w->not_before_us)
		return RES_AGAIN;
	struct err err = { "" };
	enum res r = leave_if_due(w, month);
	if (r == RES_OK && w->shard == NULL && w->by_date) {
		char period[SHARD_MAX_PERIOD + 1];
		period_format(month, period);
		leaving_wait(&w->leaving); /* its lock may be among them */
		r = open_newest(w, period, &err);
		if (r == RES_OK && w->shard != NULL &&
		    (!shard_writable(w->shard) || is_full(w)))
			retire(w, true);
	}
	if (r == RES_OK && w->shard == NULL)
		r = create_next(w, month);
	if (r != RES_OK) {
		w->not_before_us = clock_mono_us() + w->retry_us;
		return RES_AGAIN;
	}
	return RES_OK;
}

/* --- one group --- */

static void
body_path(const struct writer *w, const struct draft *d, bool in_shard,
    char out[PATH_MAX])
{
	char name[FRAME_BODY_NAME];
	frame_body_name(&d->body, name);
	enum res r = in_shard ?
	    io_path(out, "%s/bodies/%s", w->shard->dir, name) :
	    io_path(out, "%s/tmp/%s", w->env.store_path, name);
	if (r != RES_OK)
		out[0] = '\0'; /* the call on it will fail */
}

static enum res
move_body(struct writer *w, struct job *j)
{
	char from[PATH_MAX], to[PATH_MAX];
	body_path(w, j->draft, false, from);
	body_path(w, j->draft, true, to);
	if (w->env.io->rename(w->env.io, from, to) < 0)
		return io_error(errno);
	j->moved = true;
	return RES_OK;
}

static void
drop_bodies(struct writer *w, struct job *const *group, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		char path[PATH_MAX];
		if (!group[i]->moved)
			continue;
		body_path(w, group[i]->draft, true, path);
		w->env.io->unlink(w->env.io, path);
	}
}

/* Give every draft its place; those that fail are left out. */
static size_t
place_all(struct writer *w, size_t count, bool *out_files)
{
	size_t n = 0;
	uint64_t at = w->shard->durable;
	for (size_t i = 0; i < count; i++) {
		struct job *j = w->group[i];
		struct draft *d = j->draft;
		j->result = shard_place(w->shard, w->placed, n, at, d);
		if (j->result == RES_OK &&
		    (d->header.flags & FRAME_BODY_IN_FILE))
			j->result = move_body(w, j);
		if (j->result == RES_INVALID) /* its dictionary has no room */
			j->result = RES_AGAIN;
		if (j->result != RES_OK) {
			dedupe_cut(w->shard->dedupe, at);
			continue;
		}
		*out_files = *out_files || j->moved;
		j->id = (uint64_t)w->shard->header.number << 32 |
		    d->header.number;
		w->placed[n++] = d;
		at += d->header.total;
	}
	return n;
}

static enum res
write_placed(struct writer *w, size_t count, bool files)
{
	char bodies[PATH_MAX];
	if (files) {
		enum res r = io_path(bodies, "%s/bodies", w->shard->dir);
		if (r == RES_OK && w->env.io->fsync_dir(w->env.io, bodies) < 0)
			r = io_error(errno);
		if (r != RES_OK) {
			dedupe_cut(w->shard->dedupe, w->shard->durable);
			return r;
		}
	}
	return shard_append(w->shard, w->placed, count);
}

/* Said once when it begins and once when it is over. */
static void
tell_blocked(struct writer *w, enum res r)
{
	bool blocked = r != RES_OK;
	uint64_t space = 0;
	if (blocked && !w->blocked && r == RES_AGAIN &&
	    w->env.io->space(w->env.io, w->env.store_path, &space) == 0)
		shard_alarm(&w->env,
		    "archive family %s: mail cannot be stored now: %llu kB are "
		    "free in %s, %llu kB of them kept in reserve", w->family,
		    (unsigned long long)space / 1024, w->env.store_path,
		    (unsigned long long)w->env.reserve_bytes / 1024);
	else if (blocked && !w->blocked)
		shard_alarm(&w->env,
		    "archive family %s: mail cannot be stored: %s", w->family,
		    res_text(r));
	else if (!blocked && w->blocked)
		shard_alarm(&w->env,
		    "archive family %s: mail is stored again", w->family);
	w->blocked = blocked;
}

/* Searches read un-applied frames one by one: imports keep them few. */
static void
wait_for_index(struct writer *w)
{
	const struct timespec step = { 0, THROTTLE_STEP_US * 1000L };
	int64_t until = clock_mono_us() + MAX_THROTTLE_US;
	while (w->by_date && w->applier != NULL &&
	    applier_throttled(w->applier) && clock_mono_us() < until)
		nanosleep(&step, NULL);
}

static void
write_group(struct writer *w, size_t count)
{
	int64_t month =
	    month_for(w, w->group[0]->draft->header.time_us);
	bool files = false;
	enum res r = ensure_shard(w, month);
	if (r == RES_OK) {
		wait_for_index(w);
		r = bring_dictionaries(w, count);
		size_t n = r == RES_OK ? place_all(w, count, &files) : 0;
		if (n > 0)
			r = write_placed(w, n, files);
		if (r != RES_OK)
			drop_bodies(w, w->group, count);
		if (w->shard->poisoned) {
			retire(w, true);
		} else if (r == RES_OK) {
			if (w->applier != NULL)
				applier_wake(w->applier, w->shard->durable,
				    w->shard->frames);
			train(w);
		}
	}
	for (size_t i = 0; i < count && r != RES_OK; i++)
		w->group[i]->result = r;
	tell_blocked(w, r);
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

/* Somebody wants to change the shard: only finished ones are. */
static void
leave_shard(struct writer *w, struct job *j)
{
	struct shard *s = w->shard;
	j->result = RES_OK;
	if (s == NULL || s->header.number != j->leave)
		return;
	if (shard_writable(s))
		j->result = shard_seal(s, clock_now_us(&w->clock));
	if (j->result == RES_OK || s->poisoned)
		retire(w, true);
}

/* A signed note goes into the shard it was made for, or nowhere. */
static void
write_note(struct writer *w, struct job *j)
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
			leave_shard(w, w->group[0]);
		else if (w->group[0]->draft == NULL)
			write_note(w, w->group[0]);
		else
			write_group(w, count);
		pthread_mutex_lock(&w->mutex);
		publish_head(w);
		if (w->group[0]->draft != NULL)
			count_group(w, count);
		for (size_t i = 0; i < count; i++) {
			w->group[i]->done = true;
			pthread_cond_signal(&w->group[i]->wake);
		}
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
	leaving_init(&w->leaving);
	w->last = &w->first;
	w->train_at = TRAINER_FIRST_FRAMES;
	w->wall_us = clock_now_us(&w->clock);
	w->mono_us = clock_mono_us();
	pthread_mutex_init(&w->mutex, NULL);
	pthread_cond_init(&w->work, NULL);
	enum res r = RES_OK;
	if (!w->by_date)
		r = open_newest(w, NULL, err);
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

/* Queue it, wait until it is done. */
static void
do_job(struct writer *w, struct job *j)
{
	pthread_cond_init(&j->wake, NULL);
	pthread_mutex_lock(&w->mutex);
	*w->last = j;
	w->last = &j->next;
	pthread_cond_signal(&w->work);
	while (!j->done)
		pthread_cond_wait(&j->wake, &w->mutex);
	pthread_mutex_unlock(&w->mutex);
	pthread_cond_destroy(&j->wake);
}

enum res
writer_submit(struct writer *w, struct draft *d, uint64_t *out_id)
{
	struct job j = { .draft = d, .result = RES_IO };
	do_job(w, &j);
	if (j.result == RES_OK)
		*out_id = j.id;
	return j.result;
}

enum res
writer_leave(struct writer *w, uint32_t shard)
{
	struct job j = { .leave = shard, .result = RES_IO };
	do_job(w, &j);
	return j.result;
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
	do_job(w, &j);
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
