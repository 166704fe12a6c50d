/* Lines of Postfix's and Sendmail's logs: what is taken from one are parts of it. */
#include <stdint.h>
#include <stdlib.h>

#include "cli/maillog.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define WRITTEN_S 1796060000

static void
inside(struct str line, struct str part)
{
	if (part.len > 0 &&
	    (part.ptr < line.ptr || part.ptr + part.len > line.ptr + line.len))
		abort();
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str rest = str_of(data, size), line;
	while (str_split(&rest, '\n', &line)) {
		struct maillog_event e;
		int64_t time_us = 0;
		if (!maillog_parse(line, WRITTEN_S, &e, &time_us))
			continue;
		if ((!e.is_sendmail && !maillog_is_queue_id(e.queue_id)) ||
		    time_us != e.time_us)
			abort();
		inside(line, e.host);
		inside(line, e.is_sendmail ? STR_EMPTY : e.service);
		inside(line, e.message_id);
		inside(line, e.queue_id);
		inside(line, e.value);
	}
	return 0;
}
