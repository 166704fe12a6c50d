#include "archive/keeping/keeping.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "archive/store/shard.h"
#include "base/clock.h"

#define STEP_NS 2000000L

enum res
keeping_begin(struct store *s, struct err *err, int *out)
{
	char path[PATH_MAX];
	enum res r = io_path(path, "%s/" KEEPING_FILE, store_path(s));
	if (r != RES_OK)
		return r;
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, ARCHIVE_FILE_MODE);
	if (fd < 0) {
		r = io_error(errno);
		err_set(err, "%s: %s", path, res_text(r));
		return r;
	}
	if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
		close(fd);
		err_set(err, "%s: somebody else erases, expires or changes "
			     "holds just now; try again", store_path(s));
		return RES_AGAIN;
	}
	*out = fd;
	return RES_OK;
}

enum res
keeping_take(struct store *s, const struct shard_entry *e, struct err *err,
    int *out_lock)
{
	const struct timespec step = { 0, STEP_NS };
	int64_t until_us = clock_mono_us() + (store_is_on_demand(s) ?
		KEEPING_WAIT_SHORT_US : KEEPING_WAIT_US);
	enum res r = store_leave(s, e->family, e->header.number);
	if (r != RES_OK) {
		err_set(err, "%s: cannot be finished: %s", e->dir, res_text(r));
		return r;
	}
	for (;;) {
		r = shard_lock(store_env(s)->io, e->dir, out_lock);
		if (r != RES_DENIED)
			break;
		if (clock_mono_us() > until_us) {
			err_set(err, "%s: somebody else has it; is hanaperd "
				     "running?", e->dir);
			return RES_AGAIN;
		}
		nanosleep(&step, NULL);
	}
	if (r != RES_OK)
		err_set(err, "%s/LOCK: %s", e->dir, res_text(r));
	return r;
}

enum res
keeping_find(struct store *s, uint32_t number, struct arena *a,
    struct err *err, struct shard_entry *out)
{
	struct shard_entry *list = NULL;
	size_t count = 0;
	enum res r = store_dir_shards(
	    store_path(s), NULL, a, err, &list, &count);
	for (size_t i = 0; r == RES_OK && i < count; i++)
		if (list[i].status == RES_OK &&
		    list[i].header.number == number) {
			*out = list[i];
			return RES_OK;
		}
	if (r == RES_OK) {
		err_set(err, "no shard %u in %s", (unsigned)number,
		    store_path(s));
		r = RES_NOTFOUND;
	}
	return r;
}
