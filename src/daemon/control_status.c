/* What `hanaper status` and the metrics endpoint tell. Names with a dot belong
 * together. */
#include <stdio.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "archive/store/store_dir.h"
#include "base/clock.h"
#include "daemon/control.h"
#include "milter/milter.h"

static void
put_time(struct buf *b, const char *name, int64_t us)
{
	struct buf text;
	buf_init(&text, 64);
	clock_format_us(&text, us);
	fields_text(b, name, buf_str(&text));
	buf_done(&text);
}

static void
put_process(struct control_call *call)
{
	struct clock now = CLOCK_SYSTEM;
	struct buf *b = call->answer;
	fields_text(b, "version", str_c(PACKAGE_VERSION));
	fields_number(b, "pid", (uint64_t)getpid());
	put_time(b, "started", call->started_us);
	int64_t up_us = clock_now_us(&now) - call->started_us;
	fields_number(b, "uptime_s", up_us > 0 ? (uint64_t)up_us / 1000000 : 0);
}

static void
put_mail(struct control_call *call)
{
	struct buf *b = call->answer;
	const struct flow_counters *n = call->env->counters;
	struct milter_counts now;
	milter_counts(&now);
	fields_number(b, "sessions", now.sessions);
	fields_number(b, "under_way", now.transactions);
	fields_number(b, "messages", atomic_load(&n->messages));
	fields_number(b, "accepted", atomic_load(&n->accepted));
	fields_number(b, "rejected", atomic_load(&n->rejected));
	fields_number(b, "tempfailed", atomic_load(&n->tempfailed));
	fields_number(b, "quarantined", atomic_load(&n->quarantined));
	fields_number(b, "aborted", atomic_load(&n->aborted));
	fields_number(b, "signed", atomic_load(&n->signed_messages));
	fields_number(
	    b, "unsigned_outbound", atomic_load(&n->unsigned_outbound));
	fields_number(b, "internal_errors", atomic_load(&n->internal_errors));
}

static void
put_verdicts(struct control_call *call)
{
	static const char *const methods[FLOW_METHODS] = { [METHOD_SPF] = "spf",
		[METHOD_DKIM] = "dkim",
		[METHOD_DMARC] = "dmarc",
		[METHOD_ARC] = "arc" };
	const struct flow_counters *n = call->env->counters;
	char name[32];
	for (int m = 0; m < FLOW_METHODS; m++)
		for (int r = AUTH_NONE; r <= AUTH_PERMERROR; r++) {
			snprintf(name, sizeof name, "%s.%s", methods[m],
			    auth_result_word((enum auth_result)r));
			fields_number(call->answer, name,
			    atomic_load(&n->verdicts[m][r]));
		}
}

static void
put_keys(struct control_call *call)
{
	struct signer *s = call->env->signer;
	struct manifest *m = s != NULL ? s->manifest(s) : NULL;
	size_t domains = 0;
	for (size_t i = 0; m != NULL && i < manifest_count(m); i++)
		domains += i == 0 ||
		    !str_eq(manifest_at(m, i)->domain,
			manifest_at(m, i - 1)->domain);
	fields_number(
	    call->answer, "keys.loaded", m != NULL ? manifest_count(m) : 0);
	fields_number(call->answer, "keys.domains", domains);
	manifest_unref(&m);
}

static void
put_shards(struct control_call *call, const char *path)
{
	struct shard_entry *list = NULL;
	struct err ignored = { "" };
	size_t count = 0, offline = 0;
	if (store_dir_shards(
		path, NULL, call->arena, &ignored, &list, &count) != RES_OK)
		return;
	for (size_t i = 0; i < count; i++)
		offline += list[i].status != RES_OK;
	fields_number(call->answer, "archive.shards", count);
	fields_number(call->answer, "archive.offline_shards", offline);
}

static void
put_archive(struct control_call *call)
{
	struct buf *b = call->answer;
	struct store *s = call->env->store;
	struct store_counters n;
	struct statvfs fs;
	struct err alarm;
	int64_t alarm_us;
	fields_text(b, "archive.state", s != NULL ? STR("on") : STR("off"));
	if (s == NULL)
		return;
	store_counters(s, &n);
	store_last_alarm(s, &alarm, &alarm_us);
	fields_text(b, "archive.dir", str_c(store_path(s)));
	put_shards(call, store_path(s));
	fields_number(b, "archive.stored", n.messages);
	fields_number(b, "archive.deliveries", n.deliveries);
	fields_number(b, "archive.groups", n.groups);
	fields_number(b, "archive.raw_bytes", n.bytes_raw);
	fields_number(b, "archive.stored_bytes", n.bytes_stored);
	fields_number(b, "archive.unindexed", n.unapplied);
	fields_number(b, "archive.refused", n.refused);
	fields_number(b, "archive.errors",
	    atomic_load(&call->env->counters->archive_errors));
	fields_number(b, "archive.poisoned_shards", n.poisoned);
	if (statvfs(store_path(s), &fs) == 0)
		fields_number(b, "archive.free_bytes",
		    (uint64_t)fs.f_bavail * fs.f_frsize);
	fields_text(b, "archive.last_alarm", str_c(alarm.text));
	if (alarm_us != 0)
		put_time(b, "archive.last_alarm_time", alarm_us);
}

enum res
control_status(struct control_call *call, struct err *err)
{
	(void)err;
	put_process(call);
	put_mail(call);
	put_verdicts(call);
	put_keys(call);
	put_archive(call);
	fields_end(call->answer);
	return RES_OK;
}
