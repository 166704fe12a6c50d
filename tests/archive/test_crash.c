/* What must hold whatever fails: the content of every acknowledged message is
 * in the store exactly once, and everything in it is whole. */
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>

#include "fault_io.h"
#include "store_test.h"

#define MAX_SENT 4096

struct sent {
	uint64_t number[MAX_SENT];
	bool acknowledged[MAX_SENT];
	size_t count;
};

struct rig {
	char path[PATH_MAX];
	struct fault_io fault;
	struct sent sent;
	struct err err; /* of the last rig_open */
	uint64_t next;
	pthread_mutex_t mutex; /* guards sent and next */
};

static struct rig *
rig_new(uint64_t seed)
{
	struct rig *g = calloc(1, sizeof *g);
	assert_non_null(g);
	scratch_make(g->path);
	fault_init(&g->fault, seed);
	pthread_mutex_init(&g->mutex, NULL);
	return g;
}

static void
rig_free(struct rig *g)
{
	fault_done(&g->fault);
	scratch_remove(g->path);
	pthread_mutex_destroy(&g->mutex);
	free(g);
}

static enum res
rig_open(struct rig *g, const struct archive_io *io, struct store **out)
{
	const struct store_options o = {
		.path = g->path,
		.roll_bytes = 60000, /* some rolling too */
		.retry_us = 1,
		.without_index = true, /* the disk fails, not SQLite */
		.clock = { TEST_TIME },
		.io = io,
	};
	g->err.text[0] = '\0';
	return store_open(&o, &g->err, out);
}

/* Send a new message; whether it was acknowledged is noted. */
static enum res
rig_send(struct rig *g, struct store *s)
{
	char text[4096];
	uint64_t id;
	pthread_mutex_lock(&g->mutex);
	size_t at = g->sent.count++;
	uint64_t n = g->next++;
	assert_true(at < MAX_SENT);
	g->sent.number[at] = n;
	pthread_mutex_unlock(&g->mutex);
	enum res r = test_submit(s, "mail", TEST_TIME, STR("meta"),
	    test_text(text, sizeof text, n), &id);
	pthread_mutex_lock(&g->mutex);
	g->sent.acknowledged[at] = r == RES_OK;
	pthread_mutex_unlock(&g->mutex);
	return r;
}

/* A new disk life: what the last one left is durable. */
static void
new_life(struct rig *g, uint64_t seed)
{
	fault_done(&g->fault);
	fault_init(&g->fault, seed);
}

/* Open with a healthy disk, write once more, look at everything. */
static void
rig_judge(struct rig *g, const char *what, unsigned long n)
{
	struct store *s;
	struct inventory v;
	new_life(g, 1);
	if (rig_open(g, &g->fault.io, &s) != RES_OK)
		fail_msg("%s %lu: the store does not open: %s", what, n,
		    g->err.text);
	if (rig_send(g, s) != RES_OK)
		fail_msg("%s %lu: nothing can be stored", what, n);
	store_close(&s);
	inventory_take(&v, g->path);
	for (size_t i = 0; i < g->sent.count; i++) {
		char text[4096];
		size_t found = inventory_count(
		    &v, test_text(text, sizeof text, g->sent.number[i]));
		if (found > 1 || (g->sent.acknowledged[i] && found != 1))
			fail_msg("%s %lu: message %zu (%s) is there %zu times",
			    what, n, i,
			    g->sent.acknowledged[i] ? "acknowledged" :
						      "refused", found);
	}
	inventory_done(&v);
}

/* With the n-th write or sync failing: mail goes on, nothing is lost. */
static void
fail_once(enum fault_kind kind, unsigned long write, unsigned long sync,
    bool power_cut, const char *what)
{
	unsigned long n = write + sync;
	struct rig *g = rig_new(n + kind * 100 + power_cut * 1000);
	struct store *s;
	size_t good = 0;
	g->fault.fail_write = write;
	g->fault.write_kind = kind;
	g->fault.fail_sync = sync;
	enum res r = rig_open(g, &g->fault.io, &s);
	if (r != RES_OK) /* the fault hit the very start; it is over now */
		r = rig_open(g, &g->fault.io, &s);
	assert_ok(r);
	for (int i = 0; i < 12; i++)
		good += rig_send(g, s) == RES_OK;
	/* one fault refuses one group, and perhaps the seal before it */
	if (good < 10)
		fail_msg("%s %lu: only %zu of 12 stored", what, n, good);
	if (power_cut)
		fault_off(&g->fault);
	store_close(&s);
	if (power_cut)
		fault_cut(&g->fault);
	rig_judge(g, what, n);
	rig_free(g);
}

static void
nth_write(void **state)
{
	static const struct {
		enum fault_kind kind;
		const char *name;
	} kinds[] = { { FAULT_ERROR, "write error" },
		{ FAULT_SHORT, "short write" }, { FAULT_TORN, "torn write" },
		{ FAULT_NO_SPACE, "no space at write" } };
	for (size_t k = 0; k < 4; k++)
		for (unsigned long n = 1; n <= 18; n++) {
			fail_once(kinds[k].kind, n, 0, false, kinds[k].name);
			fail_once(kinds[k].kind, n, 0, true, kinds[k].name);
		}
}

static void
nth_sync(void **state)
{
	for (unsigned long n = 1; n <= 40; n++) {
		fail_once(FAULT_NONE, 0, n, false, "failed sync");
		fail_once(FAULT_NONE, 0, n, true, "failed sync, cut");
	}
}

/* A full or read-only disk refuses mail for a while; no restart needed. */
static void
full_disk(void **state)
{
	for (int kind = 0; kind < 2; kind++) {
		struct rig *g = rig_new(7);
		struct store *s;
		assert_ok(rig_open(g, &g->fault.io, &s));
		for (int round = 0; round < 3; round++) {
			for (int i = 0; i < 5; i++)
				assert_ok(rig_send(g, s));
			pthread_mutex_lock(&g->fault.mutex);
			bool *fault = kind == 0 ? &g->fault.full :
						  &g->fault.read_only;
			*fault = true;
			pthread_mutex_unlock(&g->fault.mutex);
			size_t refused = 0;
			/* space reserved before may take a few more */
			for (int i = 0; i < 5; i++) {
				enum res r = rig_send(g, s);
				assert_true(r == RES_AGAIN || r == RES_IO);
				refused++;
			}
			assert_int_equal(refused, 5);
			pthread_mutex_lock(&g->fault.mutex);
			*fault = false;
			pthread_mutex_unlock(&g->fault.mutex);
		}
		assert_ok(rig_send(g, s));
		store_close(&s);
		rig_judge(g, "full disk", (unsigned long)kind);
		rig_free(g);
	}
}

#define THREADS 4

struct sender {
	struct rig *rig;
	struct store *store;
	pthread_t thread;
};

static void *
send_until_failure(void *arg)
{
	struct sender *se = arg;
	for (int i = 0; i < 40; i++)
		if (rig_send(se->rig, se->store) != RES_OK)
			break;
	return NULL;
}

static void
send_from_threads(struct rig *g, struct store *s)
{
	struct sender all[THREADS];
	for (int t = 0; t < THREADS; t++) {
		all[t] = (struct sender){ .rig = g, .store = s };
		assert_int_equal(pthread_create(&all[t].thread, NULL,
				     send_until_failure, &all[t]), 0);
	}
	for (int t = 0; t < THREADS; t++)
		pthread_join(all[t].thread, NULL);
}

/* Power cuts at any call, also while recovering from the one before; in
 * between the process dies alone, and what a failed sync left in the page
 * cache still looks as if it were on the disk. */
static void
power_cuts(void **state)
{
	const char *rounds_text = getenv("HANAPER_ROUNDS");
	unsigned rounds = rounds_text != NULL ?
	    (unsigned)strtoul(rounds_text, NULL, 10) : 40;
	for (unsigned round = 1; round <= rounds; round++) {
		struct rig *g = rig_new(round);
		bool same_boot = false;
		for (int life = 0; life < 4; life++) {
			struct store *s;
			uint64_t seed = round * 16 + (unsigned)life;
			if (life == 0 || !same_boot)
				new_life(g, seed);
			/* sometimes a sync fails as well */
			if (fault_random(&g->fault, 3) == 0)
				g->fault.fail_sync = g->fault.syncs + 1 +
				    fault_random(&g->fault, 40);
			/* often just when the process dies of it */
			g->fault.off_at_failure =
			    fault_random(&g->fault, 2) == 0;
			g->fault.cut_at = g->fault.ops + 1 +
			    fault_random(&g->fault, life % 2 ? 60 : 300);
			if (rig_open(g, &g->fault.io, &s) == RES_OK) {
				send_from_threads(g, s);
				fault_off(&g->fault);
				store_close(&s);
			}
			same_boot = fault_random(&g->fault, 2) == 0;
			if (!same_boot || life == 3)
				fault_cut(&g->fault);
		}
		rig_judge(g, "power cut", round);
		rig_free(g);
	}
}

/* A sync fails and the process dies of it. Started again in the same boot, the
 * frames look whole, though the disk never got them: they are written again
 * before anything is put behind them. */
static void
lost_write_same_boot(void **state)
{
	for (unsigned seed = 1; seed <= 5; seed++) {
		struct rig *g = rig_new(seed);
		struct store *s;
		char text[20000];
		uint64_t id;
		new_life(g, seed);
		assert_ok(rig_open(g, &g->fault.io, &s));
		assert_ok(rig_send(g, s));
		g->fault.fail_sync = g->fault.syncs + 1;
		g->fault.off_at_failure = true;
		assert_int_equal(test_submit(s, "mail", TEST_TIME, STR_EMPTY,
				     test_sized_text(text, sizeof text, 999,
					 19000), &id), RES_IO);
		store_close(&s);
		g->fault.cut_at = 0;
		assert_ok(rig_open(g, &g->fault.io, &s));
		assert_ok(rig_send(g, s));
		fault_off(&g->fault);
		store_close(&s);
		fault_cut(&g->fault);
		rig_judge(g, "lost write", seed);
		rig_free(g);
	}
}

/* Bodies in files of their own: the file is there whenever the frame is. */
static void
large_bodies(void **state)
{
	size_t size = (size_t)6 << 20;
	char *text = malloc(size + 100);
	assert_non_null(text);
	for (unsigned round = 1; round <= 12; round++) {
		struct rig *g = rig_new(round);
		struct store *s;
		struct inventory v;
		uint64_t id;
		bool acknowledged[3] = { false, false, false };
		g->fault.cut_at = 10 + fault_random(&g->fault, 60);
		if (rig_open(g, &g->fault.io, &s) == RES_OK) {
			for (unsigned i = 0; i < 3; i++) /* 0 twice */
				acknowledged[i] = test_submit(s, "mail",
				    TEST_TIME, STR_EMPTY,
				    test_sized_text(text, size + 100, i % 2,
					size), &id) == RES_OK;
			fault_off(&g->fault);
			store_close(&s);
		}
		fault_cut(&g->fault);
		new_life(g, 1);
		assert_ok(rig_open(g, &g->fault.io, &s));
		store_close(&s);
		inventory_take(&v, g->path);
		for (unsigned i = 0; i < 2; i++) {
			size_t n = inventory_count(&v, test_sized_text(
			    text, size + 100, i, size));
			assert_true(n <= 1);
			assert_true(n == 1 || !acknowledged[i]);
			assert_true(n == 1 || i == 1 || !acknowledged[2]);
		}
		inventory_done(&v);
		rig_free(g);
	}
	free(text);
}

/* --- kill -9 of a process that writes --- */

struct child_thread {
	struct rig *rig;
	int report;
	struct store *store;
};

static void *
child_sender(void *arg)
{
	struct child_thread *c = arg;
	for (;;) {
		char text[4096];
		uint64_t id;
		pthread_mutex_lock(&c->rig->mutex);
		uint64_t n = c->rig->next++;
		pthread_mutex_unlock(&c->rig->mutex);
		if (test_submit(c->store, "mail", TEST_TIME, STR("meta"),
			test_text(text, sizeof text, n), &id) != RES_OK)
			_exit(5);
		/* 8 bytes: never torn in a pipe */
		if (write(c->report, &n, 8) != 8)
			_exit(6);
	}
	return NULL;
}

static void
run_child(struct rig *g, int report)
{
	struct child_thread c = { .rig = g, .report = report };
	pthread_t threads[THREADS];
	if (rig_open(g, NULL, &c.store) != RES_OK)
		_exit(3);
	for (int t = 0; t < THREADS; t++)
		if (pthread_create(&threads[t], NULL, child_sender, &c) != 0)
			_exit(4);
	pthread_join(threads[0], NULL);
	_exit(0);
}

/* Up to `most` messages that the child says are stored. */
static void
read_reports(struct rig *g, int fd, uint64_t most)
{
	uint64_t n;
	while (most-- > 0 && read(fd, &n, 8) == 8) {
		assert_true(g->sent.count < MAX_SENT);
		g->sent.number[g->sent.count] = n;
		g->sent.acknowledged[g->sent.count++] = true;
		if (n >= g->next)
			g->next = n + 1;
	}
}

static void
kill_rounds(void **state)
{
	struct rig *g = rig_new(1);
	for (int round = 0; round < 30 && g->sent.count < MAX_SENT / 2;
	     round++) {
		int pipe_fd[2], status;
		assert_int_equal(pipe(pipe_fd), 0);
		pid_t pid = fork();
		assert_true(pid >= 0);
		if (pid == 0) {
			close(pipe_fd[0]);
			run_child(g, pipe_fd[1]);
		}
		close(pipe_fd[1]);
		read_reports(g, pipe_fd[0], fault_random(&g->fault, 60));
		kill(pid, SIGKILL);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		/* it must have died of our signal, not of an error */
		assert_true(WIFSIGNALED(status));
		read_reports(g, pipe_fd[0], UINT64_MAX);
		close(pipe_fd[0]);
		/* numbers under way when it died are not used again */
		g->next += 100;
	}
	assert_true(g->sent.count > 50);
	rig_judge(g, "kill", g->sent.count);
	rig_free(g);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nth_write),
		cmocka_unit_test(nth_sync),
		cmocka_unit_test(full_disk),
		cmocka_unit_test(power_cuts),
		cmocka_unit_test(lost_write_same_boot),
		cmocka_unit_test(large_bodies),
		cmocka_unit_test(kill_rounds),
	};
	return cmocka_run_group_tests_name("crash", tests, NULL, NULL);
}
