#include "daemon/snapshot.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/log.h"
#include "dns/unbound.h"
#include "dns/zone.h"
#include "flow/published.h"

/* Something that several snapshots use; `object` is theirs together. */
struct shared {
	atomic_uint refs;
	void *object;
	void (*release)(void *object);
};

struct snapshot {
	struct flow_env env; /* first: snapshot_of() */
	atomic_uint refs;
	struct arena *arena;
	struct shared *resolver, *store, *published, *keys, *decisions;
};

static struct flow_counters counters;

/* --- shared parts --- */

static struct shared *
shared_ref(struct shared *p)
{
	atomic_fetch_add_explicit(&p->refs, 1, memory_order_relaxed);
	return p;
}

static void
shared_unref(struct shared **pp)
{
	struct shared *p = *pp;
	*pp = NULL;
	if (p == NULL ||
	    atomic_fetch_sub_explicit(&p->refs, 1, memory_order_acq_rel) != 1)
		return;
	if (p->object != NULL)
		p->release(p->object);
	free(p);
}

/* Takes over `object`, also when there is no memory. */
static enum res
shared_new(void *object, void (*release)(void *), struct shared **out)
{
	struct shared *p = calloc(1, sizeof *p);
	if (p == NULL) {
		release(object);
		return RES_NOMEM;
	}
	atomic_init(&p->refs, 1);
	p->object = object;
	p->release = release;
	*out = p;
	return RES_OK;
}

static void
release_resolver(void *object)
{
	struct resolver *r = object;
	resolver_free(&r);
}

static void
release_store(void *object)
{
	struct store *s = object;
	store_close(&s);
}

static void
release_published(void *object)
{
	struct published *p = object;
	published_free(&p);
}

static void
release_keys(void *object)
{
	struct key_cache *c = object;
	key_cache_free(&c);
}

static void
release_decisions(void *object)
{
	struct decisions *d = object;
	decisions_close(&d);
}

/* --- parts from a configuration --- */

static bool
same_list(const struct strlist *a, const struct strlist *b)
{
	if (a->count != b->count)
		return false;
	for (size_t i = 0; i < a->count; i++)
		if (!str_eq(a->items[i], b->items[i]))
			return false;
	return true;
}

static enum dnssec_mode
dnssec_mode(enum dnssec_setting s)
{
	switch (s) {
	case DNSSEC_SETTING_AUTO:
		return DNSSEC_AUTO;
	case DNSSEC_SETTING_OFF:
		return DNSSEC_OFF;
	case DNSSEC_SETTING_ON:
		return DNSSEC_ON;
	}
	return DNSSEC_AUTO;
}

/* On the DNS thread, when a probe is done. */
static void
dnssec_changed(const char *note)
{
	if (note != NULL)
		log_warning("DNSSEC: answers are not validated: %s", note);
	else
		log_info("DNSSEC: answers are validated");
}

static enum res
open_resolver(const struct config *c, struct err *err, struct resolver **out)
{
	const char *note = NULL;
	if (c->zone_file.len > 0)
		return zone_open(c->zone_file.ptr, true, err, out);
	struct unbound_options o = { .nameservers = c->nameservers.items,
		.nameserver_count = c->nameservers.count,
		.dnssec = dnssec_mode(c->dnssec),
		.dnssec_changed = dnssec_changed };
	enum res r = unbound_new(&o, err, out, &note);
	if (r == RES_OK && note != NULL && o.dnssec != DNSSEC_OFF)
		dnssec_changed(note);
	return r;
}

/* A zone file is read again; a resolver with its cache is kept while its
 * options stay. */
static enum res
use_resolver(struct snapshot *s, const struct snapshot *old, struct err *err)
{
	const struct config *c = s->env.config;
	struct resolver *r = NULL;
	if (old != NULL && c->zone_file.len == 0 &&
	    old->env.config->zone_file.len == 0 &&
	    c->dnssec == old->env.config->dnssec &&
	    same_list(&c->nameservers, &old->env.config->nameservers)) {
		s->resolver = shared_ref(old->resolver);
		return RES_OK;
	}
	enum res res = open_resolver(c, err, &r);
	if (res == RES_OK)
		res = shared_new(r, release_resolver, &s->resolver);
	return res;
}

static void
alarm_line(void *context, const char *line)
{
	log_error("archive: %s", line);
}

/* Two writers on one archive would be a disaster: while its folder stays the
 * same it is the same store. */
static enum res
use_store(struct snapshot *s, const struct snapshot *old,
    struct signer *signer, struct err *err)
{
	const struct config *c = s->env.config;
	struct store *store = NULL;
	if (!c->archive)
		return RES_OK;
	if (old != NULL && old->store != NULL &&
	    str_eq(c->archive_dir, old->env.config->archive_dir)) {
		s->store = shared_ref(old->store);
		return RES_OK;
	}
	struct store_options o = { .path = c->archive_dir.ptr,
		.roll_bytes = c->archive_roll_size,
		.reserve_bytes = c->archive_reserve,
		.signer = signer,
		.checkpoint_us = c->archive_checkpoint_s * 1000000,
		.clock = CLOCK_SYSTEM,
		.alarm = alarm_line };
	enum res r = store_open(&o, err, &store);
	if (r == RES_OK)
		r = shared_new(store, release_store, &s->store);
	return r;
}

static enum res
use_published(struct snapshot *s, const struct snapshot *old)
{
	const struct config *c = s->env.config;
	if (old != NULL && str_eq(c->state_dir, old->env.config->state_dir)) {
		s->published = shared_ref(old->published);
		return RES_OK;
	}
	struct str dir = arena_printf(
	    s->arena, "%.*s/seen", STR_ARG(c->state_dir));
	struct published *p =
	    dir.ptr != NULL ? published_new(dir.ptr) : NULL;
	if (p == NULL)
		return RES_NOMEM;
	return shared_new(p, release_published, &s->published);
}

/* Parsed key records depend on no setting. */
static enum res
use_keys(struct snapshot *s, const struct snapshot *old)
{
	if (old != NULL) {
		s->keys = shared_ref(old->keys);
		return RES_OK;
	}
	struct key_cache *c = key_cache_new(0);
	return c != NULL ? shared_new(c, release_keys, &s->keys) : RES_NOMEM;
}

/* Without it mail is judged as well; only nobody can explain it later. */
static enum res
use_decisions(struct snapshot *s, const struct snapshot *old)
{
	const struct config *c = s->env.config;
	struct decisions *d = NULL;
	struct err err = { "" };
	if (old != NULL && old->decisions != NULL &&
	    str_eq(c->state_dir, old->env.config->state_dir)) {
		s->decisions = shared_ref(old->decisions);
		return RES_OK;
	}
	struct str path = arena_printf(
	    s->arena, "%.*s/" DECISIONS_FILE, STR_ARG(c->state_dir));
	struct decisions_options o = { .path = path.ptr,
		.keep_us = DECISIONS_KEEP_US,
		.max_bytes = DECISIONS_MAX_BYTES,
		.clock = CLOCK_SYSTEM };
	if (path.ptr == NULL)
		return RES_NOMEM;
	if (decisions_open(&o, &err, &d) != RES_OK) {
		log_warning("%s: decisions are not kept", err.text);
		return RES_OK;
	}
	return shared_new(d, release_decisions, &s->decisions);
}

static void
use_secret(struct snapshot *s)
{
	const struct config *c = s->env.config;
	if (c->reinjection != REINJECTION_TOKEN)
		return;
	s->env.has_secret =
	    token_secret(c->state_dir.ptr, s->env.secret) == RES_OK;
	if (!s->env.has_secret)
		log_warning("%s/token.key: %s: mail that comes back is not "
		    "recognized", c->state_dir.ptr, strerror(errno));
}

static enum res
build(struct snapshot *s, struct str text, const char *path,
    struct signer *signer, struct snapshot *previous, struct err *err)
{
	enum res r = config_from_text(text, path, err, &s->env.config);
	if (r == RES_OK && mkdir(s->env.config->state_dir.ptr, 0750) != 0)
		errno = 0; /* it is there, or its first use says what is wrong */
	if (r == RES_OK)
		r = use_resolver(s, previous, err);
	if (r == RES_OK)
		r = use_published(s, previous);
	if (r == RES_OK)
		r = use_keys(s, previous);
	if (r == RES_OK)
		r = use_decisions(s, previous);
	if (r == RES_OK)
		use_secret(s);
	if (r == RES_OK)
		r = use_store(s, previous, signer, err);
	return r;
}

enum res
snapshot_new(struct str text, const char *path, struct signer *signer,
    struct snapshot *previous, struct err *err, struct snapshot **out)
{
	struct snapshot *s = calloc(1, sizeof *s);
	if (s == NULL)
		return RES_NOMEM;
	atomic_init(&s->refs, 1);
	s->arena = arena_new(0);
	enum res r = s->arena == NULL ? RES_NOMEM :
		build(s, text, path, signer, previous, err);
	if (r != RES_OK) {
		err_set(err, "%s: %s", path, res_text(r));
		snapshot_unref(&s);
		return r;
	}
	s->env.resolver = s->resolver->object;
	s->env.store = s->store != NULL ? s->store->object : NULL;
	s->env.published = s->published->object;
	s->env.keys = s->keys->object;
	s->env.decisions = s->decisions != NULL ? s->decisions->object : NULL;
	s->env.signer = s->env.config->mode != MODE_VERIFY ? signer : NULL;
	s->env.clock = CLOCK_SYSTEM;
	s->env.counters = &counters;
	s->env.mode = s->env.config->mode;
	s->env.judge_age = true;
	*out = s;
	return RES_OK;
}

struct snapshot *
snapshot_ref(struct snapshot *s)
{
	atomic_fetch_add_explicit(&s->refs, 1, memory_order_relaxed);
	return s;
}

void
snapshot_unref(struct snapshot **sp)
{
	struct snapshot *s = *sp;
	*sp = NULL;
	if (s == NULL ||
	    atomic_fetch_sub_explicit(&s->refs, 1, memory_order_acq_rel) != 1)
		return;
	shared_unref(&s->store);
	shared_unref(&s->published);
	shared_unref(&s->keys);
	shared_unref(&s->decisions);
	shared_unref(&s->resolver);
	config_unref(&s->env.config);
	arena_free(&s->arena);
	free(s);
}

const struct flow_env *
snapshot_env(const struct snapshot *s)
{
	return &s->env;
}

struct snapshot *
snapshot_of(const struct flow_env *env)
{
	return (struct snapshot *)(uintptr_t)env;
}

void
snapshot_close_stores(struct snapshot *s)
{
	if (s->store != NULL && s->store->object != NULL) {
		struct store *store = s->store->object;
		s->store->object = NULL;
		store_close(&store);
	}
	if (s->decisions != NULL && s->decisions->object != NULL) {
		struct decisions *decisions = s->decisions->object;
		s->decisions->object = NULL;
		decisions_close(&decisions);
	}
}
