#include "milter/guard.h"

#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#define SAMPLE  512 /* bytes looked at, at each end of a piece */
#define NO_SLOT GUARD_SLOTS

/* Only one process at a time has it mapped. */
struct guard {
	uint64_t seed;
	_Atomic uint64_t slots[GUARD_SLOTS]; /* 0: free */
	struct suspect {
		uint64_t mark;
		uint64_t crashes;
	} suspects[GUARD_SUSPECTS];
	uint64_t next; /* suspect to be replaced */
};

enum res
guard_create(int *out_fd)
{
	uint64_t seed;
	int fd = memfd_create("hanaper-marks", MFD_CLOEXEC);
	if (fd < 0)
		return RES_IO;
	if (ftruncate(fd, sizeof(struct guard)) != 0 ||
	    getrandom(&seed, sizeof seed, 0) != (ssize_t)sizeof seed ||
	    pwrite(fd, &seed, sizeof seed, offsetof(struct guard, seed)) !=
		(ssize_t)sizeof seed) {
		close(fd);
		return RES_IO;
	}
	*out_fd = fd;
	return RES_OK;
}

static void
suspect(struct guard *g, uint64_t mark)
{
	for (size_t i = 0; i < GUARD_SUSPECTS; i++)
		if (g->suspects[i].mark == mark) {
			g->suspects[i].crashes++;
			return;
		}
	g->suspects[g->next % GUARD_SUSPECTS] = (struct suspect){ mark, 1 };
	g->next++;
}

enum res
guard_open(int fd, struct guard **out, unsigned *out_found)
{
	struct stat st;
	unsigned found = 0;
	if (fstat(fd, &st) != 0 || st.st_size != (off_t)sizeof(struct guard))
		return RES_INVALID;
	struct guard *g = mmap(NULL, sizeof *g, PROT_READ | PROT_WRITE,
	    MAP_SHARED, fd, 0);
	if (g == MAP_FAILED)
		return RES_NOMEM;
	for (size_t i = 0; i < GUARD_SLOTS; i++) {
		uint64_t mark = atomic_exchange(&g->slots[i], 0);
		if (mark == 0)
			continue;
		suspect(g, mark);
		found++;
	}
	*out = g;
	if (out_found != NULL)
		*out_found = found;
	return RES_OK;
}

/* Multiply, fold, eight bytes at a time. */
static uint64_t
mix(uint64_t h, const char *bytes, size_t len)
{
	while (len > 0) {
		uint64_t word = 0;
		size_t n = len < sizeof word ? len : sizeof word;
		memcpy(&word, bytes, n);
		h = (h ^ word) * 0x9e3779b97f4a7c15u;
		h ^= h >> 29;
		bytes += n;
		len -= n;
	}
	return h;
}

uint64_t
guard_add(uint64_t mark, struct str piece)
{
	uint64_t len = piece.len;
	mark = mix(mark, (const char *)&len, sizeof len);
	if (piece.len <= 2 * SAMPLE)
		mark = mix(mark, piece.ptr, piece.len);
	else {
		mark = mix(mark, piece.ptr, SAMPLE);
		mark = mix(mark, piece.ptr + piece.len - SAMPLE, SAMPLE);
	}
	return mark != 0 ? mark : 1;
}

uint64_t
guard_begin(const struct guard *g, struct str first)
{
	return guard_add(g->seed, first);
}

bool
guard_refuses(const struct guard *g, uint64_t mark)
{
	for (size_t i = 0; i < GUARD_SUSPECTS && i < g->next; i++)
		if (g->suspects[i].mark == mark)
			return g->suspects[i].crashes >= GUARD_CRASHES;
	return false;
}

unsigned
guard_enter(struct guard *g, uint64_t mark)
{
	unsigned at = (unsigned)(mark % GUARD_SLOTS);
	for (unsigned i = 0; i < 64; i++) {
		uint64_t none = 0;
		unsigned slot = (at + i) % GUARD_SLOTS;
		if (atomic_compare_exchange_strong(
			&g->slots[slot], &none, mark))
			return slot;
	}
	return NO_SLOT;
}

void
guard_leave(struct guard *g, unsigned slot)
{
	if (slot < NO_SLOT)
		atomic_store(&g->slots[slot], 0);
}
