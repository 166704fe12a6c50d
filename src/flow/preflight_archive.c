#include "flow/preflight_archive.h"

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/err.h"

/* Families that get mail without a rule's word. `hold` is no family to be
 * kept for a time, and a rule cannot name it (config/check.c). */
static const char *const own[] = { "mail", "import", "audit" };

struct view {
	const struct config *config;
	struct arena *arena;
	preflight_report report;
	void *context;
};

static void say(const struct view *v, enum finding level, const char *fmt, ...)
    HN_PRINTF(3, 4);

static void
say(const struct view *v, enum finding level, const char *fmt, ...)
{
	char line[ERR_MAX_TEXT];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(line, sizeof line, fmt, ap);
	va_end(ap);
	v->report(v->context, level, line);
}

static const struct retention_rule *
retention_of(const struct config *c, struct str family)
{
	for (size_t i = 0; i < c->retention_count; i++)
		if (str_eq(c->retention[i].family, family))
			return &c->retention[i];
	return NULL;
}

static void
tell_family(const struct view *v, struct str family, struct str rule)
{
	const struct retention_rule *r = retention_of(v->config, family);
	struct str by = rule.len == 0 ? STR_EMPTY
	    : arena_printf(v->arena, " ([archive %.*s])", STR_ARG(rule));
	if (r == NULL)
		say(v, FINDING_OK,
		    "archive family %.*s%.*s: kept forever, there is no "
		    "[retention %.*s]",
		    STR_ARG(family), STR_ARG(by), STR_ARG(family));
	else if (r->keep_s == RETENTION_FOREVER)
		say(v, FINDING_OK, "archive family %.*s%.*s: kept forever",
		    STR_ARG(family), STR_ARG(by));
	else
		say(v, FINDING_OK,
		    "archive family %.*s%.*s: kept for %lld days behind the "
		    "end of the month",
		    STR_ARG(family), STR_ARG(by),
		    (long long)(r->keep_s / 86400));
}

/* Told by the first rule that stores there. */
static bool
told_before(const struct config *c, size_t rule)
{
	for (size_t i = 0; i < sizeof own / sizeof own[0]; i++)
		if (str_eq(c->archive_rules[rule].family, str_c(own[i])))
			return true;
	for (size_t i = 0; i < rule; i++)
		if (str_eq(c->archive_rules[i].family,
			c->archive_rules[rule].family))
			return true;
	return false;
}

static bool
gets_mail(const struct config *c, struct str family)
{
	for (size_t i = 0; i < sizeof own / sizeof own[0]; i++)
		if (str_eq(family, str_c(own[i])))
			return true;
	for (size_t i = 0; i < c->archive_rule_count; i++)
		if (str_eq(c->archive_rules[i].family, family))
			return true;
	return false;
}

/* A family of the past has its folder, and expires as it should. */
static bool
is_stored(const struct view *v, struct str family)
{
	struct str path = arena_printf(v->arena, "%.*s/families/%.*s",
	    STR_ARG(v->config->archive_dir), STR_ARG(family));
	return path.ptr != NULL && access(path.ptr, F_OK) == 0;
}

enum res
preflight_archive(
    const struct config *c, preflight_report report, void *context)
{
	struct view v = { .config = c, .arena = arena_new(0), .report = report,
		.context = context };
	if (v.arena == NULL)
		return RES_NOMEM;
	if (!c->archive && c->archive_rule_count != 0)
		say(&v, FINDING_WARNING,
		    "%.*s: archive = off: [archive %.*s] does nothing",
		    STR_ARG(c->archive_rules[0].where),
		    STR_ARG(c->archive_rules[0].name));
	for (size_t i = 0; c->archive && i < sizeof own / sizeof own[0]; i++)
		if (i == 0 || retention_of(c, str_c(own[i])) != NULL)
			tell_family(&v, str_c(own[i]), STR_EMPTY);
	for (size_t i = 0; c->archive && i < c->archive_rule_count; i++)
		if (c->archive_rules[i].family.len != 0 && !told_before(c, i))
			tell_family(&v, c->archive_rules[i].family,
			    c->archive_rules[i].name);
	for (size_t i = 0; i < c->retention_count; i++)
		if (!gets_mail(c, c->retention[i].family) &&
		    !is_stored(&v, c->retention[i].family))
			say(&v, FINDING_WARNING,
			    "%.*s: [retention %.*s]: no [archive] section "
			    "stores mail in that family, and the store has "
			    "none",
			    STR_ARG(c->retention[i].where),
			    STR_ARG(c->retention[i].family));
	arena_free(&v.arena);
	return RES_OK;
}
