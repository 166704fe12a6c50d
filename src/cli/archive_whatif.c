/* hanaper archive whatif: which stored messages would have been treated
 * otherwise under another policy. Each is judged twice, with the present
 * configuration and with the change, from the stored message, session and DNS
 * answers; nothing is asked of the network. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include "archive/search/query.h"
#include "base/clock.h"
#include "base/json.h"
#include "cli/each.h"
#include "flow/replay.h"

#define USAGE "whatif " ARCHIVE_PLACE_USAGE "\n" \
	"       [--dmarc VALUE] [--trust-sealer DOMAIN] [--drop-include NAME]\n" \
	"       [--set NAME=VALUE] [--json] [--unrecorded] [QUERY ...]"

#define MAX_LIST 64
#define MAX_LINE ((size_t)1 << 20)

struct whatif {
	struct archive_place place;
	struct cli_settings change;  /* in front of place.settings */
	struct str sealers[MAX_LIST], includes[MAX_LIST];
	size_t sealer_count, include_count;
	bool json, terminal;
	struct arena *a;
	struct archive_reader *reader;
	struct config *before, *after;
	uint64_t judged, differ, unclear, skipped;
};

static const struct option options[] = {
	ARCHIVE_READ_LONG,
	{ "dmarc", required_argument, NULL, 'D' },
	{ "trust-sealer", required_argument, NULL, 's' },
	{ "drop-include", required_argument, NULL, 'i' },
	{ "set", required_argument, NULL, 'S' },
	{ "json", no_argument, NULL, 'j' },
	{ NULL, 0, NULL, 0 },
};

static int
add_to(struct str *list, size_t *count, const char *value)
{
	if (*count == MAX_LIST || value[0] == '\0')
		return cli_fail(EX_USAGE, "'%s': empty, or more than %d of "
		    "them", value, MAX_LIST);
	list[(*count)++] = str_c(value);
	return EX_OK;
}

static int
add_change(struct whatif *x, const char *text)
{
	if (cli_settings_add(&x->change, text))
		return EX_OK;
	return cli_fail(EX_USAGE, "--set %s: not NAME=VALUE", text);
}

static int
parse_options(struct whatif *x, int argc, char **argv)
{
	int c, status;
	/* a query has words like -this */
	while ((c = getopt_long(argc, argv, "+" ARCHIVE_PLACE_SHORT, options,
		    NULL)) != -1) {
		status = EX_OK;
		if (archive_place_option(&x->place, c, optarg, &status)) {
			;
		} else if (c == 'D') {
			struct str s = arena_printf(x->a, "dmarc=%s", optarg);
			status = add_change(x, s.ptr != NULL ? s.ptr : "");
		} else if (c == 's') {
			status = add_to(x->sealers, &x->sealer_count, optarg);
		} else if (c == 'i') {
			status = add_to(x->includes, &x->include_count, optarg);
		} else if (c == 'S') {
			status = add_change(x, optarg);
		} else if (c == 'j') {
			x->json = true;
		} else {
			return cli_usage("archive", USAGE);
		}
		if (status != EX_OK)
			return status;
	}
	if (x->change.count + x->sealer_count + x->include_count == 0)
		return cli_usage("archive", USAGE);
	return EX_OK;
}

/* --- both configurations --------------------------------------------------- */

/* trusted_sealers as it is, and those of --trust-sealer. */
static int
trust_sealers(struct whatif *x)
{
	struct buf b;
	buf_init(&b, 65536);
	buf_add_c(&b, "trusted_sealers=");
	for (size_t i = 0; i < x->before->trusted_sealers.count; i++) {
		buf_add_str(&b, x->before->trusted_sealers.items[i]);
		buf_add_char(&b, ' ');
	}
	for (size_t i = 0; i < x->sealer_count; i++) {
		buf_add_str(&b, x->sealers[i]);
		buf_add_char(&b, ' ');
	}
	const char *text = arena_cstr(x->a, buf_str(&b));
	bool good = b.error == RES_OK && text != NULL;
	buf_done(&b);
	return good ? add_change(x, text) : cli_fail(EX_OSERR, "out of memory");
}

/* The change stands in front of what it replaces. */
static int
load(struct whatif *x)
{
	int status = EX_OK;
	x->before = cli_settings_load(&x->place.settings, &status);
	if (x->before != NULL && x->sealer_count > 0)
		status = trust_sealers(x);
	if (status != EX_OK)
		return status;
	x->change.path = x->place.settings.path;
	size_t changed = x->change.count;
	for (size_t i = 0; i < x->place.settings.count; i++) {
		const struct config_setting *old =
		    &x->place.settings.items[i];
		bool replaced = false;
		for (size_t j = 0; j < changed; j++)
			replaced = replaced ||
			    str_eq(x->change.items[j].name, old->name);
		if (replaced)
			continue;
		if (x->change.count == CLI_MAX_SETTINGS)
			return cli_fail(EX_USAGE, "more than %d settings",
			    CLI_MAX_SETTINGS);
		x->change.items[x->change.count++] = *old;
	}
	x->after = cli_settings_load(&x->change, &status);
	return status;
}

/* --- a record without an include ------------------------------------------- */

/* "include:NAME", whatever the qualifier. */
static bool
is_dropped(const struct whatif *x, struct str term)
{
	if (term.len > 0 && strchr("+-~?", term.ptr[0]) != NULL)
		term = str_skip(term, 1);
	if (!str_case_starts(term, STR("include:")))
		return false;
	term = str_skip(term, 8);
	if (str_ends(term, STR(".")))
		term = str_sub(term, 0, term.len - 1);
	for (size_t i = 0; i < x->include_count; i++)
		if (str_case_eq(term, x->includes[i]))
			return true;
	return false;
}

static bool
drop_includes(void *context, struct str name, struct str text, struct buf *out)
{
	const struct whatif *x = context;
	struct str rest = text, term;
	bool dropped = false;
	(void)name;
	if (!str_case_starts(text, STR("v=spf1")))
		return false;
	while (str_split(&rest, ' ', &term)) {
		if (is_dropped(x, term)) {
			dropped = true;
			continue;
		}
		if (out->len > 0)
			buf_add_char(out, ' ');
		buf_add_str(out, term);
	}
	return dropped;
}

/* --- one message ----------------------------------------------------------- */

struct source {
	struct whatif *x;
	uint64_t id;
	struct err err;
};

static enum res
pour(void *context, struct sink *out)
{
	struct source *s = context;
	return archive_get_body(s->x->reader, s->id, &s->err, out);
}

static void
put_verdict(struct json *j, const char *key, const struct replay *r)
{
	const struct decision *d = r->decision;
	json_key(j, key);
	json_open(j, '{');
	json_key_str(j, "disposition", str_c(r->disposition));
	json_key_str(j, "cause", str_c(r->cause));
	json_key_str(j, "results", d->results);
	if (d->text != NULL)
		json_key_str(j, "text", str_c(d->text));
	json_close(j, '}');
}

static void
put_json(struct buf *b, const struct search_hit *h, struct str then,
    const struct replay *before, const struct replay *after,
    struct str missing)
{
	struct json j;
	json_init(&j, b);
	json_open(&j, '{');
	archive_json_head(&j, h->id, h->time_us);
	json_key_str(&j, "from", h->from);
	json_key_str(&j, "subject", h->subject);
	json_key_str(&j, "then", then);
	put_verdict(&j, "before", before);
	put_verdict(&j, "after", after);
	if (missing.len > 0)
		json_key_str(&j, "missing", missing);
	json_close(&j, '}');
}

static void
put_text(struct buf *b, const struct search_hit *h,
    const struct replay *before, const struct replay *after,
    struct str missing)
{
	archive_id_format(b, h->id);
	buf_add_c(b, "  ");
	archive_put_time(b, h->time_us);
	if (missing.len > 0) {
		buf_add_c(b, "  unclear, no answer kept for ");
		archive_put_safe(b, missing);
	} else {
		buf_addf(b, "  %s -> %s (%s)", before->disposition,
		    after->disposition,
		    strcmp(after->cause, "none") != 0 ? after->cause
						      : before->cause);
	}
	buf_add_c(b, "\n    From: ");
	archive_put_safe(b, h->from);
	buf_add_c(b, "\n    ");
	archive_put_safe(
	    b, h->subject.len > 0 ? h->subject : STR("(no subject)"));
}

/* An answer that is missing both times has nothing to do with the change. */
static void
compare(struct whatif *x, const struct search_hit *h, struct str then,
    const struct replay *before, const struct replay *after)
{
	struct buf b;
	struct str missing = before->missing.len > 0 &&
	    strcmp(before->disposition, after->disposition) == 0 ?
	    STR_EMPTY : after->missing;
	x->judged++;
	if (missing.len > 0)
		x->unclear++;
	else if (strcmp(before->disposition, after->disposition) != 0)
		x->differ++;
	else
		return;
	buf_init(&b, MAX_LINE);
	if (x->json)
		put_json(&b, h, then, before, after, missing);
	else
		put_text(&b, h, before, after, missing);
	buf_add_char(&b, '\n');
	(void)buf_write(&b, stdout);
	buf_done(&b);
}

static enum res
replay_both(struct whatif *x, struct source *s, const struct search_hit *h,
    const struct archived *m)
{
	struct replay before, after;
	struct replay_options o = { .config = x->before,
		.meta = m->meta,
		.evidence = { .record = m->evidence },
		.time_us = m->time_us,
		.pour = pour,
		.context = s };
	enum res r = replay_run(&o, &before);
	o.config = x->after;
	if (x->include_count > 0) {
		o.evidence.edit = drop_includes;
		o.evidence.context = x;
	}
	if (r == RES_OK) {
		r = replay_run(&o, &after);
		if (r == RES_OK)
			compare(x, h, record_find(m->meta, META_DISPOSITION),
			    &before, &after);
		replay_done(&after);
	}
	replay_done(&before);
	return r;
}

/* Mail of ours and imported mail was never judged. */
static enum res
take_hit(void *context, struct arena *a, const struct search_hit *h)
{
	struct whatif *x = context;
	struct archived m;
	struct source s = { x, h->id, { "" } };
	(void)a;
	if (!str_eq(h->direction, STR("in"))) {
		x->skipped++;
		return RES_OK;
	}
	struct arena *one = arena_new(0);
	if (one == NULL)
		return RES_NOMEM;
	enum res r = archive_get(x->reader, one, h->id, &s.err, &m);
	if (r == RES_OK)
		r = replay_both(x, &s, h, &m);
	arena_free(&one);
	if (r == RES_OK || r == RES_NOMEM)
		return r;
	x->unclear++; /* damaged or erased: the others are judged */
	fprintf(stderr, "hanaper: %" PRIu64 ".%" PRIu64 ": %s\n", h->id >> 32,
	    h->id & UINT32_MAX,
	    s.err.text[0] != '\0' ? s.err.text : res_text(r));
	return RES_OK;
}

/* --- the whole ------------------------------------------------------------- */

static struct query *
the_query(struct whatif *x, int argc, char **argv, int *out_status)
{
	char all[] = "dir:in";
	char *const everything[] = { all };
	return optind < argc ?
	    archive_query(x->a, argc, argv, optind, out_status) :
	    archive_query(x->a, 1, (char **)everything, 0, out_status);
}

static int
say_sums(const struct whatif *x, int status,
    const struct search_coverage *coverage)
{
	if (x->json)
		printf("{\"judged\":%" PRIu64 ",\"differ\":%" PRIu64
		    ",\"unclear\":%" PRIu64 ",\"skipped\":%" PRIu64 "}\n",
		    x->judged, x->differ, x->unclear, x->skipped);
	else
		printf("%" PRIu64 " judged, %" PRIu64 " otherwise, %" PRIu64
		    " unclear, %" PRIu64 " not inbound\n", x->judged,
		    x->differ, x->unclear, x->skipped);
	(void)fflush(stdout);
	archive_say_coverage(coverage);
	if (status != EX_OK)
		return status;
	if (!archive_is_complete(coverage))
		return EX_TEMPFAIL;
	return x->differ + x->unclear > 0 ? 1 : EX_OK;
}

int
archive_whatif_main(int argc, char **argv)
{
	static struct whatif x;
	struct search_coverage coverage;
	struct query *q = NULL;
	x.a = arena_new(0);
	if (x.a == NULL)
		return cli_fail(EX_OSERR, "out of memory");
	int status = parse_options(&x, argc, argv);
	if (status == EX_OK)
		status = load(&x);
	if (status == EX_OK)
		q = the_query(&x, argc, argv, &status);
	if (q != NULL)
		x.reader = archive_place_open(&x.place, x.a, &status);
	if (x.reader != NULL)
		status = archive_event(&x.place, "whatif",
		    archive_reader_path(x.reader), q->text, NULL, 0);
	if (x.reader != NULL && status == EX_OK) {
		status = each_message(
		    x.reader, q, NULL, take_hit, &x, &coverage);
		status = say_sums(&x, status, &coverage);
	}
	archive_reader_close(&x.reader);
	config_unref(&x.before);
	config_unref(&x.after);
	arena_free(&x.a);
	return status;
}
