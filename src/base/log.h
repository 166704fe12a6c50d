/* Where flow, milter, daemon and cli say what happened; lower floors return.
 * One line per call, hostile bytes escaped as \xHH. The sink is set once at
 * start, before threads exist. */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/res.h"
#include "base/str.h"

enum log_level { LOG_LEVEL_ERROR, LOG_LEVEL_WARNING, LOG_LEVEL_INFO,
	LOG_LEVEL_DEBUG };

enum log_target {
	LOG_TO_STDERR, /* "<N>" prefix when journald reads (JOURNAL_STREAM) */
	LOG_TO_SYSLOG, /* facility mail */
};

void log_open(enum log_target target, const char *ident,
    enum log_level max_level);

/* With `on` every line is a JSON object, {"level":…,"text":…} or that of
 * log_object(), and nothing stands before it but the journal's prefix. May be
 * changed at any time. */
void log_set_json(bool on);

void log_error(const char *fmt, ...) HN_PRINTF(1, 2);
void log_warning(const char *fmt, ...) HN_PRINTF(1, 2);
void log_info(const char *fmt, ...) HN_PRINTF(1, 2);
void log_debug(const char *fmt, ...) HN_PRINTF(1, 2);
/* One finished line of any length. */
void log_line(enum log_level level, struct str line);
/* One finished JSON object, as it is in any format; information. */
void log_object(struct str object);

/* Append ` key=value`, the value quoted when it holds blanks, quotes or "=",
 * control and 8-bit bytes as \xHH, at most 512 bytes of it ("..." behind). */
void log_pair(struct buf *line, const char *key, struct str value);

#endif
