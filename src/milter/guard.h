/* Which message was being worked on when the process died (design §5): a mark
 * in memory that outlives it. Before each step of a message a running hash of
 * all that was received of it so far is put into the session's slot, and
 * taken away after the step. What a new process finds in slots was under way
 * when the old one crashed; a message that reaches the same mark after it was
 * found so twice is refused for good, before it is looked at again.
 *
 * Innocent messages that were in a step at the same moment are marked, too:
 * one crash does not refuse anybody, and marks are few and soon replaced.
 *
 * The memory belongs to the supervisor, as a memory file; the marks last as
 * long as it does. The hash is seeded with a secret and not cryptographic. */
#ifndef MILTER_GUARD_H
#define MILTER_GUARD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/res.h"
#include "base/str.h"

#define GUARD_SLOTS    1024 /* steps under way at one time; more go unmarked */
#define GUARD_SUSPECTS 256  /* the oldest is replaced */
#define GUARD_CRASHES  2    /* after so many it is refused */

struct guard;

/* The memory file for all processes to come. */
HN_CHECK enum res guard_create(int *out_fd);
/* Map it (the descriptor stays the caller's) and take what the process before
 * left in its slots; *out_found (may be NULL) says how many. Never unmapped. */
HN_CHECK enum res guard_open(int fd, struct guard **out, unsigned *out_found);

/* The mark of a message of which this is the first piece, or the next. */
uint64_t guard_begin(const struct guard *g, struct str first);
uint64_t guard_add(uint64_t mark, struct str piece);

/* Has it crashed us often enough. */
bool guard_refuses(const struct guard *g, uint64_t mark);

/* Around each step; the slot to leave, or a value that guard_leave knows to
 * mean none. */
unsigned guard_enter(struct guard *g, uint64_t mark);
void guard_leave(struct guard *g, unsigned slot);

#endif
