#include "dns/engine.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <event2/event.h>
#include <unbound-event.h>
#include <unbound.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/thread.h"
#include "dns/name.h"
#include "dns/wire.h"

/* Whether answers are validated. With DNSSEC_AUTO there are two contexts: one
 * without trust anchors that answers until the probe says that the servers
 * pass signatures on, and one with them that is probed and then used.
 *
 *          engine_new            probe_answered
 *   OFF    -> VALIDATE_NO
 *   AUTO   -> VALIDATE_PROBING   secure -> VALIDATE_YES
 *                                else   -> VALIDATE_NO, probed again later
 *   ON     -> VALIDATE_YES       (the probe only makes the note)      */
enum validate {
	VALIDATE_NO,
	VALIDATE_PROBING,
	VALIDATE_YES
};

#define PROBE_TIMEOUT_S    5
#define PROBE_AGAIN_DEAD_S 60   /* nobody answered */
#define PROBE_AGAIN_S      3600 /* answered, but without DNSSEC */
#define CLASS_IN           1
#define ROOT_KEY           "/usr/share/dns/root.key"

struct engine {
	struct engine_hooks hooks;
	struct event_base *base;
	struct event *wake, *timer; /* timer: of the probe */
	int wake_fd;
	bool stop; /* under lock */
	bool started;
	pthread_t thread;

	/* DNS thread only, once it runs */
	struct unbound_options options; /* nameservers copied */
	struct ub_ctx *plain, *validating;
	bool probe_under_way;
	int probe_id;

	pthread_mutex_t lock; /* for what follows, and stop */
	pthread_cond_t probed;
	enum validate validate;
	const char *note; /* static text, NULL: validation is on */
};

/* What libunbound keeps for a question under way. */
struct ticket {
	struct engine *engine;
	struct str name;
	enum dns_type type;
	void *lookup;
};

/* ---- contexts --------------------------------------------------------- */

/* Sockets are few, since every question under way has one and the process has
 * others; what is over waits inside libunbound. Private reverse zones are
 * asked for as the servers may know them. A forwarder that was down is
 * tried again soon. Each question that needs TCP has a connection of its own:
 * one that is never answered must not stop those behind it. */
static const char *const settings[][2] = {
	{ "do-not-query-localhost:", "no" },
	{ "edns-buffer-size:", "1232" },
	{ "msg-cache-size:", "8m" },
	{ "rrset-cache-size:", "16m" },
	{ "cache-max-negative-ttl:", "900" },
	{ "outgoing-range:", "512" },
	{ "num-queries-per-thread:", "4096" },
	{ "outgoing-num-tcp:", "32" },
	{ "max-reuse-tcp-queries:", "1" },
	{ "tcp-auth-query-timeout:", "1500" },
	{ "qname-minimisation:", "yes" },
	{ "unblock-lan-zones:", "yes" },
	{ "insecure-lan-zones:", "yes" },
	{ "infra-host-ttl:", "60" },
	{ "infra-keep-probing:", "yes" },
};

static enum res
context_set(struct ub_ctx *ctx, const struct unbound_options *o,
    bool validating, struct err *err)
{
	for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++) {
		int r = ub_ctx_set_option(ctx, settings[i][0], settings[i][1]);
		if (r != 0) {
			err_set(err, "libunbound refuses %s %s: %s",
			    settings[i][0], settings[i][1], ub_strerror(r));
			return RES_UNSUPPORTED;
		}
	}
	for (size_t i = 0; i < o->nameserver_count; i++) {
		int r = ub_ctx_set_fwd(ctx, o->nameservers[i].ptr);
		if (r != 0) {
			err_set(err,
			    "nameservers: \"%.*s\" is not ADDRESS or "
			    "ADDRESS@PORT",
			    STR_ARG(o->nameservers[i]));
			return RES_SYNTAX;
		}
	}
	if (o->nameserver_count == 0 && ub_ctx_resolvconf(ctx, NULL) != 0) {
		err_set(err,
		    "/etc/resolv.conf: cannot be read; set "
		    "nameservers");
		return RES_IO;
	}
	/* libunbound opens it only with the first question. */
	if (validating &&
	    (access(o->trust_anchor, R_OK) != 0 ||
		ub_ctx_add_ta_file(ctx, o->trust_anchor) != 0)) {
		err_set(err, "%s: cannot be read as a trust anchor",
		    o->trust_anchor);
		return RES_IO;
	}
	return RES_OK;
}

static enum res
context_new(
    struct engine *e, bool validating, struct err *err, struct ub_ctx **out)
{
	struct ub_ctx *ctx = ub_ctx_create_event(e->base);
	if (ctx == NULL)
		return RES_NOMEM;
	ub_ctx_debugout(ctx, NULL); /* it would write to stderr */
	enum res r = context_set(ctx, &e->options, validating, err);
	if (r != RES_OK) {
		ub_ctx_delete(ctx);
		return r;
	}
	*out = ctx;
	return RES_OK;
}

/* ---- the DNSSEC probe ------------------------------------------------- */

static void
set_validate(struct engine *e, enum validate v, const char *note)
{
	pthread_mutex_lock(&e->lock);
	bool changed = e->note != note; /* static texts */
	e->validate = v;
	e->note = note;
	pthread_cond_broadcast(&e->probed);
	pthread_mutex_unlock(&e->lock);
	if (changed && e->options.dnssec_changed != NULL)
		e->options.dnssec_changed(note);
}

static void
set_timer(struct engine *e, int seconds)
{
	struct timeval tv = { .tv_sec = seconds };
	evtimer_add(e->timer, &tv);
}

static void
probe_result(struct engine *e, bool answered, bool secure)
{
	bool must = e->options.dnssec == DNSSEC_ON;
	e->probe_under_way = false;
	if (secure) {
		evtimer_del(e->timer);
		set_validate(e, VALIDATE_YES, NULL);
		return;
	}
	set_validate(e, must ? VALIDATE_YES : VALIDATE_NO,
	    answered ? "the name servers do not pass DNSSEC data on"
		     : "the name servers did not answer the DNSSEC probe");
	set_timer(e, answered ? PROBE_AGAIN_S : PROBE_AGAIN_DEAD_S);
}

static void
probe_answered(void *arg, int rcode, void *packet, int len, int sec,
    char *why_bogus, int was_ratelimited)
{
	/* Bogus comes with SERVFAIL; a server that did answer made it so. */
	probe_result(arg, rcode == 0 || sec == 1, rcode == 0 && sec == 2);
}

static void
probe_begin(struct engine *e)
{
	/* A failed probe stays in that context's cache: take a new one. */
	if (e->options.dnssec == DNSSEC_AUTO && e->validating != NULL) {
		ub_ctx_delete(e->validating);
		e->validating = NULL;
	}
	if (e->validating == NULL &&
	    context_new(e, true, NULL, &e->validating) != RES_OK) {
		probe_result(e, false, false);
		return;
	}
	e->probe_under_way = true;
	set_timer(e, PROBE_TIMEOUT_S);
	if (ub_resolve_event(e->validating, ".", DNS_DNSKEY, CLASS_IN, e,
		probe_answered, &e->probe_id) != 0)
		probe_result(e, false, false);
}

/* The probe took too long, or it is time for another one. */
static void
on_timer(evutil_socket_t fd, short what, void *arg)
{
	struct engine *e = arg;
	if (e->probe_under_way) {
		ub_cancel(e->validating, e->probe_id);
		probe_result(e, false, false);
		return;
	}
	probe_begin(e);
}

const char *
engine_dnssec_note(struct engine *e, int64_t deadline_us)
{
	pthread_mutex_lock(&e->lock);
	while (e->validate == VALIDATE_PROBING && deadline_us > 0)
		if (!thread_wait(&e->probed, &e->lock, deadline_us))
			break;
	const char *note = e->note;
	pthread_mutex_unlock(&e->lock);
	return note;
}

bool
engine_probing(struct engine *e)
{
	pthread_mutex_lock(&e->lock);
	bool probing = e->validate == VALIDATE_PROBING;
	pthread_mutex_unlock(&e->lock);
	return probing;
}

/* ---- questions -------------------------------------------------------- */

static struct dns_answer *
failure(const struct ticket *t, enum dns_status status, const char *detail)
{
	struct dns_answer *a =
	    dns_answer_new(t->name, t->type, status, 0, NULL, 0);
	if (a != NULL)
		a->detail = detail;
	return a;
}

static void
answered(void *arg, int rcode, void *packet, int len, int sec, char *why_bogus,
    int was_ratelimited)
{
	struct ticket *t = arg;
	struct engine *e = t->engine;
	struct dns_answer *a;
	if (sec == 1)
		a = failure(t, DNS_BOGUS, "DNSSEC validation failed");
	else if (packet == NULL || len <= 0)
		a = failure(t, DNS_SERVFAIL, "no usable answer");
	else if (rcode != 0 && rcode != 3)
		a = failure(t, DNS_SERVFAIL, "the name servers report failure");
	else
		a = wire_answer(packet, (size_t)len, t->name, t->type);
	if (a != NULL && sec == 2 && !dns_status_temporary(a->status))
		a->secure = true;
	void *lookup = t->lookup;
	free(t);
	e->hooks.done(e->hooks.arg, lookup, a);
}

/* As libunbound reads names: whatever is not plain goes as \DDD. */
static void
presentation(struct str name, char out[4 * DNS_MAX_NAME + 2])
{
	size_t n = 0;
	for (size_t i = 0; i < name.len; i++) {
		unsigned char c = (unsigned char)name.ptr[i];
		if (ascii_is_alpha((char)c) || ascii_is_digit((char)c) ||
		    c == '-' || c == '_' || c == '.') {
			out[n++] = (char)c;
			continue;
		}
		out[n++] = '\\';
		out[n++] = (char)('0' + c / 100);
		out[n++] = (char)('0' + c / 10 % 10);
		out[n++] = (char)('0' + c % 10);
	}
	out[n++] = '.';
	out[n] = '\0';
}

void
engine_resolve(
    struct engine *e, struct str name, enum dns_type type, void *lookup)
{
	struct ticket *t = calloc(1, sizeof(*t));
	if (t == NULL || !dns_name_ok(name)) {
		free(t);
		e->hooks.done(e->hooks.arg, lookup, NULL);
		return;
	}
	*t = (struct ticket){ e, name, type, lookup };
	char text[4 * DNS_MAX_NAME + 2];
	presentation(name, text);
	/* Only this thread changes it. */
	struct ub_ctx *ctx =
	    e->validate == VALIDATE_YES ? e->validating : e->plain;
	int r =
	    ub_resolve_event(ctx, text, (int)type, CLASS_IN, t, answered, NULL);
	if (r != 0) {
		struct dns_answer *a = failure(t, DNS_SERVFAIL, ub_strerror(r));
		free(t);
		e->hooks.done(e->hooks.arg, lookup, a);
	}
}

/* ---- the thread ------------------------------------------------------- */

void
engine_wake(struct engine *e)
{
	uint64_t one = 1;
	while (write(e->wake_fd, &one, sizeof(one)) < 0 && errno == EINTR)
		;
}

static void
on_wake(evutil_socket_t fd, short what, void *arg)
{
	struct engine *e = arg;
	uint64_t count;
	while (read(fd, &count, sizeof(count)) < 0 && errno == EINTR)
		;
	pthread_mutex_lock(&e->lock);
	bool stop = e->stop;
	pthread_mutex_unlock(&e->lock);
	if (stop)
		event_base_loopbreak(e->base);
	else
		e->hooks.work(e->hooks.arg);
}

static void *
thread_main(void *arg)
{
	struct engine *e = arg;
	pthread_setname_np(pthread_self(), "hanaper-dns");
	if (e->options.dnssec != DNSSEC_OFF)
		probe_begin(e);
	event_base_dispatch(e->base);
	return NULL;
}

enum res
engine_start(struct engine *e, struct err *err)
{
	enum res r = thread_start(&e->thread, thread_main, e);
	if (r != RES_OK) {
		err_set(err, "cannot start the DNS thread: %s", res_text(r));
		return r;
	}
	e->started = true;
	return RES_OK;
}

/* ---- life ------------------------------------------------------------- */

static enum res
copy_options(struct engine *e, const struct unbound_options *o)
{
	e->options = *o;
	e->options.nameservers = NULL;
	e->options.nameserver_count = 0;
	if (o->trust_anchor == NULL)
		e->options.trust_anchor = ROOT_KEY;
	struct str *copy = calloc(o->nameserver_count + 1, sizeof(*copy));
	if (copy == NULL)
		return RES_NOMEM;
	e->options.nameservers = copy;
	for (size_t i = 0; i < o->nameserver_count; i++) {
		char *text =
		    strndup(o->nameservers[i].ptr, o->nameservers[i].len);
		if (text == NULL)
			return RES_NOMEM;
		copy[i] = str_c(text);
		e->options.nameserver_count++;
	}
	return RES_OK;
}

static enum res
make_events(struct engine *e)
{
	e->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	e->base = event_base_new();
	if (e->wake_fd < 0 || e->base == NULL)
		return RES_NOMEM;
	e->wake =
	    event_new(e->base, e->wake_fd, EV_READ | EV_PERSIST, on_wake, e);
	e->timer = evtimer_new(e->base, on_timer, e);
	if (e->wake == NULL || e->timer == NULL ||
	    event_add(e->wake, NULL) != 0)
		return RES_NOMEM;
	return RES_OK;
}

static enum res
make_contexts(struct engine *e, struct err *err)
{
	enum res r = RES_OK;
	switch (e->options.dnssec) {
	case DNSSEC_OFF:
		e->note = "DNSSEC validation is switched off";
		break;
	case DNSSEC_AUTO:
		e->note = "the DNSSEC probe is under way";
		e->validate = VALIDATE_PROBING;
		if (access(e->options.trust_anchor, R_OK) != 0) {
			e->note = "no DNSSEC trust anchor is installed";
			e->validate = VALIDATE_NO;
			e->options.dnssec = DNSSEC_OFF;
		}
		break;
	case DNSSEC_ON:
		e->validate = VALIDATE_YES;
		r = context_new(e, true, err, &e->validating);
		break;
	}
	if (r == RES_OK && e->options.dnssec != DNSSEC_ON)
		r = context_new(e, false, err, &e->plain);
	return r;
}

enum res
engine_new(const struct unbound_options *o, const struct engine_hooks *hooks,
    struct err *err, struct engine **out)
{
	struct engine *e = calloc(1, sizeof(*e));
	if (e == NULL)
		return RES_NOMEM;
	e->hooks = *hooks;
	e->wake_fd = -1;
	pthread_mutex_init(&e->lock, NULL);
	thread_cond_init(&e->probed);
	enum res r = copy_options(e, o);
	if (r == RES_OK)
		r = make_events(e);
	if (r == RES_OK)
		r = make_contexts(e, err);
	if (r != RES_OK) {
		engine_free(&e);
		return r;
	}
	*out = e;
	return RES_OK;
}

void
engine_free(struct engine **engine)
{
	struct engine *e = *engine;
	if (e == NULL)
		return;
	if (e->started) {
		pthread_mutex_lock(&e->lock);
		e->stop = true;
		pthread_mutex_unlock(&e->lock);
		engine_wake(e);
		pthread_join(e->thread, NULL);
	}
	*engine = NULL; /* the hooks may have used it until now */
	ub_ctx_delete(e->plain);
	ub_ctx_delete(e->validating);
	if (e->wake != NULL)
		event_free(e->wake);
	if (e->timer != NULL)
		event_free(e->timer);
	if (e->base != NULL)
		event_base_free(e->base);
	if (e->wake_fd >= 0)
		close(e->wake_fd);
	for (size_t i = 0; i < e->options.nameserver_count; i++)
		free((char *)e->options.nameservers[i].ptr);
	free((struct str *)e->options.nameservers);
	pthread_cond_destroy(&e->probed);
	pthread_mutex_destroy(&e->lock);
	free(e);
}
