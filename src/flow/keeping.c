#include "flow/keeping.h"

#include <fcntl.h>
#include <unistd.h>

#include "archive/keeping/erase.h"
#include "archive/keeping/expire.h"
#include "archive/keeping/holds.h"
#include "archive/keeping/keeping.h"
#include "archive/store/shard.h"

#define MAX_REASON 1000
#define MAX_QUERY  4096

/* --- what they have in common --- */

static int64_t
now_us(const struct keeping_call *call)
{
	struct clock clock = store_clock(call->store);
	return clock_now_us(&clock);
}

/* All values of `id`. */
static enum res
read_ids(const struct keeping_call *call, struct err *err,
    const uint64_t **out, size_t *out_count)
{
	const struct fields *f = call->request;
	uint64_t *ids = arena_array(call->arena, f->count + 1, sizeof *ids);
	size_t count = 0;
	if (ids == NULL)
		return RES_NOMEM;
	for (size_t i = 0; i < f->count; i++) {
		if (!str_eq(f->items[i].name, STR("id")))
			continue;
		if (archive_id_parse(f->items[i].text, &ids[count++]) !=
		    RES_OK) {
			err_set(err, "\"%.*s\" is no message id (like 7.123)",
			    STR_ARG(f->items[i].text));
			return RES_INVALID;
		}
	}
	*out = ids;
	*out_count = count;
	return RES_OK;
}

static enum res
write_event(
    struct keeping_call *call, struct audit_event *e, struct err *err)
{
	uint64_t id;
	e->who = call->who;
	enum res r = audit_write(call->store, e, false, now_us(call), &id);
	if (r != RES_OK)
		err_set(err, "it cannot be written down in the audit family: "
			     "%s", res_text(r));
	return r;
}

/* --- erase --- */

static enum res
run_erase(struct keeping_call *call, struct err *err)
{
	struct erase_outcome done;
	struct erase_request rq = { .who = call->who, .stop = call->stop,
		.reason = fields_get(call->request, "reason") };
	enum res r = read_ids(call, err, &rq.ids, &rq.count);
	if (r == RES_OK && (rq.count == 0 || rq.reason.len == 0 ||
			       rq.reason.len > MAX_REASON)) {
		err_set(err, "erase wants ids and a reason of up to %d bytes",
		    MAX_REASON);
		r = RES_INVALID;
	}
	if (r == RES_OK)
		r = archive_erase(call->store, &rq, err, &done);
	if (r != RES_OK)
		return r;
	fields_number(call->answer, "frames", done.frames);
	fields_number(call->answer, "before", done.before);
	fields_end(call->answer);
	return RES_OK;
}

/* --- expire --- */

static enum res
read_rules(const struct keeping_call *call, struct expire_request *rq)
{
	const struct config *c = call->config;
	struct expire_rule *rules =
	    arena_array(call->arena, c->retention_count + 1, sizeof *rules);
	if (rules == NULL)
		return RES_NOMEM;
	for (size_t i = 0; i < c->retention_count; i++) {
		rules[i] = (struct expire_rule){
			.family = arena_cstr(
			    call->arena, c->retention[i].family),
			.keep_s = c->retention[i].keep_s };
		if (rules[i].family == NULL)
			return RES_NOMEM;
	}
	rq->rules = rules;
	rq->rule_count = c->retention_count;
	return RES_OK;
}

static void
put_item(struct buf *b, const struct expire_item *item)
{
	static const char *const fates[] = { [EXPIRE_GONE] = "gone",
		[EXPIRE_LATER] = "later", [EXPIRE_STAYS] = "stays" };
	fields_text(b, "fate", str_c(fates[item->fate]));
	fields_text(b, "family", item->family);
	fields_text(b, "period", item->period);
	fields_number(b, "shard", item->number);
	fields_text(b, "dir", item->dir);
	if (item->due_us > 0)
		fields_number(b, "due_s", (uint64_t)item->due_us / 1000000);
	fields_number(b, "bytes", item->bytes);
	fields_number(b, "frames", item->frames);
	fields_number(b, "held", item->held);
	fields_text(b, "why", item->why);
	fields_end(b);
}

static enum res
run_expire(struct keeping_call *call, struct err *err)
{
	struct expire_item *items;
	size_t count;
	struct expire_request rq = { .now_us = now_us(call),
		.who = call->who,
		.plan = fields_get_number(call->request, "plan") != 0 };
	enum res r = read_rules(call, &rq);
	if (r == RES_OK)
		r = archive_expire(
		    call->store, &rq, call->arena, err, &items, &count);
	for (size_t i = 0; r == RES_OK && i < count; i++)
		put_item(call->answer, &items[i]);
	return r;
}

/* --- holds --- */

static size_t
find_hold(const struct holds *h, struct str name)
{
	size_t i = 0;
	while (i < h->count && !str_eq(h->items[i].name, name))
		i++;
	return i;
}

static enum res
check_hold(const struct keeping_call *call, const struct hold *hold,
    struct err *err)
{
	struct query *q;
	if (!hold_name_valid(hold->name)) {
		err_set(err, "\"%.*s\": the name of a hold has up to %d of "
			     "A-Z, a-z, 0-9, - _ .", STR_ARG(hold->name),
		    HOLDS_MAX_NAME);
		return RES_INVALID;
	}
	if (hold->query.len == 0 || hold->query.len > MAX_QUERY) {
		err_set(err, "a hold wants a query");
		return RES_INVALID;
	}
	return query_parse(call->arena, hold->query,
	    hold->created_us / 1000000, err, &q);
}

/* The file is changed before the event: a hold that nobody wrote down keeps
 * mail, one that is only written down does not. */
static enum res
run_hold_add(struct keeping_call *call, struct err *err)
{
	struct holds h;
	int keeping;
	struct hold hold = { .name = fields_get(call->request, "name"),
		.query = str_trim(fields_get(call->request, "query")),
		.login = call->who.login, .uid = call->who.uid,
		.created_us = now_us(call) };
	enum res r = check_hold(call, &hold, err);
	if (r == RES_OK)
		r = keeping_begin(call->store, err, &keeping);
	if (r != RES_OK)
		return r;
	const char *path = store_path(call->store);
	r = holds_read(path, call->arena, err, &h);
	if (r == RES_OK && find_hold(&h, hold.name) < h.count) {
		err_set(err, "there is a hold \"%.*s\" already",
		    STR_ARG(hold.name));
		r = RES_EXISTS;
	}
	if (r == RES_OK && h.count == HOLDS_MAX) {
		err_set(err, "there are %d holds already", HOLDS_MAX);
		r = RES_LIMIT;
	}
	struct hold *items = r == RES_OK ?
	    arena_array(call->arena, h.count + 1, sizeof *items) : NULL;
	if (r == RES_OK && items == NULL)
		r = RES_NOMEM;
	if (r == RES_OK) {
		if (h.count > 0)
			memcpy(items, h.items, h.count * sizeof *items);
		items[h.count++] = hold;
		h.items = items;
		r = holds_write(store_env(call->store)->io, path, &h);
		if (r != RES_OK)
			err_set(err, "%s/" HOLDS_FILE ": %s", path,
			    res_text(r));
	}
	struct audit_event e = { .action = STR("hold"), .name = hold.name,
		.query = hold.query };
	if (r == RES_OK)
		r = write_event(call, &e, err);
	close(keeping);
	return r;
}

/* Here the event comes first: nothing is let go in silence. */
static enum res
run_hold_release(struct keeping_call *call, struct err *err)
{
	struct holds h;
	int keeping;
	struct str name = fields_get(call->request, "name");
	enum res r = keeping_begin(call->store, err, &keeping);
	if (r != RES_OK)
		return r;
	const char *path = store_path(call->store);
	r = holds_read(path, call->arena, err, &h);
	size_t at = r == RES_OK ? find_hold(&h, name) : 0;
	if (r == RES_OK && at == h.count) {
		err_set(err, "there is no hold \"%.*s\"", STR_ARG(name));
		r = RES_NOTFOUND;
	}
	struct audit_event e = { .action = STR("release"), .name = name };
	if (r == RES_OK) {
		e.query = h.items[at].query;
		r = write_event(call, &e, err);
	}
	if (r == RES_OK) {
		h.count--;
		memmove(&h.items[at], &h.items[at + 1],
		    (h.count - at) * sizeof *h.items);
		r = holds_write(store_env(call->store)->io, path, &h);
		if (r != RES_OK)
			err_set(err, "%s/" HOLDS_FILE ": %s", path,
			    res_text(r));
	}
	close(keeping);
	return r;
}

/* --- what readers do --- */

static enum res
run_event(struct keeping_call *call, struct err *err)
{
	static const char *const actions[] = { "search", "list", "show",
		"export", "verify", "resend", "whatif", "audit", "reconcile",
		"withdrawn", "backup" };
	struct audit_event e = {
		.action = fields_get(call->request, "action"),
		.query = fields_get(call->request, "query"),
		.reason = fields_get(call->request, "reason") };
	bool known = false;
	for (size_t i = 0; i < sizeof actions / sizeof actions[0]; i++)
		known = known || str_eq(e.action, str_c(actions[i]));
	if (!known || e.query.len > 4 * MAX_QUERY ||
	    e.reason.len > MAX_REASON) {
		err_set(err, "no event of readers");
		return RES_INVALID;
	}
	enum res r = read_ids(call, err, &e.ids, &e.id_count);
	return r == RES_OK ? write_event(call, &e, err) : r;
}

static const struct {
	const char *name;
	enum res (*run)(struct keeping_call *call, struct err *err);
} commands[] = {
	{ "erase", run_erase },
	{ "event", run_event },
	{ "expire", run_expire },
	{ "hold_add", run_hold_add },
	{ "hold_release", run_hold_release },
};

enum res
keeping_run(const char *command, struct keeping_call *call, struct err *err)
{
	for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++)
		if (strcmp(commands[i].name, command) == 0)
			return commands[i].run(call, err);
	err_set(err, "no command \"%s\" of the archive", command);
	return RES_UNSUPPORTED;
}
