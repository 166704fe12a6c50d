/* How far a long job has come, on one line of the terminal that is standard
 * error: a bar, percents, the speed and the time that is left. Anywhere else
 * nothing is written. Whoever writes another line there clears it first. */
#ifndef CLI_PROGRESS_H
#define CLI_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"

#define PROGRESS_EVERY_US 100000
#define PROGRESS_LABEL    64 /* bytes by which one job is told from the next */

enum progress_unit { PROGRESS_BYTES, PROGRESS_FRAMES };

struct progress {
	bool terminal, shown;
	char label[PROGRESS_LABEL];
	size_t label_len;
	int64_t begun_us, drawn_us; /* monotonic */
	uint64_t begun_at;          /* what was done when it began */
};

void progress_init(struct progress *p);
/* `done` of `all`; another label begins another job. `note` (may be empty) is
 * shown as it is: no text of strangers. */
void progress_show(struct progress *p, struct str label, uint64_t done,
    uint64_t all, enum progress_unit unit, struct str note);
void progress_clear(struct progress *p);

#endif
