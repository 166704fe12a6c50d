/* What a compression dictionary may hold: strings that occur in the mail of
 * at least TRAIN_MIN_SENDERS different senders, each of them whole, with a
 * byte 255 between two of them, so that nothing one sender wrote alone is
 * kept in a dictionary when his mail is erased.
 *
 *   train_new → train_add* → train_finish → train_free
 *
 * Exact, not by hashes: the samples' suffixes are sorted, and a string counts
 * when its occurrences, which then stand side by side, have enough senders. */
#ifndef ARCHIVE_TRAIN_H
#define ARCHIVE_TRAIN_H

#include <stdint.h>

#include "base/buf.h"
#include "base/res.h"
#include "base/str.h"

#define TRAIN_MIN_SENDERS 5
/* Samples a dictionary is made from; of one sender not more than a tenth. */
#define TRAIN_MIN_SAMPLES 1000
#define TRAIN_MAX_SAMPLES 3000
#define TRAIN_MAX_SAMPLE  ((size_t)4096)
#define TRAIN_MAX_BYTES   ((size_t)7 << 19)
#define TRAIN_MAX_RECORDS ((size_t)3 << 19) /* of META and the like */
/* Strings of these lengths. */
#define TRAIN_MIN_STRING 4
#define TRAIN_MAX_STRING 250
/* Of all strings; fewer are not worth a dictionary. */
#define TRAIN_MIN_CONTENT ((size_t)256)
#define TRAIN_MAX_CONTENT ((size_t)220 << 10)

struct train;

/* For samples of `max_bytes` in all, TRAIN_MAX_BYTES at most; four times that
 * while it works. NULL without memory. */
struct train *train_new(size_t max_bytes);
void train_free(struct train **t);
/* One message: `sender` says whose (compared as it is), `text` is what the
 * dictionary shall compress. False: it is enough, or too many of this
 * sender. */
bool train_add(struct train *t, struct str sender, struct str text);
size_t train_samples(const struct train *t);
/* Nothing more can be added. */
bool train_full(const struct train *t);
/* The dictionary in zstd's format, with this id, added to `out`.
 * RES_NOTFOUND: too few samples, or too little in common. */
HN_CHECK enum res train_finish(struct train *t, uint32_t id, struct buf *out);
/* Only the strings, for tests. */
HN_CHECK enum res train_strings(struct train *t, struct buf *out);

#endif
