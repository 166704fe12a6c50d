#include "archive/store/leaving.h"

void
leaving_init(struct leaving *l)
{
	*l = (struct leaving){ .oldest = 0 };
}

static void *
leave(void *arg)
{
	struct leaving_shard *s = arg;
	if (s->seal)
		applier_seal(&s->applier);
	else
		applier_stop(&s->applier);
	shard_close(&s->shard);
	return NULL;
}

static void
join(struct leaving_shard *s)
{
	if (s->used)
		pthread_join(s->thread, NULL);
	s->used = false;
}

void
leaving_add(struct leaving *l, struct shard *shard, struct applier *applier,
    bool seal)
{
	struct leaving_shard *s = &l->shards[l->oldest];
	join(s);
	*s = (struct leaving_shard){ .shard = shard, .applier = applier,
		.seal = seal };
	if (pthread_create(&s->thread, NULL, leave, s) == 0)
		s->used = true;
	else
		leave(s);
	l->oldest = (l->oldest + 1) % LEAVING_MAX;
}

void
leaving_wait(struct leaving *l)
{
	for (size_t i = 0; i < LEAVING_MAX; i++)
		join(&l->shards[(l->oldest + i) % LEAVING_MAX]);
}
