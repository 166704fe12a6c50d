#include <malloc.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "daemon/control.h"
#include "daemon/ipc.h"
#include "daemon/loaded.h"
#include "daemon/metrics.h"
#include "daemon/roles.h"
#include "daemon/snapshot.h"
#include "keys/remote.h"
#include "milter/milter.h"

#define DRAIN_US       25000000 /* less than the supervisor's patience */
#define SIGNER_WAIT_US 5000000  /* at start; without it mail is tempfailed */
#define PARTED_US      1000000  /* between two complaints */

/* Heaps of the C library, and the size from which an allocation goes back to
 * the kernel when it is freed. */
#define MALLOC_ARENAS 2
#define MALLOC_LARGE  (128 << 10)
#define THREAD_STACK  ((size_t)1 << 20)

struct role {
	pthread_mutex_t lock; /* guards `now`, held for a pointer copy */
	struct snapshot *now; /* NULL before the first commit */
	struct snapshot *prepared;
	struct signer *signer;
	bool has_signer, serving; /* it was introduced; libmilter runs */
	int64_t complain_at_us;
	int listen_fd;
	struct guard *guard;
	struct control *control; /* NULL: there is none */
	struct metrics *metrics; /* the same */
	int64_t started_us;      /* wall clock */
};

static int wake_fd = -1; /* written by the signal handler */

static void
on_signal(int number)
{
	(void)number;
	uint64_t one = 1;
	(void)!write(wake_fd, &one, sizeof one);
}

/* --- for the milter floor --- */

static const struct flow_env *
env_take(void *context)
{
	struct role *role = context;
	pthread_mutex_lock(&role->lock);
	struct snapshot *s = snapshot_ref(role->now);
	pthread_mutex_unlock(&role->lock);
	return snapshot_env(s);
}

static void
env_give(void *context, const struct flow_env *env)
{
	struct snapshot *s = snapshot_of(env);
	(void)context;
	snapshot_unref(&s);
}

/* --- what the supervisor asks for --- */

static enum res
prepare(struct role *role, const struct ipc_packet *p, struct err *err)
{
	struct str text, path;
	struct arena *a = arena_new(CONFIG_MAX_FILE * 2);
	enum res r = RES_NOMEM;
	snapshot_unref(&role->prepared);
	if (a == NULL)
		return r;
	path = arena_dup(a, p->payload);
	if (path.ptr != NULL)
		r = loaded_text(a, p->fd, &text);
	if (r == RES_OK)
		r = snapshot_new(text, path.ptr, role->signer, role->now, err,
		    &role->prepared);
	arena_free(&a);
	return r;
}

/* Mail goes on without one. */
static void
start_control(struct role *role)
{
	struct err err = { "" };
	const struct config *c = snapshot_env(role->now)->config;
	struct control_options o = { .state_dir = c->state_dir,
		.env_take = env_take, .env_give = env_give, .context = role };
	if (role->control != NULL &&
	    str_eq(c->state_dir, control_state_dir(role->control)))
		return;
	if (!control_stop(&role->control, clock_mono_us() + CONTROL_TALK_US))
		return; /* busy: the next reload tries again */
	enum res r = control_start(&o, &err, &role->control);
	if (r != RES_OK)
		log_warning("no control socket: %s",
		    err.text[0] != '\0' ? err.text : res_text(r));
}

/* The same. */
static void
start_metrics(struct role *role)
{
	struct err err = { "" };
	const struct config *c = snapshot_env(role->now)->config;
	struct metrics_options o = { .address = c->metrics,
		.started_us = role->started_us,
		.env_take = env_take, .env_give = env_give, .context = role };
	if (role->metrics != NULL &&
	    str_eq(c->metrics, metrics_address(role->metrics)))
		return;
	metrics_stop(&role->metrics);
	if (c->metrics.len == 0)
		return;
	enum res r = metrics_start(&o, &err, &role->metrics);
	if (r != RES_OK)
		log_warning("metrics = %.*s: %s: there are none",
		    STR_ARG(c->metrics),
		    err.text[0] != '\0' ? err.text : res_text(r));
}

/* The first commit opens for business. */
static enum res
start_serving(struct role *role, struct err *err)
{
	struct milter_options o = { .listen_fd = role->listen_fd,
		.env_take = env_take, .env_give = env_give, .context = role,
		.guard = role->guard };
	if (role->listen_fd < 0) {
		err_set(err, "there is no socket to listen on");
		return RES_INVALID;
	}
	if (role->has_signer &&
	    remote_wait_ready(role->signer,
		clock_mono_us() + SIGNER_WAIT_US) != RES_OK)
		log_warning("the signer does not answer yet: outbound mail "
			    "gets a 4xx");
	enum res r = milter_start(&o, err);
	role->serving = r == RES_OK;
	return r;
}

static enum res
commit(struct role *role, struct err *err)
{
	if (role->prepared == NULL) {
		err_set(err, "nothing was prepared");
		return RES_INVALID;
	}
	pthread_mutex_lock(&role->lock);
	struct snapshot *old = role->now;
	role->now = role->prepared;
	role->prepared = NULL;
	pthread_mutex_unlock(&role->lock);
	snapshot_unref(&old);
	log_set_json(snapshot_env(role->now)->config->log_format ==
	    LOG_FORMAT_JSON);
	start_control(role);
	start_metrics(role);
	return role->serving ? RES_OK : start_serving(role, err);
}

_Noreturn static void
drain(struct role *role)
{
	int64_t began_us = clock_mono_us();
	if (!role->serving)
		_exit(0);
	milter_drain();
	bool idle = milter_wait_idle(began_us + DRAIN_US) == RES_OK;
	metrics_stop(&role->metrics);
	if (!control_stop(&role->control, began_us + DRAIN_US))
		log_warning("the work of a control client is cut short");
	else if (idle)
		snapshot_close_stores(role->now);
	if (!idle)
		log_warning("messages under way were not waited for any longer");
	_exit(0);
}

static void
take_marks(struct role *role, int fd)
{
	unsigned found = 0;
	enum res r = guard_open(fd, &role->guard, &found);
	if (r != RES_OK)
		log_warning("no marks of messages under way: %s", res_text(r));
	else if (found > 0)
		log_warning("%u messages were under way when the process "
			    "before died", found);
}

static void
handle(struct role *role, struct ipc_packet *p)
{
	struct err err = { "" };
	switch (p->type) {
	case IPC_LISTEN:
		role->listen_fd = p->fd;
		return; /* kept */
	case IPC_MARKS:
		take_marks(role, p->fd);
		break;
	case IPC_SIGNER:
		role->has_signer = true;
		if (p->fd >= 0 && remote_attach(role->signer, p->fd) != RES_OK)
			log_warning("the signer could not be reached");
		return; /* taken over */
	case IPC_CONFIG:
		ipc_answer(prepare(role, p, &err), &err);
		break;
	case IPC_COMMIT:
		ipc_answer(commit(role, &err), &err);
		break;
	case IPC_CANCEL:
		snapshot_unref(&role->prepared);
		break;
	case IPC_DRAIN:
		drain(role);
	default:
		err_set(&err, "the milter process was asked for '%c'",
		    p->type);
		ipc_answer(RES_INVALID, &err);
		break;
	}
	if (p->fd >= 0)
		close(p->fd);
}

/* Nobody but the supervisor can bring us together again. If the signer has
 * died, it knows. */
static void
watch_signer(struct role *role)
{
	int64_t now_us = clock_mono_us();
	if (!role->has_signer || now_us < role->complain_at_us ||
	    remote_connected(role->signer))
		return;
	role->complain_at_us = now_us + PARTED_US;
	(void)!ipc_send(IPC_CHILD_FD, IPC_PARTED, STR_EMPTY, -1);
}

/* HUP, TERM and INT go to this thread, the only one that does not block them:
 * libmilter's own signal thread would stop it at a HUP. */
static void
own_signals(void)
{
	struct sigaction action = { .sa_handler = on_signal,
		.sa_flags = SA_RESTART | SA_NODEFER };
	sigset_t ours;
	wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	sigemptyset(&action.sa_mask);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGHUP, SIG_IGN); /* the supervisor's business */
	sigemptyset(&ours);
	sigaddset(&ours, SIGTERM);
	sigaddset(&ours, SIGINT);
	pthread_sigmask(SIG_UNBLOCK, &ours, NULL);
}

/* Left alone, the C library keeps what was freed, in heaps for each thread,
 * and several times what a message needs stays with us. */
static void
bound_memory(void)
{
	mallopt(M_ARENA_MAX, MALLOC_ARENAS);
	mallopt(M_MMAP_THRESHOLD, MALLOC_LARGE);
	mallopt(M_TRIM_THRESHOLD, MALLOC_LARGE);
}

/* libmilter begins and ends threads all the time. Of the default size, 8 MiB,
 * the C library keeps five stacks for the next ones; of this one, forty. */
static void
bound_stacks(void)
{
	pthread_attr_t attr;
	pthread_attr_init(&attr);
	if (pthread_attr_setstacksize(&attr, THREAD_STACK) == 0)
		(void)pthread_setattr_default_np(&attr);
	pthread_attr_destroy(&attr);
}

void
milter_role(void)
{
	static struct ipc_packet p;
	static struct role role = { .lock = PTHREAD_MUTEX_INITIALIZER,
		.listen_fd = -1 };
	struct clock now = CLOCK_SYSTEM;
	bound_memory();
	bound_stacks();
	own_signals();
	role.started_us = clock_now_us(&now);
	if (remote_new(0, &role.signer) != RES_OK)
		_exit(71);
	for (;;) {
		struct pollfd fds[] = { { IPC_CHILD_FD, POLLIN, 0 },
			{ wake_fd, POLLIN, 0 } };
		struct milter_counts counts;
		(void)poll(fds, 2, 1000);
		if (fds[1].revents != 0)
			drain(&role);
		if (fds[0].revents != 0) {
			/* without a supervisor nobody would start us again */
			if (ipc_receive(IPC_CHILD_FD, &p) != RES_OK)
				drain(&role);
			handle(&role, &p);
		}
		watch_signer(&role);
		milter_counts(&counts);
		if (role.serving && !counts.running) {
			log_error("libmilter has stopped");
			_exit(1);
		}
	}
}
