/* The option table: one row says everything about an option. Parser,
 * defaults, dump, suggestions and the check of hanaper.conf(5) are loops over
 * it. Inside this folder only; others see config.h. */
#ifndef CONFIG_OPTIONS_H
#define CONFIG_OPTIONS_H

#include "config/config.h"

enum option_type {
	OPT_BOOL,     /* bool: yes no on off */
	OPT_WORD,     /* an enum of `words`, in their order; or an int, -1 unset */
	OPT_CHOICE,   /* struct str: one of `words` */
	OPT_COUNT,    /* uint64_t: min..max */
	OPT_SIZE,     /* uint64_t, bytes: 50M */
	OPT_SECONDS,  /* int64_t: 5m, or `empty` for the largest */
	OPT_MICROS,   /* int64_t: 5s, 500ms */
	OPT_TEXT,     /* struct str: anything on one line, at most max bytes */
	OPT_REPLY,    /* OPT_TEXT, ASCII, with {name} marks of reject_text */
	OPT_NAME,     /* struct str: one word */
	OPT_FAMILY,   /* struct str: name of a retention family */
	OPT_PATH,     /* struct str: absolute */
	OPT_FILE,     /* OPT_PATH that must be readable now */
	OPT_DOMAIN,   /* struct str, lower case */
	OPT_ADDRESS,  /* struct str: user@domain */
	OPT_CANON,    /* two bools, header and body: relaxed/simple */
	OPT_CANON_TEXT, /* the same as checked text */
	OPT_LISTEN,   /* struct listen_address */
	OPT_METRICS,  /* struct str: inet:PORT@HOST */
	OPT_WORDS,    /* struct strlist of `words` */
	OPT_NAMES,    /* struct strlist of words */
	OPT_FIELDS,   /* struct strlist of header field names */
	OPT_HEADERS,  /* struct strlist of Name or Name:text */
	OPT_VERDICTS, /* struct strlist of method:result */
	OPT_DOMAINS,  /* struct strlist of dom or .dom, lower case */
	OPT_PATTERNS, /* struct strlist of dom, .dom or user@dom */
	OPT_SERVERS,  /* struct strlist of IP or IP@PORT */
	OPT_NETS,     /* struct netlist */
};

struct option {
	const char *name, *group;
	enum option_type type;
	const char *fallback;   /* as it would be written; NULL in sections */
	size_t offset;          /* into struct config or the section's struct */
	const char *help;
	const char *words;      /* "one two three" */
	const char *empty;      /* the word that stands for an unset value */
	uint64_t min, max;
	size_t shadow;          /* offset of a bool set by a leading `shadow` */
	size_t given;           /* offset of a bool set when it is given */
};

struct option_table {
	const struct option *rows;
	size_t count;
};

extern const struct option_table config_options;

/* `[KIND NAME]`: where its options go and what its name may be. */
enum section_kind {
	SECTION_DOMAIN, SECTION_OVERRIDE, SECTION_ARCHIVE, SECTION_RETENTION,
	SECTION_COUNT
};
struct section_type {
	const char *kind, *argument;
	enum option_type name_type;
	struct option_table options;
};
extern const struct section_type config_sections[SECTION_COUNT];

/* Most rows any table has. */
#define OPTIONS_MAX 128

/* The row of that exact name, or NULL. */
const struct option *option_find(struct option_table t, struct str name);
/* The nearest name by edit distance, or NULL when none is near. */
const char *option_nearest(struct option_table t, struct str name);

#endif
