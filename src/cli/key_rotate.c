/* hanaper key rotate: let a new key take over without a gap.
 *
 *      (make)            (adopt)               (retire)          (prune)
 *   - -------> next -----------------> active --------> retired --------> -
 *                |  seen in the DNS for          when the      once nothing
 *                |  --wait or the TTL            next adopts   it signed is
 *                +-- gone again: seen anew                     valid any more
 *
 * Run as often as one likes: each run makes the moves that are due and writes
 * the state file once, by rename. What must hold whenever a run is cut off:
 *
 * 1. A key file that no state names signs: a new one is named right after it
 *    was made, and if that is missed, decide() makes it next again.
 * 2. A retired key may lack its file, so the file goes before its line. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sysexits.h>
#include <time.h>
#include <unistd.h>

#include "cli/key.h"

#define MIN_RSA_BITS 2048
#define MAX_SLOTS    (KEYDIR_MAX_KEYS_PER_DOMAIN + KEYSTATE_MAX_LINES)

struct slot {
	const struct keyfile *file; /* NULL: retired and its file is gone */
	struct keystate_line line;
	enum key_type type; /* with a file */
	unsigned bits;
	bool gone;
};

struct rotation {
	struct key_options *o;
	struct resolver *resolver;
	int folder;
	struct str path; /* of the folder */
	struct keydir dir;
	struct slot *slots;
	size_t count;
	bool changed; /* the state is to be written */
	bool pending; /* there will be more to do */
};

static void say(const struct rotation *r, const struct slot *s,
    const char *fmt, ...) HN_PRINTF(3, 4);

static void
say(const struct rotation *r, const struct slot *s, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	printf(KEY_NAME ": ", STR_ARG(s->line.selector), STR_ARG(r->o->domain));
	vprintf(fmt, ap);
	va_end(ap);
	putchar('\n');
}

static const char *
date(const struct rotation *r, int64_t at_s)
{
	time_t at = (time_t)at_s;
	struct tm tm;
	char text[32];
	if (gmtime_r(&at, &tm) == NULL ||
	    strftime(text, sizeof text, "%Y-%m-%d %H:%M UTC", &tm) == 0)
		return "a time far away";
	struct str copy = arena_dup(r->o->arena, str_c(text));
	return copy.ptr != NULL ? copy.ptr : "";
}

/* The one gate for moves between states. */
static void
move(struct rotation *r, struct slot *s, enum key_state to)
{
	s->line.state = to;
	s->line.since_s = r->o->now_s;
	s->line.seen_s = 0;
	r->changed = true;
}

static void
set_seen(struct rotation *r, struct slot *s, int64_t at_s)
{
	if (s->line.seen_s != at_s)
		r->changed = true;
	s->line.seen_s = at_s;
}

/* --- what there is --- */

static int
add_file(struct rotation *r, const struct keyfile *f, const struct keystate *st)
{
	struct slot *s = &r->slots[r->count];
	const struct keystate_line *l = keystate_find(st, f->selector);
	struct key_look look;
	struct stat file;
	int status = key_look(r->o, NULL, f, &look);
	if (status != EX_OK)
		return status;
	*s = (struct slot){ .file = f, .type = look.type, .bits = look.bits };
	if (l != NULL)
		s->line = *l;
	else
		s->line = (struct keystate_line){ f->selector,
			KEY_STATE_ACTIVE,
			fstat(f->fd, &file) == 0 ? file.st_mtime : 0, 0 };
	r->count++;
	return EX_OK;
}

static bool
has_file(const struct rotation *r, struct str selector)
{
	for (size_t i = 0; i < r->dir.count; i++)
		if (str_eq(r->dir.files[i].selector, selector))
			return true;
	return false;
}

static int
read_slots(struct rotation *r)
{
	struct err err = { "" };
	struct keystate st = { 0 };
	struct arena *a = r->o->arena;
	enum res res = keydir_open_domain(
	    a, r->o->key_dir, r->o->domain, &err, &r->dir);
	if (res == RES_OK)
		res = keystate_read(a, r->folder, r->path.ptr, &err, &st);
	r->slots = arena_array(a, MAX_SLOTS, sizeof *r->slots);
	if (res == RES_OK && r->slots == NULL)
		res = RES_NOMEM;
	if (res != RES_OK)
		return cli_fail(cli_status(res), "%s",
		    err.text[0] != '\0' ? err.text : res_text(res));
	for (size_t i = 0; i < r->dir.count; i++) {
		int status = add_file(r, &r->dir.files[i], &st);
		if (status != EX_OK)
			return status;
	}
	for (size_t i = 0; i < st.count; i++)
		if (!has_file(r, st.lines[i].selector))
			r->slots[r->count++] =
			    (struct slot){ .line = st.lines[i] };
	return EX_OK;
}

static int
write_state(struct rotation *r)
{
	struct err err = { "" };
	struct keystate st = { 0, arena_array(r->o->arena, MAX_SLOTS,
				      sizeof *st.lines) };
	if (!r->changed)
		return EX_OK;
	if (st.lines == NULL)
		return EX_OSERR;
	for (size_t i = 0; i < r->count; i++)
		if (!r->slots[i].gone)
			st.lines[st.count++] = r->slots[i].line;
	enum res res = keystate_write(r->folder, r->path.ptr, &st, &err);
	return res == RES_OK ? EX_OK :
			       cli_fail(cli_status(res), "%s", err.text);
}

/* --- moves --- */

static bool
is_of(const struct slot *s, enum key_type type, enum key_state state)
{
	return s->file != NULL && s->type == type && s->line.state == state;
}

/* Of several, the one that is longest so; NULL: none. */
static struct slot *
oldest(const struct rotation *r, enum key_type type, enum key_state state)
{
	struct slot *found = NULL;
	for (size_t i = 0; i < r->count; i++) {
		struct slot *s = &r->slots[i];
		if (is_of(s, type, state) &&
		    (found == NULL || s->line.since_s < found->line.since_s))
			found = s;
	}
	return found;
}

/* Of several keys that would sign, the oldest goes on, the others are next. */
static struct slot *
decide(struct rotation *r, enum key_type type)
{
	struct slot *active = oldest(r, type, KEY_STATE_ACTIVE);
	for (size_t i = 0; i < r->count; i++) {
		struct slot *s = &r->slots[i];
		if (s == active || !is_of(s, type, KEY_STATE_ACTIVE))
			continue;
		move(r, s, KEY_STATE_NEXT);
		say(r, s, "is next, %.*s goes on signing",
		    STR_ARG(active->line.selector));
	}
	return active;
}

/* Has the record of a next key been there for long enough? */
static int
look_at_next(struct rotation *r, struct slot *s, bool *out_ready)
{
	struct key_look look;
	int64_t now_s = r->o->now_s, wait_s = r->o->wait_s;
	*out_ready = false;
	int status = key_look(r->o, r->resolver, s->file, &look);
	if (status != EX_OK)
		return status;
	const char *why = look.record.why;
	switch (look.record.state) {
	case PUBLISHED_YES:
		break;
	case PUBLISHED_BEFORE:
	case PUBLISHED_UNKNOWN:
		say(r, s, "next, its record cannot be looked up%s%s",
		    why != NULL ? ": " : "", why != NULL ? why : "");
		return EX_OK;
	case PUBLISHED_ABSENT:
	case PUBLISHED_DIFFERENT:
		set_seen(r, s, 0);
		say(r, s, "next, %s%s%s; publish this record:",
		    published_state_text(look.record.state),
		    why != NULL ? ": " : "", why != NULL ? why : "");
		return key_print(r->o, s->file, KEY_FORM_ZONE);
	}
	/* a clock that was set back starts the wait anew */
	if (s->line.seen_s == 0 || s->line.seen_s > now_s)
		set_seen(r, s, now_s);
	if (wait_s < (int64_t)look.record.ttl_s)
		wait_s = look.record.ttl_s;
	*out_ready = now_s - s->line.seen_s >= wait_s;
	if (!*out_ready)
		say(r, s, "next, seen in the DNS; it may sign from %s",
		    date(r, s->line.seen_s + wait_s));
	return EX_OK;
}

/* Such lines would be left without a key. */
static void
say_table_lines(const struct rotation *r, const struct slot *old)
{
	const struct config *c = r->o->config;
	for (size_t i = 0; i < c->sign_rule_count; i++) {
		const struct sign_rule *rule = &c->sign_rules[i];
		if (str_eq(rule->domain, r->o->domain) &&
		    str_eq(rule->selector, old->line.selector))
			say(r, old, "%.*s still names it: change s= there",
			    STR_ARG(rule->where));
	}
}

static void
adopt(struct rotation *r, struct slot *active, struct slot *next)
{
	if (active != NULL) {
		move(r, active, KEY_STATE_RETIRED);
		say(r, active, "retired");
		say_table_lines(r, active);
	}
	move(r, next, KEY_STATE_ACTIVE);
	say(r, next, "active; let hanaperd read its keys again (HUP)");
}

static int
advance(struct rotation *r, enum key_type type, struct slot *active)
{
	struct slot *chosen = NULL;
	for (size_t i = 0; i < r->count; i++) {
		struct slot *s = &r->slots[i];
		bool ready;
		if (!is_of(s, type, KEY_STATE_NEXT))
			continue;
		int status = look_at_next(r, s, &ready);
		if (status != EX_OK)
			return status;
		if (ready && (chosen == NULL ||
		    s->line.seen_s < chosen->line.seen_s))
			chosen = s;
	}
	r->pending = true;
	if (chosen != NULL)
		adopt(r, active, chosen);
	return EX_OK;
}

/* --- the end of a key --- */

static int64_t
over_at(const struct rotation *r, const struct slot *s)
{
	return s->line.since_s + key_keep_s(r->o->config, r->o->domain);
}

static int
prune(struct rotation *r, struct slot *s)
{
	struct str name = arena_printf(
	    r->o->arena, "%.*s.pem", STR_ARG(s->line.selector));
	if (name.ptr == NULL)
		return EX_OSERR;
	if (unlinkat(r->folder, name.ptr, 0) != 0 && errno != ENOENT)
		return cli_fail(EX_CANTCREAT, "%s/%s: cannot remove: %s",
		    r->path.ptr, name.ptr, strerror(errno));
	s->gone = true;
	r->changed = true;
	say(r, s, "removed; its record may be withdrawn");
	return EX_OK;
}

static int
look_at_retired(struct rotation *r, struct slot *s)
{
	if (r->o->now_s < over_at(r, s)) {
		r->pending = true;
		say(r, s, "retired; its record must stay until %s",
		    date(r, over_at(r, s)));
		return EX_OK;
	}
	if (r->o->prune)
		return prune(r, s);
	r->pending = true;
	say(r, s, "retired; its record may be withdrawn, --prune removes the "
	    "key");
	return EX_OK;
}

/* --- all --- */

static bool
is_wanted(const struct rotation *r, enum key_type type)
{
	return !r->o->has_type || r->o->type == type;
}

/* One rotation ends before another begins. A file that is gone could have
 * been of any type. */
static bool
is_ending(const struct rotation *r, enum key_type type)
{
	for (size_t i = 0; i < r->count; i++)
		if (r->slots[i].line.state == KEY_STATE_RETIRED &&
		    (r->slots[i].file == NULL || r->slots[i].type == type))
			return true;
	return false;
}

/* What is there moves on; *out_begin: and a new key is wanted. */
static int
step(struct rotation *r, enum key_type type, const struct slot **out_begin)
{
	struct slot *active = decide(r, type);
	if (oldest(r, type, KEY_STATE_NEXT) != NULL)
		return advance(r, type, active);
	if (active != NULL && !is_ending(r, type) &&
	    (r->o->age_s == 0 ||
		r->o->now_s - active->line.since_s >= r->o->age_s))
		*out_begin = active;
	return EX_OK;
}

static int
begin(struct rotation *r, const struct slot *active)
{
	struct key_options *o = r->o;
	bool chosen = o->has_type; /* and with it the bits */
	if (!chosen) {
		o->type = active->type;
		o->bits = active->type != KEY_RSA ? 0 :
		    active->bits > MIN_RSA_BITS ? active->bits :
						  MIN_RSA_BITS;
	}
	o->selector = key_selector(o, r->folder);
	r->pending = true;
	return o->selector != NULL ?
	    key_make(o, &r->dir, r->folder, r->path.ptr) : EX_OSERR;
}

static int
rotate(struct rotation *r)
{
	const struct slot *starts[KEY_ED25519 + 1] = { NULL };
	bool any = false;
	int status = read_slots(r);
	for (size_t i = 0; i < r->count && status == EX_OK; i++)
		any = any || (r->slots[i].file != NULL &&
		    is_wanted(r, r->slots[i].type));
	if (status == EX_OK && !any)
		return cli_fail(EX_NOINPUT, "%s: no key of that type; make "
		    "one with: hanaper key generate", r->path.ptr);
	for (int t = KEY_RSA; t <= KEY_ED25519 && status == EX_OK; t++)
		if (is_wanted(r, (enum key_type)t))
			status = step(r, (enum key_type)t, &starts[t]);
	for (size_t i = 0; i < r->count && status == EX_OK; i++)
		if (r->slots[i].line.state == KEY_STATE_RETIRED &&
		    (r->slots[i].file == NULL ||
			is_wanted(r, r->slots[i].type)))
			status = look_at_retired(r, &r->slots[i]);
	if (status == EX_OK)
		status = write_state(r);
	for (int t = KEY_RSA; t <= KEY_ED25519 && status == EX_OK; t++)
		if (starts[t] != NULL)
			status = begin(r, starts[t]);
	return status == EX_OK && r->pending ? 1 : status;
}

int
key_rotate(struct key_options *o)
{
	struct rotation r = { .o = o, .folder = -1 };
	r.path = arena_printf(
	    o->arena, "%s/%.*s", o->key_dir, STR_ARG(o->domain));
	if (r.path.ptr == NULL)
		return EX_OSERR;
	if (access(r.path.ptr, F_OK) != 0 && errno == ENOENT)
		return cli_fail(EX_NOINPUT, "%s has no key for %.*s; make one "
		    "with: hanaper key generate %.*s", o->key_dir,
		    STR_ARG(o->domain), STR_ARG(o->domain));
	key_own(o);
	int status = key_lock(r.path.ptr, &r.folder);
	if (status == EX_OK)
		status = key_resolver(o, &r.resolver);
	if (status == EX_OK)
		status = rotate(&r);
	resolver_free(&r.resolver);
	if (r.folder >= 0)
		close(r.folder);
	return status;
}
