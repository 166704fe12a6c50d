/* File operations that go wrong on purpose, and a disk whose power can be
 * cut. Wraps the system's calls on real files and remembers what a sync has
 * not made durable yet: the old contents of pages, sizes, names. fault_cut
 * then leaves the directory as a disk could look after a power failure:
 * every page that was not synced is as before, as after, or torn at a sector;
 * names that were not synced may be undone.
 *
 * A failed sync behaves like Linux: the pages count as clean afterwards, so
 * the next sync "succeeds", but they never get to the disk unless they are
 * written again. */
#ifndef FAULT_IO_H
#define FAULT_IO_H

#include <pthread.h>
#include <stdbool.h>

#include "archive/store/io.h"

enum fault_kind {
	FAULT_NONE,
	FAULT_ERROR,   /* EIO */
	FAULT_SHORT,   /* writes: half of it, no error */
	FAULT_TORN,    /* writes: half of it, then EIO */
	FAULT_NO_SPACE,/* ENOSPC after half of it */
};

struct fault_page;
struct fault_size;
struct fault_name;

struct fault_io {
	struct archive_io io; /* first: handed to the store */
	pthread_mutex_t mutex;
	uint64_t random;
	/* the n-th call (from 1) goes wrong; 0 = none */
	unsigned long writes, fail_write;
	enum fault_kind write_kind;
	unsigned long syncs, fail_sync; /* data and directories */
	unsigned long ops, cut_at;      /* from this call on nothing works */
	bool off_at_failure;            /* ... nor after a failed sync */
	uint64_t fs_type;               /* what statfs tells; 0: local */
	bool full;                      /* no space for fallocate and writes */
	bool read_only;                 /* EROFS for everything that changes */
	struct fault_page *pages;
	struct fault_size *sizes;
	struct fault_name *names;
};

void fault_init(struct fault_io *f, uint64_t seed);
/* Nothing is undone. */
void fault_done(struct fault_io *f);
/* Power fails: every further call fails. */
void fault_off(struct fault_io *f);
/* What the disk holds now. The store must be closed. */
void fault_cut(struct fault_io *f);
uint64_t fault_random(struct fault_io *f, uint64_t below);

#endif
