/* Makes dictionaries from a family's own small mail, in a thread of its own:
 * reading a few MB and a second of work. The first one comes soon, from few
 * messages, the second from more.
 *
 *   trainer_start → trainer_poll* → trainer_stop */
#ifndef ARCHIVE_TRAINER_H
#define ARCHIVE_TRAINER_H

#include <stdatomic.h>

#include "archive/store/dictionary.h"
#include "archive/store/train.h"

/* Frames a shard must have for the first and for the second dictionary, and
 * again as many (doubled each time) when that was not enough. */
#define TRAINER_FIRST_FRAMES  TRAIN_MIN_SAMPLES
#define TRAINER_SECOND_FRAMES (4 * TRAIN_MIN_SAMPLES)

struct trainer;

/* Samples come from the family's newest shard, then from older ones. `before`
 * is what the family has (NULL: nothing yet); the new one is made of a good
 * deal more messages, or not at all. NULL without memory or thread. */
struct trainer *trainer_start(const char *store_path, const char *family,
    const struct dictionary *before);
/* False: still at work. Else *out is the dictionary or NULL, and the trainer
 * is to be stopped. */
bool trainer_poll(struct trainer *t, struct dictionary **out);
/* Waits for it; NULL is fine. */
void trainer_stop(struct trainer **t);

/* Whose message is this, for the rule of dictionaries: the first address of
 * its From field, in lower case, without a +detail. RES_NOTFOUND: it has none
 * that can be read. */
HN_CHECK enum res trainer_sender(
    struct arena *a, struct str message, struct str *out);

#endif
