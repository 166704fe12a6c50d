#include "cli/as_received.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sysexits.h>

#include "base/json.h"
#include "cli/each.h"
#include "flow/replay.h"

#define MAX_RESULTS 64
#define MAX_CONFIG  ((size_t)64 << 10)
#define MAX_LINE    ((size_t)1 << 20)

/* One result: then as META has it, now as it comes out. */
struct result {
	struct str word, d, s; /* word empty: there was none */
};
struct results {
	size_t count;
	struct result items[MAX_RESULTS];
	struct str arc;
};

struct check {
	struct archive_reader *reader;
	bool json, all;
	uint64_t *faults;
	uint64_t checked, skipped;
};

/* --- the limits of then ---------------------------------------------------- */

static void
add_option(struct buf *b, struct str name, struct str value)
{
	static const char *const lengths[] = {
		[BODY_LENGTH_SETTING_POLICY] = "policy",
		[BODY_LENGTH_SETTING_ACCEPT] = "accept",
		[BODY_LENGTH_SETTING_REFUSE] = "refuse",
	};
	uint64_t n;
	if (str_eq(name, STR("skew")))
		buf_addf(b, "clock_skew = %.*ss\n", STR_ARG(value));
	else if (str_eq(name, STR("signatures")))
		buf_addf(b, "max_signatures = %.*s\n", STR_ARG(value));
	else if (str_eq(name, STR("bits")))
		buf_addf(b, "min_rsa_bits = %.*s\n", STR_ARG(value));
	else if (str_eq(name, STR("headers")))
		buf_addf(
		    b, "required_signed_headers = %.*s\n", STR_ARG(value));
	else if (str_eq(name, STR("body_length")) &&
	    str_to_u64(value, BODY_LENGTH_SETTING_REFUSE, &n) == RES_OK)
		buf_addf(b, "body_length = %s\n", lengths[n]);
}

/* "engine=1.0 now=… skew=300 …": what is unknown is of a later version and
 * changes nothing that we can do. */
static enum res
config_of(struct str then, struct err *err, struct config **out)
{
	struct buf b;
	struct str word, name;
	buf_init(&b, MAX_CONFIG);
	buf_add_c(&b, "archive = off\nspf = no\n");
	while (str_split(&then, ' ', &word)) {
		struct str value = word;
		if (str_split(&value, '=', &name) && value.ptr != NULL)
			add_option(&b, name, value);
	}
	enum res r = b.error;
	if (r == RES_OK)
		r = config_from_text(
		    buf_str(&b), "the options kept with it", err, out);
	buf_done(&b);
	return r;
}

/* --- results --------------------------------------------------------------- */

static enum res
results_then(struct str meta, struct results *out)
{
	struct record_reader records;
	unsigned tag;
	struct str value, name;
	enum res r = record_open(meta, &records);
	out->count = 0;
	out->arc = STR_EMPTY;
	while (r == RES_OK && record_next(&records, &tag, &value)) {
		if (tag != META_FACT || !str_split(&value, '=', &name))
			continue;
		struct result *last =
		    out->count > 0 ? &out->items[out->count - 1] : NULL;
		if (str_eq(name, STR("arc")))
			out->arc = value;
		else if (str_eq(name, STR("dkim")) &&
		    !str_eq(value, STR("none")) && out->count < MAX_RESULTS)
			out->items[out->count++] =
			    (struct result){ .word = value };
		else if (str_eq(name, STR("dkim.d")) && last != NULL)
			last->d = value;
		else if (str_eq(name, STR("dkim.s")) && last != NULL)
			last->s = value;
	}
	return r == RES_OK ? records.error : r;
}

static void
results_now(const struct decision *d, struct results *out)
{
	out->count = 0;
	for (size_t i = 0; i < d->dkim_count && i < MAX_RESULTS; i++)
		out->items[out->count++] = (struct result){
			str_c(auth_result_word(d->dkim[i].result)),
			d->dkim[i].d, d->dkim[i].s };
	out->arc = d->arc_done ? str_c(auth_result_word(d->arc.result)) :
				 STR_EMPTY;
}

static void
put_line(struct check *c, uint64_t id, const char *method,
    const struct result *then, const struct result *now)
{
	struct buf b;
	struct json j;
	bool same = str_eq(then->word, now->word);
	const struct str none = STR("none");
	*c->faults += !same;
	if (same && c->all)
		return;
	buf_init(&b, MAX_LINE);
	if (c->json) {
		struct buf text;
		buf_init(&text, 64);
		archive_id_format(&text, id);
		json_init(&j, &b);
		json_open(&j, '{');
		json_key_str(&j, "id", buf_str(&text));
		json_key_c(&j, "method", method);
		json_key_str(&j, "d", now->d);
		json_key_str(&j, "s", now->s);
		json_key_str(&j, "then", then->word.len > 0 ? then->word : none);
		json_key_str(&j, "now", now->word.len > 0 ? now->word : none);
		json_key_bool(&j, "same", same);
		json_close(&j, '}');
		buf_done(&text);
	} else {
		archive_id_format(&b, id);
		buf_addf(&b, ": %s=", method);
		buf_add_str(&b, now->word.len > 0 ? now->word : none);
		if (now->d.len > 0) {
			buf_add_c(&b, " d=");
			archive_put_safe(&b, now->d);
			buf_add_c(&b, " s=");
			archive_put_safe(&b, now->s);
		}
		if (same)
			buf_add_c(&b, ", as it was received");
		else
			buf_addf(&b, ", but it was %.*s when it was received",
			    STR_ARG(then->word.len > 0 ? then->word : none));
	}
	buf_add_char(&b, '\n');
	(void)buf_write(&b, stdout); /* its end is checked */
	buf_done(&b);
}

static void
compare(struct check *c, uint64_t id, const struct results *then,
    const struct results *now)
{
	static const struct result nothing;
	size_t count =
	    then->count > now->count ? then->count : now->count;
	for (size_t i = 0; i < count; i++)
		put_line(c, id, "dkim",
		    i < then->count ? &then->items[i] : &nothing,
		    i < now->count ? &now->items[i] : &nothing);
	const struct result arc_then = { .word = then->arc };
	const struct result arc_now = { .word = now->arc };
	/* most mail has no chain: not worth a line each */
	if (then->arc.len > 0 && !(str_eq(then->arc, STR("none")) &&
				     str_eq(now->arc, STR("none"))))
		put_line(c, id, "arc", &arc_then, &arc_now);
	if (count == 0 && !c->all)
		put_line(c, id, "dkim", &nothing, &nothing);
	c->checked++;
}

/* --- one message ----------------------------------------------------------- */

struct source {
	struct archive_reader *reader;
	uint64_t id;
	struct err *err;
};

static enum res
pour(void *context, struct sink *out)
{
	struct source *s = context;
	return archive_get_body(s->reader, s->id, s->err, out);
}

static enum res
check_one(struct check *c, uint64_t id, struct err *err)
{
	struct archived m;
	struct source source = { c->reader, id, err };
	struct results then, now;
	struct replay replay;
	struct config *config = NULL;
	struct arena *a = arena_new(0);
	if (a == NULL)
		return RES_NOMEM;
	enum res r = archive_get(c->reader, a, id, err, &m);
	if (r == RES_OK &&
	    !str_eq(record_find(m.meta, META_DIRECTION), STR("in"))) {
		c->skipped++;
		arena_free(&a);
		return RES_OK;
	}
	if (r == RES_OK)
		r = results_then(m.meta, &then);
	if (r == RES_OK)
		r = config_of(record_find(m.meta, META_VERIFY_OPTIONS), err,
		    &config);
	if (r == RES_OK) {
		const struct replay_options o = { .config = config,
			.meta = m.meta,
			.evidence = { .record = m.evidence },
			.time_us = m.time_us,
			.pour = pour,
			.context = &source };
		r = replay_run(&o, &replay);
		if (r == RES_OK) {
			results_now(replay.decision, &now);
			compare(c, id, &then, &now);
		}
		replay_done(&replay);
	}
	config_unref(&config);
	arena_free(&a);
	return r;
}

/* What cannot be checked any more is told, and the others go on. */
static enum res
check_and_tell(struct check *c, uint64_t id)
{
	struct err err = { "" };
	enum res r = check_one(c, id, &err);
	if (r == RES_OK || r == RES_NOMEM)
		return r;
	printf("%" PRIu64 ".%" PRIu64 ": cannot be checked: %s\n", id >> 32,
	    id & UINT32_MAX, err.text[0] != '\0' ? err.text : res_text(r));
	++*c->faults;
	return RES_OK;
}

int
as_received(struct archive_reader *r, const char *text, bool json,
    uint64_t *faults)
{
	struct check c = { .reader = r, .json = json, .faults = faults };
	uint64_t id;
	if (archive_id_parse(str_c(text), &id) != RES_OK)
		return cli_fail(EX_USAGE, "%s: not an id", text);
	enum res res = check_and_tell(&c, id);
	if (res != RES_OK)
		return cli_fail(cli_status(res), "%s: %s", text, res_text(res));
	if (c.skipped > 0)
		fprintf(stderr, "hanaper: %s: was not judged when it came\n",
		    text);
	return EX_OK;
}

static enum res
take_hit(void *context, struct arena *a, const struct search_hit *h)
{
	(void)a;
	return check_and_tell(context, h->id);
}

int
as_received_all(struct archive_reader *r, bool json, uint64_t *faults)
{
	static char inbound[] = "dir:in";
	char *words[] = { inbound };
	struct check c = { .reader = r, .json = json, .all = true,
		.faults = faults };
	struct search_coverage coverage;
	int status = EX_OK;
	struct arena *a = arena_new(0);
	struct query *q =
	    a != NULL ? archive_query(a, 1, words, 0, &status) : NULL;
	if (q != NULL) {
		status = each_message(r, q, NULL, take_hit, &c, &coverage);
		archive_say_coverage(&coverage);
		fprintf(stderr, "hanaper: %" PRIu64 " messages checked as they "
		    "were received\n", c.checked);
		if (status == EX_OK && !archive_is_complete(&coverage))
			status = EX_TEMPFAIL;
	}
	arena_free(&a);
	return status;
}
