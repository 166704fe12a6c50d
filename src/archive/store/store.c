#include "archive/store/store.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "archive/keeping/erase_finish.h"
#include "archive/keeping/expire.h"
#include "archive/proof/notary.h"
#include "archive/store/netfs.h"
#include "archive/store/spool.h"
#include "archive/store/writer.h"

/* Compressing is bounded by processors, and each packer costs memory. */
#define MIN_PACKERS 4
#define MAX_PACKERS 8
#define DEFAULT_ROLL_BYTES ((uint64_t)8 << 30)
/* Files in tmp/ that are older belong to nobody any more. */
#define STALE_SECONDS 3600

struct store {
	char path[PATH_MAX];
	struct shard_env env;
	uint64_t roll_bytes;
	int64_t retry_us;
	bool without_index, by_date, on_demand;
	struct clock clock;
	void (*alarm)(void *context, const char *line);
	void *alarm_context;
	/* finishes what a crash left of erasures */
	pthread_t finisher;
	bool has_finisher;
	atomic_bool stop_finisher;
	pthread_mutex_t alarm_mutex; /* guards the next two */
	struct err last_alarm;
	int64_t last_alarm_us;
	pthread_mutex_t mutex;  /* guards what follows */
	pthread_cond_t packer_free;
	struct writer *writers[STORE_MAX_FAMILIES];
	size_t writer_count;
	struct packer *packers[MAX_PACKERS]; /* idle ones */
	size_t idle, made, max_packers;
	struct bufpool buffers;
	struct notary *notary;
	atomic_bool unsigned_told; /* said that signing fails */
};

/* --- packers, a bounded pool --- */

static enum res
packer_take(struct store *s, struct packer **out)
{
	struct packer *p = NULL;
	pthread_mutex_lock(&s->mutex);
	while (s->idle == 0 && s->made == s->max_packers)
		pthread_cond_wait(&s->packer_free, &s->mutex);
	if (s->idle > 0)
		p = s->packers[--s->idle];
	else
		s->made++;
	pthread_mutex_unlock(&s->mutex);
	if (p == NULL)
		p = packer_new();
	if (p == NULL) {
		pthread_mutex_lock(&s->mutex);
		s->made--;
		pthread_cond_signal(&s->packer_free);
		pthread_mutex_unlock(&s->mutex);
		return RES_NOMEM;
	}
	*out = p;
	return RES_OK;
}

static void
packer_give(struct store *s, struct packer *p)
{
	pthread_mutex_lock(&s->mutex);
	s->packers[s->idle++] = p;
	pthread_cond_signal(&s->packer_free);
	pthread_mutex_unlock(&s->mutex);
}

static size_t
packer_limit(void)
{
	long n = sysconf(_SC_NPROCESSORS_ONLN);
	if (n < MIN_PACKERS)
		return MIN_PACKERS;
	return n > MAX_PACKERS ? MAX_PACKERS : (size_t)n;
}

/* --- writers --- */

static enum res
start_writer(struct store *s, const char *family, struct err *err,
    struct writer **out)
{
	const struct writer_options o = {
		.env = &s->env,
		.family = family,
		.roll_bytes = s->roll_bytes,
		.retry_us = s->retry_us,
		.without_index = s->without_index,
		.lazy_index = s->on_demand &&
		    strcmp(family, STORE_AUDIT_FAMILY) == 0,
		.clock = s->clock,
		.by_date = s->by_date ||
		    strcmp(family, STORE_IMPORT_FAMILY) == 0,
	};
	if (s->writer_count == STORE_MAX_FAMILIES) {
		err_set(err, "%s: more than %d archive families", s->path,
		    STORE_MAX_FAMILIES);
		return RES_LIMIT;
	}
	enum res r = writer_new(&o, err, out);
	if (r == RES_OK)
		s->writers[s->writer_count++] = *out;
	return r;
}

static enum res
get_writer(struct store *s, const char *family, struct writer **out)
{
	struct err err = { "" };
	enum res r = RES_NOTFOUND;
	pthread_mutex_lock(&s->mutex);
	for (size_t i = 0; i < s->writer_count; i++)
		if (strcmp(writer_family(s->writers[i]), family) == 0) {
			*out = s->writers[i];
			r = RES_OK;
		}
	if (r == RES_NOTFOUND)
		r = start_writer(s, family, &err, out);
	pthread_mutex_unlock(&s->mutex);
	if (r != RES_OK && r != RES_INVALID && r != RES_LIMIT) {
		shard_alarm(&s->env, "archive family %s: %s", family, err.text);
		return r == RES_NOMEM ? r : RES_AGAIN;
	}
	return r;
}

/* A writer for every family that is there. */
static enum res
start_families(struct store *s, struct err *err)
{
	char path[PATH_MAX];
	enum res r = io_path(path, "%s/families", s->path);
	if (r != RES_OK)
		return r;
	DIR *d = opendir(path);
	if (d == NULL) {
		r = io_error(errno);
		err_set(err, "%s: %s", path, res_text(r));
		return r;
	}
	const struct dirent *e;
	while (r == RES_OK && (e = readdir(d)) != NULL) {
		struct writer *w;
		struct err e1 = { "" };
		if (!store_family_valid(e->d_name))
			continue;
		r = start_writer(s, e->d_name, &e1, &w);
		if (r == RES_NOMEM || r == RES_LIMIT) {
			err_set(err, "%s", e1.text);
		} else if (r != RES_OK) {
			/* the others work; this one is tried again later */
			shard_alarm(&s->env, "archive family %s: %s",
			    e->d_name, e1.text);
			r = RES_OK;
		}
	}
	closedir(d);
	return r;
}

/* --- life --- */

static void
note_alarm(void *context, const char *line)
{
	struct store *s = context;
	pthread_mutex_lock(&s->alarm_mutex);
	err_clear(&s->last_alarm);
	err_set(&s->last_alarm, "%s", line);
	s->last_alarm_us = clock_now_us(&s->clock);
	pthread_mutex_unlock(&s->alarm_mutex);
	if (s->alarm != NULL)
		s->alarm(s->alarm_context, line);
}

void
store_last_alarm(struct store *s, struct err *out, int64_t *out_us)
{
	pthread_mutex_lock(&s->alarm_mutex);
	*out = s->last_alarm;
	*out_us = s->last_alarm_us;
	pthread_mutex_unlock(&s->alarm_mutex);
}

const char *
store_path(const struct store *s)
{
	return s->path;
}

/* What a crash left in tmp/: old, and locked by nobody. */
static void
clean_temporary(struct store *s)
{
	char dir[PATH_MAX], path[PATH_MAX];
	if (io_path(dir, "%s/tmp", s->path) != RES_OK)
		return;
	DIR *d = opendir(dir);
	if (d == NULL)
		return;
	const struct dirent *e;
	while ((e = readdir(d)) != NULL) {
		struct stat st;
		if (e->d_name[0] == '.' ||
		    io_path(path, "%s/%s", dir, e->d_name) != RES_OK)
			continue;
		int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
		if (fd < 0)
			continue;
		if (fstat(fd, &st) == 0 &&
		    st.st_mtime + STALE_SECONDS < time(NULL) &&
		    flock(fd, LOCK_EX | LOCK_NB) == 0)
			unlink(path);
		close(fd);
	}
	closedir(d);
}

static void *
finisher_main(void *arg)
{
	struct store *s = arg;
	erase_finish_pending(s, &s->stop_finisher);
	return NULL;
}

static enum res
start_all(struct store *s, struct err *err)
{
	expire_clean(s);
	enum res r = start_families(s, err);
	if (r == RES_OK && erase_pending(s) > 0)
		s->has_finisher = pthread_create(&s->finisher, NULL,
				      finisher_main, s) == 0;
	return r;
}

static enum res
refuse_network(const struct store *s, struct err *err)
{
	const char *name;
	if (netfs_at(s->env.io, s->path, &name) != NETFS_REFUSED)
		return RES_OK;
	err_set(err,
	    "%s is on %s: locks and syncs of a network file system cannot be "
	    "relied on; keep the archive on a local disk",
	    s->path, name);
	return RES_UNSUPPORTED;
}

enum res
store_open(
    const struct store_options *o, struct err *err, struct store **out)
{
	struct store_identity id;
	struct store *s = calloc(1, sizeof *s);
	if (s == NULL)
		return RES_NOMEM;
	pthread_mutex_init(&s->mutex, NULL);
	pthread_mutex_init(&s->alarm_mutex, NULL);
	pthread_cond_init(&s->packer_free, NULL);
	bufpool_init(&s->buffers);
	s->env = (struct shard_env){
		.io = o->io != NULL ? o->io : &archive_io_system,
		.store_path = s->path,
		.reserve_bytes = o->reserve_bytes,
		.signer = o->signer,
		.alarm = note_alarm,
		.alarm_context = s,
	};
	s->alarm = o->alarm;
	s->alarm_context = o->alarm_context;
	s->roll_bytes =
	    o->roll_bytes != 0 ? o->roll_bytes : DEFAULT_ROLL_BYTES;
	s->retry_us = o->retry_us;
	s->without_index = o->without_index;
	s->by_date = o->by_date;
	s->on_demand = o->on_demand;
	s->clock = o->clock;
	s->max_packers = packer_limit();
	enum res r = io_path(s->path, "%s", o->path);
	if (r == RES_OK)
		r = refuse_network(s, err);
	if (r == RES_OK)
		r = store_dir_create(s->env.io, s->path, err, &id);
	if (r == RES_OK) {
		clean_temporary(s);
		if (!o->on_demand)
			r = start_all(s, err);
	}
	if (r == RES_OK && o->signer != NULL && o->checkpoint_us > 0)
		r = notary_start(s, o->checkpoint_us, &s->notary);
	if (r != RES_OK) {
		err_set(err, "%s: %s", o->path, res_text(r));
		store_close(&s);
		return r;
	}
	*out = s;
	return RES_OK;
}

void
store_close(struct store **store)
{
	struct store *s = *store;
	if (s == NULL)
		return;
	notary_stop(&s->notary);
	s->stop_finisher = true;
	if (s->has_finisher)
		pthread_join(s->finisher, NULL);
	for (size_t i = 0; i < s->writer_count; i++)
		writer_free(&s->writers[i]);
	for (size_t i = 0; i < s->idle; i++)
		packer_free(&s->packers[i]);
	bufpool_done(&s->buffers);
	pthread_cond_destroy(&s->packer_free);
	pthread_mutex_destroy(&s->mutex);
	pthread_mutex_destroy(&s->alarm_mutex);
	free(s);
	*store = NULL;
}

struct spool *
spool_new(struct arena *a, struct store *s)
{
	return spool_make(a, s->env.io, s->path, &s->buffers);
}

/* --- one message --- */

static enum res
fill_draft(struct store *s, const struct store_message *m,
    const struct dictionary *dictionary, struct draft *d)
{
	struct packer *p;
	enum res r = packer_take(s, &p);
	if (r != RES_OK)
		return r;
	d->dictionary = dictionary;
	packer_use(p, dictionary_pack(dictionary, BLOCK_META));
	r = draft_add_small(d, p, BLOCK_META, m->meta);
	if (r == RES_OK)
		r = draft_add_small(d, p, BLOCK_EVIDENCE, m->evidence);
	if (r == RES_OK)
		r = draft_add_small(d, p, BLOCK_EDITS, m->edits);
	if (r == RES_OK && m->body != NULL) {
		packer_use(p, spool_bytes(m->body) > DICTIONARY_MAX_BODY ?
		    NULL : dictionary_pack(dictionary, BLOCK_BODY));
		r = spool_pack(m->body, p, d);
	}
	packer_use(p, NULL);
	packer_give(s, p);
	return r;
}

/* A body file that did not become part of a shard. */
static void
drop_file(struct store *s, const struct frame_body *b)
{
	char name[FRAME_BODY_NAME], path[PATH_MAX];
	frame_body_name(b, name);
	if (io_path(path, "%s/tmp/%s", s->path, name) == RES_OK)
		s->env.io->unlink(s->env.io, path);
}

enum res
store_submit(
    struct store *s, const struct store_message *m, uint64_t *out_id)
{
	struct draft d;
	struct writer *w;
	enum frame_type type = m->type != 0 ? (enum frame_type)m->type :
					      FRAME_MESSAGE;
	if (type == FRAME_MESSAGE && m->body == NULL)
		return RES_INVALID;
	enum res r = get_writer(s, m->family, &w);
	if (r != RES_OK)
		return r;
	draft_init_pooled(&d, type, m->time_us, &s->buffers);
	struct dictionary *dictionary = writer_dictionary(w);
	r = fill_draft(s, m, dictionary, &d);
	bool in_file = (d.header.flags & FRAME_BODY_IN_FILE) != 0;
	struct frame_body body = d.body;
	if (r == RES_OK)
		r = writer_submit(w, &d, out_id);
	/* refused, or the same bytes were there already */
	if (in_file && (r != RES_OK || d.header.type != type))
		drop_file(s, &body);
	draft_done(&d);
	dictionary_unref(&dictionary);
	return r;
}

/* --- evidence --- */

unsigned
store_checkpoint(struct store *s, store_checkpoint_fn told, void *context)
{
	unsigned failed = 0;
	for (size_t i = 0;; i++) {
		struct buf note;
		struct writer *w = NULL;
		pthread_mutex_lock(&s->mutex);
		if (i < s->writer_count)
			w = s->writers[i]; /* stays until the store is closed */
		pthread_mutex_unlock(&s->mutex);
		if (w == NULL)
			break;
		buf_init(&note, SHARD_MAX_NOTE);
		enum res r = writer_checkpoint(w, &note);
		if (r != RES_NOTFOUND) {
			failed += r != RES_OK;
			if (r != RES_OK && failed == 1 &&
			    !atomic_load(&s->unsigned_told))
				shard_alarm(&s->env, "archive family %s: no "
				    "checkpoint was signed: %s",
				    writer_family(w), res_text(r));
			if (told != NULL)
				told(context, writer_family(w), r,
				    buf_str(&note));
		}
		buf_done(&note);
	}
	atomic_store(&s->unsigned_told, failed > 0);
	return failed;
}

/* --- for those who change finished shards --- */

const struct shard_env *
store_env(const struct store *s)
{
	return &s->env;
}

struct clock
store_clock(const struct store *s)
{
	return s->clock;
}

bool
store_is_on_demand(const struct store *s)
{
	return s->on_demand;
}

enum res
store_leave(struct store *s, const char *family, uint32_t shard)
{
	struct writer *w = NULL;
	pthread_mutex_lock(&s->mutex);
	for (size_t i = 0; i < s->writer_count; i++)
		if (strcmp(writer_family(s->writers[i]), family) == 0)
			w = s->writers[i];
	pthread_mutex_unlock(&s->mutex);
	return w != NULL ? writer_leave(w, shard) : RES_OK;
}

void
store_counters(struct store *s, struct store_counters *out)
{
	struct store_counters all = { .messages = 0 };
	pthread_mutex_lock(&s->mutex);
	for (size_t i = 0; i < s->writer_count; i++) {
		struct writer_counters c;
		writer_counters(s->writers[i], &c);
		all.messages += c.frames;
		all.deliveries += c.deliveries;
		all.groups += c.groups;
		all.bytes_raw += c.bytes_raw;
		all.bytes_stored += c.bytes_stored;
		all.unapplied += c.unapplied;
		all.refused += c.refused;
		all.poisoned += c.poisoned;
	}
	pthread_mutex_unlock(&s->mutex);
	*out = all;
}
