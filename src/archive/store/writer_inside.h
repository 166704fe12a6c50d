/* What the parts of a writer know of each other: its thread and queue
 * (writer.c), the shard it writes into (writer_shards.c), one group
 * (writer_group.c), dictionaries (writer_dictionary.c), notes
 * (writer_notes.c). All but the last work in the writer's thread. */
#ifndef ARCHIVE_WRITER_INSIDE_H
#define ARCHIVE_WRITER_INSIDE_H

#include <pthread.h>
#include <semaphore.h>

#include "archive/index/applier.h"
#include "archive/store/leaving.h"
#include "archive/store/trainer.h"
#include "archive/store/writer.h"

/* One submission, on the stack of the thread that waits for it. */
struct job {
	struct draft *draft;  /* NULL: a note for the shard of this number */
	enum frame_type note_type;
	struct str note;
	uint32_t shard;
	struct job *next;
	sem_t done;
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
	bool by_date, without_index, lazy_index;
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
	struct trainer *trainer;   /* makes a dictionary */
	uint64_t train_at;         /* once the shard has so many frames */
	bool abandon;              /* a shard is offline: start a new one */
	int64_t not_before_us;     /* monotonic: next try */
	bool blocked, ahead;       /* said so already */
	int64_t wall_us, mono_us;  /* read together at the start */
	struct job *group[WRITER_MAX_GROUP];
	struct draft *placed[WRITER_MAX_GROUP];
};

/* --- queue --- */

/* Queue it, wait until it is done. Any thread. */
void writer_do_job(struct writer *w, struct job *j);

/* --- shards --- */

/* The month a message is filed under: its own, but never further ahead than
 * the next one. */
int64_t writer_month_for(struct writer *w, int64_t time_us);
/* The newest shard that may be written: of the family, or of one month. None
 * is no error: w->shard is NULL then. */
HN_CHECK enum res writer_open_newest(
    struct writer *w, const char *period, struct err *err);
/* A shard that takes frames of this month, or why there is none now. */
HN_CHECK enum res writer_ensure_shard(struct writer *w, int64_t month);
/* Leave the shard behind; `seal`: no more will come for it. */
void writer_retire(struct writer *w, bool seal);
/* Somebody wants to change the shard: only finished ones are. */
void writer_leave_shard(struct writer *w, struct job *j);

/* --- groups and notes --- */

/* The `count` drafts of w->group; each gets its result. */
void writer_write_group(struct writer *w, size_t count);
/* A signed note goes into the shard it was made for, or nowhere. */
void writer_write_note(struct writer *w, struct job *j);

/* --- dictionaries --- */

void writer_set_dictionary(struct writer *w, struct dictionary *d);
/* A shard from before brings its dictionary along. */
void writer_adopt_dictionary(struct writer *w);
/* Put the dictionary into the shard if it is not there yet. RES_LIMIT: there
 * are too many. */
HN_CHECK enum res writer_bring_dictionary(
    struct writer *w, const struct dictionary *d);
/* Whatever the first `count` of w->group were packed with must stand before
 * them. */
HN_CHECK enum res writer_bring_dictionaries(struct writer *w, size_t count);
/* A dictionary of the family's own, when there is mail enough. */
void writer_train(struct writer *w);

#endif
