/* Requests about the archive: the daemon that has it does them; while there
 * is none a process of ours does, as the owner of the store. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sysexits.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>

#include <pwd.h>

#include "archive/store/store_dir.h"
#include "cli/archive.h"
#include "flow/keeping.h"

#define MAX_ANSWER ((size_t)64 << 20)
/* Another process of ours may have the audit family for a moment. */
#define TRIES     40
#define TRY_NS    50000000L

void
archive_keeping_begin(
    struct buf *request, const char *command, const char *dir)
{
	char name[64], *whole = realpath(dir, NULL);
	snprintf(name, sizeof name, "archive.%s", command);
	control_begin(request, name);
	fields_text(request, "dir", str_c(whole != NULL ? whole : dir));
	free(whole);
}

/* --- without the daemon --- */

static void
alarm_line(void *context, const char *line)
{
	err_set(context, "%s", line);
}

static enum res
open_store(const struct config *c, const char *dir, struct err *err,
    struct store **out)
{
	struct store_identity id;
	const struct store_options o = { .path = dir,
		.roll_bytes = c->archive_roll_size,
		.reserve_bytes = 0, /* forgetting is how space comes back */
		.on_demand = true,
		.clock = CLOCK_SYSTEM,
		.alarm = alarm_line,
		.alarm_context = err };
	enum res r = store_dir_identity(dir, err, &id); /* make none */
	return r == RES_OK ? store_open(&o, err, out) : r;
}

static enum res
run_once(struct keeping_call *call, const char *command, const char *dir,
    struct err *err)
{
	/* the alarm is the cause when something goes wrong, else no matter */
	struct err alarm = { "" };
	enum res r = open_store(call->config, dir, &alarm, &call->store);
	if (r == RES_OK)
		r = keeping_run(command, call, err);
	store_close(&call->store);
	if (r != RES_OK && alarm.text[0] != '\0') {
		struct err both = { "" };
		err_set(&both, "%s%s%s", err->text,
		    err->text[0] != '\0' ? ": " : "", alarm.text);
		*err = both;
	}
	return r;
}

static enum res
run_here(const struct config *c, const char *command, const char *dir,
    struct str request, struct audit_who who, struct buf *answer,
    struct err *err)
{
	const struct timespec pause = { 0, TRY_NS };
	struct fields f;
	enum res r = RES_AGAIN;
	for (int i = 0; i < TRIES && r == RES_AGAIN; i++) {
		struct arena *a = arena_new(0);
		struct keeping_call call = { .config = c, .arena = a,
			.request = &f, .who = who, .answer = answer };
		if (i > 0)
			nanosleep(&pause, NULL);
		buf_reset(answer);
		err_clear(err);
		struct str rest = request;
		r = a != NULL ? fields_read(&rest, a, &f) : RES_NOMEM;
		if (r == RES_OK)
			r = run_once(&call, command, dir, err);
		arena_free(&a);
	}
	return r;
}

static struct audit_who
who_we_are(void)
{
	const struct passwd *pw = getpwuid(getuid());
	return (struct audit_who){ (uint32_t)getuid(),
		str_c(pw != NULL ? pw->pw_name : "") };
}

static void
run_to_answer(const struct config *c, const char *command, const char *dir,
    struct str request, struct audit_who who, struct buf *answer)
{
	struct err err = { "" };
	enum res r = cli_become_owner(dir) == EX_OK ? RES_OK : RES_DENIED;
	if (r == RES_OK)
		r = run_here(c, command, dir, request, who, answer, &err);
	if (r == RES_OK)
		r = answer->error;
	if (r != RES_OK)
		buf_reset(answer);
	fields_number(answer, "result", (uint64_t)r);
	if (r != RES_OK)
		fields_text(answer, "error",
		    str_c(err.text[0] != '\0' ? err.text : res_text(r)));
	fields_end(answer);
}

/* A child of ours: what it makes belongs to the owner of the store. */
_Noreturn static void
child(const struct config *c, const char *command, const char *dir,
    struct str request, int to)
{
	struct buf answer;
	struct audit_who who = who_we_are();
	buf_init(&answer, MAX_ANSWER);
	run_to_answer(c, command, dir, request, who, &answer);
	struct str s = buf_str(&answer);
	while (s.len > 0) {
		ssize_t n = write(to, s.ptr, s.len);
		if (n < 0 && errno != EINTR)
			break;
		if (n > 0)
			s = str_skip(s, (size_t)n);
	}
	_exit(s.len == 0 ? 0 : 1);
}

/* Who is the owner needs no child: a third of the time of a short command. */
static bool
is_ours(const char *dir)
{
	struct stat st;
	return stat(dir, &st) == 0 && st.st_uid == geteuid();
}

static enum res
do_it_ourselves(const struct config *c, const char *command, const char *dir,
    struct str request, struct arena *a, struct err *err,
    struct control_answer *out)
{
	int ends[2];
	struct buf bytes;
	if (is_ours(dir)) {
		buf_init(&bytes, MAX_ANSWER);
		run_to_answer(c, command, dir, request, who_we_are(), &bytes);
		enum res r = control_read(buf_str(&bytes), a, err, out);
		buf_done(&bytes);
		return r;
	}
	if (pipe(ends) != 0)
		return RES_IO;
	(void)fflush(stdout);
	pid_t pid = fork();
	if (pid == 0) {
		close(ends[0]);
		child(c, command, dir, request, ends[1]);
	}
	close(ends[1]);
	buf_init(&bytes, MAX_ANSWER);
	enum res r = pid > 0 ? buf_read(&bytes, ends[0]) : RES_NOMEM;
	close(ends[0]);
	if (pid > 0)
		(void)waitpid(pid, NULL, 0);
	if (r == RES_OK)
		r = control_read(buf_str(&bytes), a, err, out);
	buf_done(&bytes);
	return r;
}

/* --- both --- */

static bool
is_other(const struct control_answer *answer)
{
	return answer->count == 1 &&
	    fields_get_number(&answer->records[0], "other_archive") != 0;
}

static enum res
ask(const struct config *c, const char *command, const char *dir,
    struct buf *request, struct arena *a, struct err *err,
    struct control_answer *out)
{
	struct err refused = { "" };
	*out = (struct control_answer){ .count = 0 };
	fields_end(request); /* control_call adds one more: no matter */
	struct str copy = arena_dup(a, buf_str(request));
	request->len--;
	if (request->error != RES_OK || copy.ptr == NULL) {
		enum res failed = request->error;
		buf_done(request);
		return failed != RES_OK ? failed : RES_NOMEM;
	}
	enum res r = control_call(
	    c->state_dir, request, CONTROL_LONG_US, a, &refused, out);
	bool nobody = r == RES_NOTFOUND && refused.text[0] == '\0';
	if (r == RES_OK && !is_other(out))
		return r;
	if (r != RES_OK && !nobody && r != RES_DENIED) {
		*err = refused;
		return r;
	}
	/* who may not speak to the daemon may own this store all the same */
	*out = (struct control_answer){ .count = 0 };
	enum res own = do_it_ourselves(c, command, dir, copy, a, err, out);
	if (own != RES_OK && r == RES_DENIED) {
		*err = refused;
		return r;
	}
	return own;
}

int
archive_keeping(const struct archive_place *p, const char *command,
    const char *dir, struct buf *request, struct arena *a,
    struct control_answer *out)
{
	struct err err = { "" };
	int status = EX_OK;
	struct config *c = cli_settings_load(&p->settings, &status);
	if (c == NULL) {
		buf_done(request);
		return status;
	}
	enum res r = ask(c, command, dir, request, a, &err, out);
	config_unref(&c);
	if (r == RES_OK)
		return EX_OK;
	return cli_fail(cli_status(r), "%s",
	    err.text[0] != '\0' ? err.text : res_text(r));
}

/* --- events --- */

static void
log_unrecorded(const char *action, const char *dir, struct str query)
{
	openlog("hanaper", LOG_PID, LOG_MAIL);
	syslog(LOG_WARNING, "uid %lu reads %s without a record there: %s %.*s",
	    (unsigned long)getuid(), dir, action, STR_ARG(query));
	closelog();
}

int
archive_write_event(const struct archive_place *p, const char *dir,
    const struct archive_event *e)
{
	struct buf request, id;
	struct control_answer answer;
	struct arena *a = arena_new(0);
	if (a == NULL)
		return cli_fail(EX_OSERR, "out of memory");
	archive_keeping_begin(&request, "event", dir);
	fields_text(&request, "action", str_c(e->action));
	if (e->query.len > 0)
		fields_text(&request, "query", e->query);
	if (e->reason.len > 0)
		fields_text(&request, "reason", e->reason);
	buf_init(&id, 64);
	for (size_t i = 0; i < e->id_count; i++) {
		buf_reset(&id);
		archive_id_format(&id, e->ids[i]);
		fields_text(&request, "id", buf_str(&id));
	}
	buf_done(&id);
	int status = archive_keeping(p, "event", dir, &request, a, &answer);
	arena_free(&a);
	return status;
}

int
archive_event(const struct archive_place *p, const char *action,
    const char *dir, struct str query, const uint64_t *ids, size_t count)
{
	const struct archive_event e = { .action = action, .query = query,
		.ids = ids, .id_count = count };
	if (p->unrecorded) {
		log_unrecorded(action, dir, query);
		return EX_OK;
	}
	if (archive_write_event(p, dir, &e) != EX_OK)
		return cli_fail(EX_TEMPFAIL,
		    "nothing is shown, because nobody could write down that "
		    "it was; start hanaperd, or see --unrecorded");
	return EX_OK;
}
