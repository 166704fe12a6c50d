#include "archive/keeping/backup_state.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "archive/format/segment.h"
#include "base/buf.h"
#include "base/codec.h"

#define STATE_MAX 8192

static const char state_head[] = "hanaper-backup 1";

enum res
backup_state_write(const struct archive_io *io, const char *dir,
    const struct backup_state *s)
{
	struct buf t;
	buf_init(&t, STATE_MAX);
	buf_addf(&t,
	    "%s\nbytes %" PRIu64 "\nframes %" PRIu64 "\nlast %" PRIu64
	    "\nholes %d\n",
	    state_head, s->bytes, s->frames, s->last, s->holes);
	/* full subtrees of the tree, so that it can grow */
	for (unsigned i = 0; i < 64; i++)
		if (s->tree.count >> i & 1) {
			buf_addf(&t, "peak%u ", i);
			hex_encode(&t, s->tree.peaks[i], LEAF_HASH_BYTES);
			buf_add_char(&t, '\n');
		}
	buf_addf(&t, "leaves %" PRIu64 "\nend\n", s->tree.count);
	enum res r = t.error;
	if (r == RES_OK)
		r = io_put_file(io, dir, BACKUP_STATE, t.ptr, t.len);
	buf_done(&t);
	return r;
}

static bool
state_peak(struct str index, struct str hex, struct merkle *tree,
    uint64_t *peaks)
{
	uint64_t i;
	struct buf hash;
	if (str_to_u64(index, 63, &i) != RES_OK)
		return false;
	buf_init(&hash, LEAF_HASH_BYTES);
	bool good = hex_decode(hex, &hash) == RES_OK &&
	    hash.len == LEAF_HASH_BYTES;
	if (good)
		memcpy(tree->peaks[i], hash.ptr, LEAF_HASH_BYTES);
	*peaks |= (uint64_t)1 << i;
	buf_done(&hash);
	return good;
}

static bool
state_line(struct str line, struct backup_state *s, uint64_t *peaks)
{
	struct str name;
	uint64_t n;
	if (!str_split(&line, ' ', &name))
		return false;
	if (str_starts(name, STR("peak")))
		return state_peak(str_skip(name, 4), line, &s->tree, peaks);
	if (str_to_u64(line, INT64_MAX, &n) != RES_OK)
		return false;
	if (str_eq(name, STR("bytes")))
		s->bytes = n;
	else if (str_eq(name, STR("frames")))
		s->frames = n;
	else if (str_eq(name, STR("last")))
		s->last = n;
	else if (str_eq(name, STR("holes")))
		s->holes = n != 0;
	else if (str_eq(name, STR("leaves")))
		s->tree.count = n;
	return true; /* a later version may say more */
}

enum res
backup_state_parse(struct str text, struct backup_state *out)
{
	struct backup_state s = { .bytes = 0 };
	struct str rest = text, line;
	uint64_t peaks = 0;
	if (!str_ends(text, STR("\nend\n")) ||
	    !str_split(&rest, '\n', &line) ||
	    !str_eq(line, str_c(state_head)))
		return RES_CORRUPT;
	while (str_split(&rest, '\n', &line) && !str_eq(line, STR("end")))
		if (!state_line(line, &s, &peaks))
			return RES_CORRUPT;
	/* nothing behind the end, and numbers that fit each other */
	if (rest.len > 0 || s.bytes < SHARD_HEADER_BYTES ||
	    s.last >= s.bytes || peaks != s.tree.count ||
	    (!s.holes && s.tree.count != s.frames))
		return RES_CORRUPT;
	*out = s;
	return RES_OK;
}

enum res
backup_state_read(const char *dir, struct backup_state *out)
{
	char path[PATH_MAX], text[STATE_MAX];
	enum res r = io_path(path, "%s/" BACKUP_STATE, dir);
	if (r != RES_OK)
		return r;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return io_error(errno);
	size_t len;
	r = io_read_some(&archive_io_system, fd, text, sizeof text, 0, &len);
	close(fd);
	if (r != RES_OK)
		return r;
	return backup_state_parse(str_of(text, len), out);
}
