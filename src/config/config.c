#include "config/config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config/check.h"
#include "config/options.h"
#include "config/parse.h"
#include "config/sign_table.h"
#include "config/value.h"

/* What config_ref and config_unref count; the snapshot comes first, so that
 * one pointer is both. */
struct snapshot {
	struct config config;
	atomic_uint refs;
	struct arena *arena;
};

/* A file of CONFIG_MAX_FILE bytes made of the smallest list items. */
#define MAX_ARENA ((size_t)512 << 20)

/* More sections of one kind than anybody writes. */
#define MAX_SECTIONS 10000

struct section_list {
	void *items;
	size_t count, cap, size;
};

struct loader {
	struct snapshot *snap;
	struct arena *arena;
	const char *label;
	struct err *err;
	struct option_table table; /* of the section we are in */
	void *base;                /* where its values go */
	const char *section;       /* "" or " in [override x]" */
	unsigned section_line;
	unsigned *lines; /* where each option of `table` was given */
	unsigned global_lines[OPTIONS_MAX], section_lines[OPTIONS_MAX];
	enum section_kind kind;
	struct section_list lists[SECTION_COUNT];
	struct config covered; /* where values go that a setting covers */
};

/* `why` is what value_parse said. */
static enum res
bad_value(
    struct loader *l, unsigned line, const char *name, const struct err *why)
{
	char text[ERR_MAX_TEXT + 4];
	snprintf(text, sizeof text, ": %s", why->text);
	check_problem(l->err, l->label, line, name, text);
	return RES_INVALID;
}

static enum res
unknown_option(struct loader *l, const struct parse_event *e)
{
	const char *near = option_nearest(l->table, e->name);
	if (l->base != &l->snap->config &&
	    option_find(config_options, e->name) != NULL)
		err_set(l->err,
		    "%s:%u: option '%.*s' stands%s: put it above the first "
		    "section",
		    l->label, e->line, STR_ARG(e->name), l->section);
	else if (near != NULL)
		err_set(l->err,
		    "%s:%u: unknown option '%.*s'%s, did you mean '%s'?",
		    l->label, e->line, STR_ARG(e->name), l->section, near);
	else
		err_set(l->err, "%s:%u: unknown option '%.*s'%s", l->label,
		    e->line, STR_ARG(e->name), l->section);
	return RES_INVALID;
}

/* Parse into its place; a value that a setting covers must still be right,
 * but goes nowhere. */
static enum res
take_value(
    struct loader *l, const struct option *o, struct str value, unsigned line)
{
	unsigned *given = &l->lines[o - l->table.rows];
	bool covered = *given == LINE_OF_SETTING;
	if (*given != 0 && !covered) {
		err_set(l->err, "%s:%u: '%s' is already set in line %u",
		    l->label, line, o->name, *given);
		return RES_INVALID;
	}
	if (!covered)
		*given = line;
	struct err why = { "" };
	enum res r = value_parse(
	    o, l->arena, value, covered ? (void *)&l->covered : l->base, &why);
	if (r == RES_NOMEM || r == RES_OK)
		return r;
	return bad_value(l, line, o->name, &why);
}

static enum res
on_option(struct loader *l, const struct parse_event *e)
{
	const struct option *o = option_find(l->table, e->name);
	return o != NULL ? take_value(l, o, e->value, e->line)
			 : unknown_option(l, e);
}

/* Of several for one option the last wins, as with Postfix's -o. */
static enum res
apply_settings(
    struct loader *l, const struct config_setting *settings, size_t count)
{
	for (size_t i = count; i-- > 0;) {
		struct str name = settings[i].name;
		const struct option *o = option_find(config_options, name);
		if (o == NULL) {
			const char *near = option_nearest(config_options, name);
			err_set(l->err, "-o %.*s: unknown option%s%s%s",
			    STR_ARG(name),
			    near != NULL ? ", did you mean '" : "",
			    near != NULL ? near : "", near != NULL ? "'?" : "");
			return RES_INVALID;
		}
		enum res r = take_value(
		    l, o, str_trim(settings[i].value), LINE_OF_SETTING);
		if (r != RES_OK)
			return r;
	}
	return RES_OK;
}

/* Close the section that ends here: what its options must be together. */
static enum res
end_section(struct loader *l)
{
	if (l->base == &l->snap->config)
		return RES_OK;
	return check_section(
	    l->kind, l->base, l->label, l->section_line, l->err);
}

static void *
add_section(struct loader *l, enum section_kind kind)
{
	struct section_list *s = &l->lists[kind];
	if (s->count == s->cap) {
		size_t cap = s->cap == 0 ? 8 : s->cap * 2;
		char *items = arena_array(l->arena, cap, s->size);
		if (items == NULL)
			return NULL;
		if (s->count != 0)
			memcpy(items, s->items, s->count * s->size);
		s->items = items;
		s->cap = cap;
	}
	return (char *)s->items + s->count++ * s->size;
}

/* Every section struct begins with its name and the place. */
struct section_head {
	struct str name, where;
};
_Static_assert(offsetof(struct override_rule, where) ==
	    offsetof(struct section_head, where) &&
	offsetof(struct archive_rule, where) ==
	    offsetof(struct section_head, where) &&
	offsetof(struct retention_rule, where) ==
	    offsetof(struct section_head, where) &&
	offsetof(struct domain_rule, where) ==
	    offsetof(struct section_head, where),
    "sections begin alike");

static const struct section_head *
find_section(const struct section_list *s, struct str name)
{
	for (size_t i = 0; i < s->count; i++) {
		const struct section_head *h =
		    (const void *)((const char *)s->items + i * s->size);
		if (str_eq(h->name, name))
			return h;
	}
	return NULL;
}

/* Nothing is given yet. */
static void
clear_section(enum section_kind kind, void *base)
{
	switch (kind) {
	case SECTION_DOMAIN: {
		struct domain_rule *d = base;
		d->signature_lifetime_s = -1;
		d->require_published_key = -1;
		break;
	}
	case SECTION_OVERRIDE: {
		struct override_rule *o = base;
		o->dmarc = o->quarantine = o->multi_from = -1;
		break;
	}
	case SECTION_ARCHIVE:
		((struct archive_rule *)base)->keep = -1;
		break;
	case SECTION_RETENTION:
		((struct retention_rule *)base)->keep_s = -1;
		break;
	case SECTION_COUNT:
		break;
	}
}

static enum res
on_section(struct loader *l, const struct parse_event *e)
{
	enum res r = end_section(l);
	if (r != RES_OK)
		return r;
	unsigned kind = 0;
	while (kind < SECTION_COUNT &&
	    !str_eq(e->name, str_c(config_sections[kind].kind)))
		kind++;
	if (kind == SECTION_COUNT) {
		err_set(l->err,
		    "%s:%u: unknown section '%.*s': there are domain, "
		    "override, archive and retention",
		    l->label, e->line, STR_ARG(e->name));
		return RES_INVALID;
	}
	const struct section_type *type = &config_sections[kind];
	const struct option name_option = { .name = type->argument,
		.type = type->name_type };
	struct section_head head;
	struct err why = { "" };
	r = value_parse(&name_option, l->arena, e->value, &head.name, &why);
	if (r == RES_NOMEM)
		return r;
	if (r != RES_OK)
		return bad_value(l, e->line, type->kind, &why);
	const struct section_head *same =
	    find_section(&l->lists[kind], head.name);
	if (same != NULL || l->lists[kind].count == MAX_SECTIONS) {
		err_set(l->err, "%s:%u: [%s %.*s] %s%.*s", l->label, e->line,
		    type->kind, STR_ARG(head.name),
		    same != NULL ? "already stands at " : "is one too many",
		    STR_ARG(same != NULL ? same->where : STR_EMPTY));
		return RES_INVALID;
	}
	head.where = arena_printf(l->arena, "%s:%u", l->label, e->line);
	struct str label = arena_printf(
	    l->arena, " in [%s %.*s]", type->kind, STR_ARG(head.name));
	void *base = add_section(l, (enum section_kind)kind);
	if (head.where.ptr == NULL || label.ptr == NULL || base == NULL)
		return RES_NOMEM;
	clear_section((enum section_kind)kind, base);
	memcpy(base, &head, sizeof head);
	memset(l->section_lines, 0, sizeof l->section_lines);
	l->kind = (enum section_kind)kind;
	l->table = type->options;
	l->base = base;
	l->section = label.ptr;
	l->section_line = e->line;
	l->lines = l->section_lines;
	return RES_OK;
}

static enum res
on_event(void *arg, const struct parse_event *e)
{
	return e->section ? on_section(arg, e) : on_option(arg, e);
}

static enum res
apply_defaults(struct loader *l)
{
	for (size_t i = 0; i < config_options.count; i++) {
		const struct option *o = &config_options.rows[i];
		struct err why = { "" };
		if (l->global_lines[i] != 0)
			continue;
		enum res r = value_parse(
		    o, l->arena, str_c(o->fallback), &l->snap->config, &why);
		if (r == RES_NOMEM)
			return r;
		if (r != RES_OK)
			return bad_value(l, 0, o->name, &why);
	}
	return RES_OK;
}

static void
store_sections(struct loader *l)
{
	struct config *c = &l->snap->config;
	c->domains = l->lists[SECTION_DOMAIN].items;
	c->domain_count = l->lists[SECTION_DOMAIN].count;
	c->overrides = l->lists[SECTION_OVERRIDE].items;
	c->override_count = l->lists[SECTION_OVERRIDE].count;
	c->archive_rules = l->lists[SECTION_ARCHIVE].items;
	c->archive_rule_count = l->lists[SECTION_ARCHIVE].count;
	c->retention = l->lists[SECTION_RETENTION].items;
	c->retention_count = l->lists[SECTION_RETENTION].count;
}

/* The whole file in the arena. `out_text` may hold anything. */
static enum res
read_file(struct arena *a, const char *path, const char *prefix,
    struct err *err, struct str *out_text)
{
	struct buf b;
	struct stat st;
	enum res r = RES_IO;
	buf_init(&b, CONFIG_MAX_FILE);
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0 || fstat(fd, &st) != 0) {
		err_set(err, "%s%s: %s", prefix, path, strerror(errno));
		goto out;
	}
	if (!S_ISREG(st.st_mode)) {
		err_set(err, "%s%s: not a regular file", prefix, path);
		goto out;
	}
	if (buf_read(&b, fd) == RES_IO) {
		err_set(err, "%s%s: %s", prefix, path, strerror(errno));
		goto out;
	}
	if (b.error == RES_LIMIT)
		err_set(err, "%s%s: larger than %zu bytes", prefix, path,
		    CONFIG_MAX_FILE);
	r = b.error;
	if (r == RES_OK) {
		*out_text = arena_dup(a, buf_str(&b));
		r = out_text->ptr != NULL ? RES_OK : RES_NOMEM;
	}
out:
	if (fd >= 0)
		close(fd);
	buf_done(&b);
	return r;
}

static unsigned
line_of(const struct loader *l, const char *name)
{
	const struct option *o = option_find(config_options, str_c(name));
	return o != NULL ? l->global_lines[o - config_options.rows] : 0;
}

static enum res
read_sign_table(struct loader *l)
{
	struct config *c = &l->snap->config;
	struct str text;
	if (c->sign_table.len == 0)
		return RES_OK;
	unsigned line = line_of(l, "sign_table");
	struct str prefix = line == LINE_OF_SETTING
	    ? STR("-o sign_table: ")
	    : arena_printf(l->arena, "%s:%u: sign_table: ", l->label, line);
	if (prefix.ptr == NULL)
		return RES_NOMEM;
	enum res r =
	    read_file(l->arena, c->sign_table.ptr, prefix.ptr, l->err, &text);
	if (r != RES_OK)
		return r;
	return sign_table_parse(l->arena, text, c->sign_table.ptr, l->err,
	    &c->sign_rules, &c->sign_rule_count);
}

static enum res
load_text(struct loader *l, struct str text)
{
	enum res r = parse_text(l->arena, text, l->label, l->err, on_event, l);
	if (r == RES_OK)
		r = end_section(l);
	if (r == RES_OK)
		r = apply_defaults(l);
	store_sections(l);
	if (r == RES_OK)
		r = check_config(
		    &l->snap->config, l->label, l->global_lines, l->err);
	if (r == RES_OK)
		r = read_sign_table(l);
	return r;
}

static struct snapshot *
new_snapshot(void)
{
	struct snapshot *s = calloc(1, sizeof *s);
	struct arena *a = arena_new(MAX_ARENA);
	if (s == NULL || a == NULL) {
		free(s);
		arena_free(&a);
		return NULL;
	}
	atomic_init(&s->refs, 1);
	s->arena = a;
	return s;
}

/* Where a configuration comes from. */
struct source {
	const char *path;       /* NULL: no file */
	const struct str *text; /* instead of the file; may be NULL */
	const char *label;
	const struct config_setting *settings;
	size_t setting_count;
};

static enum res
load_source(struct loader *l, const struct source *s)
{
	struct str content = s->text != NULL ? *s->text : STR_EMPTY;
	enum res r = RES_OK;
	l->snap->config.path = arena_dup(l->arena, str_c(s->label));
	if (l->snap->config.path.ptr == NULL)
		return RES_NOMEM;
	if (s->text == NULL && s->path != NULL)
		r = read_file(l->arena, s->path, "", l->err, &content);
	if (r == RES_OK)
		r = apply_settings(l, s->settings, s->setting_count);
	if (r == RES_OK)
		r = load_text(l, content);
	return r;
}

static enum res
load(const struct source *s, struct err *err, struct config **out)
{
	struct snapshot *snap = new_snapshot();
	struct loader *l = calloc(1, sizeof *l);
	struct config *c = snap != NULL ? &snap->config : NULL;
	enum res r = RES_NOMEM;
	if (snap == NULL || l == NULL)
		goto out;
	*l = (struct loader){ .snap = snap,
		.arena = snap->arena,
		.label = s->label,
		.err = err,
		.table = config_options,
		.base = c,
		.section = "",
		.lists = {
		    [SECTION_DOMAIN].size = sizeof(struct domain_rule),
		    [SECTION_OVERRIDE].size = sizeof(struct override_rule),
		    [SECTION_ARCHIVE].size = sizeof(struct archive_rule),
		    [SECTION_RETENTION].size = sizeof(struct retention_rule),
		} };
	l->lines = l->global_lines;
	r = load_source(l, s);
out:
	free(l);
	if (r == RES_OK)
		*out = c;
	else
		config_unref(&c);
	return r;
}

enum res
config_load(const char *path, struct err *err, struct config **out)
{
	return config_load_with(path, NULL, 0, err, out);
}

enum res
config_load_with(const char *path, const struct config_setting *settings,
    size_t count, struct err *err, struct config **out)
{
	struct source s = { .path = path,
		.label = path != NULL ? path : "defaults",
		.settings = settings,
		.setting_count = count };
	return load(&s, err, out);
}

enum res
config_from_text(
    struct str text, const char *label, struct err *err, struct config **out)
{
	struct source s = { .text = &text, .label = label };
	if (text.len > CONFIG_MAX_FILE) {
		err_set(
		    err, "%s: larger than %zu bytes", label, CONFIG_MAX_FILE);
		return RES_LIMIT;
	}
	return load(&s, err, out);
}

enum res
config_default(struct config **out)
{
	return config_load_with(NULL, NULL, 0, NULL, out);
}

struct config *
config_ref(struct config *c)
{
	atomic_fetch_add(&((struct snapshot *)c)->refs, 1);
	return c;
}

void
config_unref(struct config **c)
{
	struct snapshot *s = (struct snapshot *)*c;
	*c = NULL;
	if (s != NULL && atomic_fetch_sub(&s->refs, 1) == 1) {
		arena_free(&s->arena);
		free(s);
	}
}

static void
dump_sections(enum section_kind kind, const void *items, size_t count,
    size_t size, struct buf *out)
{
	const struct section_type *type = &config_sections[kind];
	for (size_t i = 0; i < count; i++) {
		const char *base = (const char *)items + i * size;
		buf_addf(out, "\n[%s ", type->kind);
		buf_add_str(out, ((const struct section_head *)base)->name);
		buf_add_c(out, "]\n");
		for (size_t k = 0; k < type->options.count; k++) {
			const struct option *o = &type->options.rows[k];
			if (!value_is_set(o, base))
				continue;
			buf_addf(out, "%s = ", o->name);
			value_format(o, base, out);
			buf_add_char(out, '\n');
		}
	}
}

void
config_dump(const struct config *c, struct buf *out)
{
	for (size_t i = 0; i < config_options.count; i++) {
		const struct option *o = &config_options.rows[i];
		buf_addf(out, "%s = ", o->name);
		value_format(o, c, out);
		buf_add_char(out, '\n');
	}
	dump_sections(SECTION_DOMAIN, c->domains, c->domain_count,
	    sizeof *c->domains, out);
	dump_sections(SECTION_OVERRIDE, c->overrides, c->override_count,
	    sizeof *c->overrides, out);
	dump_sections(SECTION_ARCHIVE, c->archive_rules, c->archive_rule_count,
	    sizeof *c->archive_rules, out);
	dump_sections(SECTION_RETENTION, c->retention, c->retention_count,
	    sizeof *c->retention, out);
}
