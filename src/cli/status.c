/* hanaper status. */
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sysexits.h>

#include "base/json.h"
#include "cli/control.h"

#define USAGE      "[-c CONFIG] [-o NAME=VALUE] [--json]"
#define MAX_OUTPUT ((size_t)1 << 20)

static const struct option options[] = {
	{ "json", no_argument, NULL, 'j' },
	{ NULL, 0, NULL, 0 },
};

/* What stands before the dot; empty without one. */
static struct str
group_of(struct str name)
{
	size_t dot = str_chr(name, '.');
	return dot == SIZE_MAX ? STR_EMPTY : str_sub(name, 0, dot);
}

static void
put_json(struct buf *b, struct arena *a, const struct fields *f)
{
	struct json j;
	struct str open = STR_EMPTY;
	json_init(&j, b);
	json_open(&j, '{');
	for (size_t i = 0; i < f->count; i++) {
		const struct field_value *v = &f->items[i];
		struct str group = group_of(v->name);
		if (!str_eq(group, open) && open.len > 0)
			json_close(&j, '}');
		if (!str_eq(group, open) && group.len > 0) {
			json_key(&j, arena_cstr(a, group));
			json_open(&j, '{');
		}
		open = group;
		json_key(&j,
		    arena_cstr(a,
			group.len > 0 ? str_skip(v->name, group.len + 1)
				      : v->name));
		if (v->is_number)
			json_int(&j, (int64_t)v->number);
		else
			json_str(&j, v->text);
	}
	if (open.len > 0)
		json_close(&j, '}');
	json_close(&j, '}');
	buf_add_char(b, '\n');
}

static void
put_value(struct buf *b, const struct field_value *v)
{
	if (!v->is_number)
		for (size_t i = 0; i < v->text.len; i++)
			buf_add_char(b,
			    v->text.ptr[i] >= ' ' && v->text.ptr[i] != 0x7f
				? v->text.ptr[i]
				: '?');
	else if (str_ends(v->name, STR("_bytes")) && v->number >= 1048576)
		buf_addf(b, "%.1f MB", (double)v->number / 1048576);
	else if (str_ends(v->name, STR("_s")))
		buf_addf(b,
		    "%" PRIu64 "d %02" PRIu64 ":%02" PRIu64 ":%02" PRIu64,
		    v->number / 86400, v->number / 3600 % 24,
		    v->number / 60 % 60, v->number % 60);
	else
		buf_addf(b, "%" PRIu64, v->number);
}

/* Results that never came up and empty texts are left out. */
static bool
is_dull(const struct field_value *v)
{
	struct str group = group_of(v->name);
	if (!v->is_number)
		return v->text.len == 0;
	return v->number == 0 && group.len > 0 &&
	    !str_eq(group, STR("archive")) && !str_eq(group, STR("keys"));
}

static void
put_text(struct buf *b, const struct fields *f)
{
	for (size_t i = 0; i < f->count; i++) {
		const struct field_value *v = &f->items[i];
		if (is_dull(v))
			continue;
		buf_addf(b, "%-26.*s", STR_ARG(v->name));
		put_value(b, v);
		buf_add_char(b, '\n');
	}
}

static int
ask(const struct config *c, struct arena *a, bool json)
{
	struct buf request, out;
	struct control_answer answer = { .count = 0 };
	struct err err = { "" };
	control_begin(&request, "status");
	enum res r = control_call(
	    c->state_dir, &request, CONTROL_WAIT_US, a, &err, &answer);
	if (r == RES_NOTFOUND)
		return cli_fail(EX_UNAVAILABLE,
		    "hanaperd is not running (no one answers at "
		    "%.*s/control.sock)",
		    STR_ARG(c->state_dir));
	if (r == RES_OK && answer.count != 1)
		r = RES_SYNTAX;
	if (r != RES_OK)
		return cli_fail(cli_status(r), "%s",
		    err.text[0] != '\0' ? err.text : res_text(r));
	buf_init(&out, MAX_OUTPUT);
	if (json)
		put_json(&out, a, &answer.records[0]);
	else
		put_text(&out, &answer.records[0]);
	int status = EX_OK;
	if (out.error != RES_OK)
		status = cli_fail(EX_OSERR, "out of memory");
	else if (!buf_write(&out, stdout))
		status = cli_fail(EX_IOERR, "standard output: write error");
	buf_done(&out);
	return status;
}

int
cmd_status(int argc, char **argv)
{
	struct cli_settings settings = { .path = NULL };
	bool json = false;
	int c, status = EX_OSERR;
	while ((c = getopt_long(argc, argv, "c:o:", options, NULL)) != -1) {
		if (c == 'c')
			settings.path = optarg;
		else if (c == 'j')
			json = true;
		else if (c != 'o' || !cli_settings_add(&settings, optarg))
			return cli_usage("status", USAGE);
	}
	if (optind != argc)
		return cli_usage("status", USAGE);
	struct config *config = cli_settings_load(&settings, &status);
	if (config == NULL)
		return status;
	struct arena *a = arena_new(0);
	status = a != NULL ? ask(config, a, json)
			   : cli_fail(EX_OSERR, "out of memory");
	arena_free(&a);
	config_unref(&config);
	return status;
}
