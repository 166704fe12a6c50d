/* What clients ask of the archive: flow/keeping.h does it. */
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "daemon/control.h"
#include "flow/keeping.h"

/* The client names the archive it means: it may not be ours. */
static bool
is_ours(const struct control_call *call)
{
	struct stat theirs, ours;
	struct str dir = fields_get(&call->request, "dir");
	return call->env->store != NULL && dir.len > 0 &&
	    stat(dir.ptr, &theirs) == 0 &&
	    stat(store_path(call->env->store), &ours) == 0 &&
	    theirs.st_dev == ours.st_dev && theirs.st_ino == ours.st_ino;
}

static enum res
run(const char *command, struct control_call *call, struct err *err)
{
	struct keeping_call k = { .store = call->env->store,
		.config = call->env->config,
		.arena = call->arena,
		.request = &call->request,
		.who = { call->uid, call->login },
		.stop = call->stop,
		.answer = call->answer };
	if (!is_ours(call)) {
		fields_number(call->answer, "other_archive", 1);
		fields_end(call->answer);
		return RES_OK;
	}
	return keeping_run(command, &k, err);
}

enum res
control_erase(struct control_call *call, struct err *err)
{
	return run("erase", call, err);
}

enum res
control_event(struct control_call *call, struct err *err)
{
	return run("event", call, err);
}

enum res
control_expire(struct control_call *call, struct err *err)
{
	return run("expire", call, err);
}

enum res
control_hold_add(struct control_call *call, struct err *err)
{
	return run("hold_add", call, err);
}

enum res
control_hold_release(struct control_call *call, struct err *err)
{
	return run("hold_release", call, err);
}

/* One line in the log a shard. */
static void
log_fates(struct str rest, struct arena *a)
{
	struct fields f;
	while (fields_read(&rest, a, &f) == RES_OK) {
		struct str why = fields_get(&f, "why");
		log_info("archive: %.*s: %s%s%.*s",
		    STR_ARG(fields_get(&f, "dir")),
		    str_eq(fields_get(&f, "fate"), STR("gone")) ? "expired" :
								  "stays",
		    why.len > 0 ? ": " : "", STR_ARG(why));
	}
}

void
control_daily(const struct flow_env *env, const atomic_bool *stop)
{
	struct err err = { "" };
	struct buf answer;
	struct fields none = { .count = 0 };
	struct arena *a = arena_new(0);
	struct keeping_call k = { .store = env->store,
		.config = env->config,
		.arena = a,
		.request = &none,
		.who = { (uint32_t)geteuid(), STR("hanaperd") },
		.stop = stop,
		.answer = &answer };
	if (a == NULL || env->store == NULL || env->config->retention_count == 0)
		goto out;
	buf_init(&answer, CONTROL_MAX_ANSWER);
	enum res r = keeping_run("expire", &k, &err);
	if (r == RES_OK)
		log_fates(buf_str(&answer), a);
	else
		log_error("archive: nothing is expired today: %s",
		    err.text[0] != '\0' ? err.text : res_text(r));
	buf_done(&answer);
out:
	arena_free(&a);
}
