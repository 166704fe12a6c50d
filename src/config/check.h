/* Values that are good alone but not together. Inside this folder only. */
#ifndef CONFIG_CHECK_H
#define CONFIG_CHECK_H

#include "config/options.h"

/* The "line" of an option that was given in front of the file. */
#define LINE_OF_SETTING UINT32_MAX

/* "LABEL:LINE: NAMETEXT"; "-o NAMETEXT" for a setting, "LABEL: NAMETEXT" for
 * a default (line 0). */
void check_problem(struct err *err, const char *label, unsigned line,
    const char *name, const char *text);

/* `base` is the section's struct, complete. RES_INVALID with `err` naming
 * label and line; fills in what follows from the rest. */
HN_CHECK enum res check_section(enum section_kind kind, void *base,
    const char *label, unsigned line, struct err *err);

/* The whole file. `lines` says where each option of the table was given (0:
 * it was not); a default that conflicts with a given value yields to it. */
HN_CHECK enum res check_config(struct config *c, const char *label,
    const unsigned *lines, struct err *err);

#endif
