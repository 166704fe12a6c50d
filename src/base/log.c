#include "base/log.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <syslog.h>
#include <unistd.h>

#include "base/json.h"

#define MAX_LINE  16384
#define MAX_VALUE 512

static struct {
	enum log_target target;
	enum log_level max_level;
	bool journal;
	char ident[32];
	atomic_bool json;
} out = { LOG_TO_STDERR, LOG_LEVEL_INFO, false, "hanaper", false };

static const int syslog_level[] = { LOG_ERR, LOG_WARNING, LOG_INFO, LOG_DEBUG };
static const char *const level_word[] = { "error: ", "warning: ", "", "debug: " };
static const char *const level_name[] = { "error", "warning", "info", "debug" };

void
log_open(enum log_target target, const char *ident, enum log_level max_level)
{
	out.target = target;
	out.max_level = max_level;
	out.journal = getenv("JOURNAL_STREAM") != NULL;
	snprintf(out.ident, sizeof out.ident, "%s", ident);
	if (target == LOG_TO_SYSLOG)
		openlog(out.ident, LOG_PID, LOG_MAIL);
}

void
log_set_json(bool on)
{
	atomic_store(&out.json, on);
}

/* What stands before a line: objects say all themselves. */
static int
prefix_of(enum log_level level, bool object, char *to, size_t room)
{
	const char *word = object ? "" : level_word[level];
	if (out.target == LOG_TO_SYSLOG)
		return snprintf(to, room, "%s", word);
	if (out.journal)
		return snprintf(
		    to, room, "<%d>%s", syslog_level[level], word);
	return object ? 0 : snprintf(to, room, "%s: %s", out.ident, word);
}

static void
emit(enum log_level level, bool object, struct str line)
{
	char prefix[64] = "";
	if (level > out.max_level)
		return;
	if (line.len > MAX_LINE)
		line.len = MAX_LINE;
	int n = prefix_of(level, object, prefix, sizeof prefix);
	if (out.target == LOG_TO_SYSLOG) {
		syslog(syslog_level[level], "%s%.*s", prefix, (int)line.len,
		    line.ptr);
		return;
	}
	/* one write per line, so that processes do not mix their lines */
	char whole[sizeof prefix + MAX_LINE + 1];
	memcpy(whole, prefix, (size_t)n);
	memcpy(whole + n, line.ptr, line.len);
	whole[(size_t)n + line.len] = '\n';
	ssize_t done = write(STDERR_FILENO, whole, (size_t)n + line.len + 1);
	(void)done;
}

void
log_object(struct str object)
{
	emit(LOG_LEVEL_INFO, true, object);
}

void
log_line(enum log_level level, struct str line)
{
	struct buf object;
	struct json j;
	if (!atomic_load(&out.json)) {
		emit(level, false, line);
		return;
	}
	/* a byte becomes six at most */
	if (line.len > MAX_LINE / 8)
		line.len = MAX_LINE / 8;
	buf_init(&object, MAX_LINE);
	json_init(&j, &object);
	json_open(&j, '{');
	json_key_c(&j, "level", level_name[level]);
	json_key_str(&j, "text", line);
	json_close(&j, '}');
	if (object.error == RES_OK)
		emit(level, true, buf_str(&object));
	buf_done(&object);
}

__attribute__((format(printf, 2, 0))) static void
log_va(enum log_level level, const char *fmt, va_list ap)
{
	char text[2048];
	if (level > out.max_level)
		return;
	int n = vsnprintf(text, sizeof text, fmt, ap);
	if (n < 0)
		return;
	size_t len = (size_t)n < sizeof text ? (size_t)n : sizeof text - 1;
	for (size_t i = 0; i < len; i++)
		if ((unsigned char)text[i] < 0x20 || text[i] == 0x7f)
			text[i] = '?';
	log_line(level, str_of(text, len));
}

#define LOG_FUNCTION(name, level)                 \
	void name(const char *fmt, ...)           \
	{                                         \
		va_list ap;                       \
		va_start(ap, fmt);                \
		log_va(level, fmt, ap);           \
		va_end(ap);                       \
	}

LOG_FUNCTION(log_error, LOG_LEVEL_ERROR)
LOG_FUNCTION(log_warning, LOG_LEVEL_WARNING)
LOG_FUNCTION(log_info, LOG_LEVEL_INFO)
LOG_FUNCTION(log_debug, LOG_LEVEL_DEBUG)

void
log_pair(struct buf *line, const char *key, struct str value)
{
	bool cut = value.len > MAX_VALUE, quoted = value.len == 0;
	if (cut)
		value.len = MAX_VALUE;
	for (size_t i = 0; i < value.len && !quoted; i++)
		quoted = strchr(" \"=;\\", value.ptr[i]) != NULL;
	if (line->len > 0)
		buf_add_char(line, ' ');
	buf_add_c(line, key);
	buf_add_c(line, quoted ? "=\"" : "=");
	for (size_t i = 0; i < value.len; i++) {
		unsigned char c = (unsigned char)value.ptr[i];
		if (c < 0x20 || c >= 0x7f) {
			buf_addf(line, "\\x%02X", c);
			continue;
		}
		if (c == '"' || c == '\\')
			buf_add_char(line, '\\');
		buf_add_char(line, (char)c);
	}
	buf_add_c(line, cut ? "..." : "");
	buf_add_c(line, quoted ? "\"" : "");
}
