#include "keys/keystate.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"

#define NEW_FILE ".state.new"

static const char *const words[] = {
	[KEY_STATE_ACTIVE] = "active",
	[KEY_STATE_NEXT] = "next",
	[KEY_STATE_RETIRED] = "retired",
};

const char *
key_state_word(enum key_state s)
{
	return words[s];
}

static bool
next_word(struct str *rest, struct str *out)
{
	*rest = str_trim(*rest);
	size_t end = 0;
	while (end < rest->len && !ascii_is_wsp(rest->ptr[end]))
		end++;
	*out = str_sub(*rest, 0, end);
	*rest = str_skip(*rest, end);
	return end > 0;
}

static bool
parse_state(struct str word, enum key_state *out)
{
	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		if (str_eq(word, str_c(words[i]))) {
			*out = (enum key_state)i;
			return true;
		}
	return false;
}

static bool
parse_line(struct str text, struct keystate_line *out)
{
	struct str state, since, seen, more;
	uint64_t seconds;
	if (!next_word(&text, &out->selector) || !next_word(&text, &state) ||
	    !parse_state(state, &out->state) || !next_word(&text, &since) ||
	    str_to_u64(since, INT64_MAX, &seconds) != RES_OK)
		return false;
	out->since_s = (int64_t)seconds;
	out->seen_s = 0;
	if (!next_word(&text, &seen))
		return true;
	if (str_to_u64(seen, INT64_MAX, &seconds) != RES_OK)
		return false;
	out->seen_s = (int64_t)seconds;
	return !next_word(&text, &more);
}

enum res
keystate_parse(struct arena *a, struct str text, const char *label,
    struct err *err, struct keystate *out)
{
	struct keystate s = { 0, arena_array(a, KEYSTATE_MAX_LINES,
				     sizeof *s.lines) };
	struct str copy = arena_dup(a, text), line;
	if (s.lines == NULL || copy.ptr == NULL)
		return RES_NOMEM;
	for (unsigned n = 1; str_split(&copy, '\n', &line); n++) {
		struct keystate_line l;
		line = str_trim(line);
		if (line.len == 0 || line.ptr[0] == '#')
			continue;
		if (s.count == KEYSTATE_MAX_LINES) {
			err_set(err, "%s:%u: more than %d selectors", label, n,
			    KEYSTATE_MAX_LINES);
			return RES_LIMIT;
		}
		if (!parse_line(line, &l)) {
			err_set(err, "%s:%u: not SELECTOR active|next|retired "
				     "SECONDS [SECONDS]", label, n);
			return RES_SYNTAX;
		}
		if (keystate_find(&s, l.selector) != NULL) {
			err_set(err, "%s:%u: selector %.*s is named twice",
			    label, n, STR_ARG(l.selector));
			return RES_SYNTAX;
		}
		s.lines[s.count++] = l;
	}
	*out = s;
	return RES_OK;
}

enum res
keystate_read(struct arena *a, int folder_fd, const char *folder,
    struct err *err, struct keystate *out)
{
	struct stat st;
	struct buf text;
	char label[512];
	snprintf(label, sizeof label, "%s/" KEYSTATE_FILE, folder);
	int fd = openat(folder_fd, KEYSTATE_FILE,
	    O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0 && errno == ENOENT) {
		*out = (struct keystate){ 0 };
		return RES_OK;
	}
	if (fd < 0 || fstat(fd, &st) != 0) {
		err_set(err, "%s: %m", label);
		if (fd >= 0)
			close(fd);
		return RES_IO;
	}
	if (!S_ISREG(st.st_mode) || (st.st_mode & 022) != 0) {
		err_set(err, "%s: mode %04o lets others than its owner write "
			     "it; run: chmod %04o %s", label,
		    (unsigned)(st.st_mode & 07777),
		    (unsigned)(st.st_mode & 0755), label);
		close(fd);
		return RES_DENIED;
	}
	buf_init(&text, KEYSTATE_MAX_FILE);
	enum res r = buf_read(&text, fd);
	close(fd);
	if (r == RES_OK)
		r = keystate_parse(a, buf_str(&text), label, err, out);
	else
		err_set(err, "%s: cannot read: %s", label, res_text(r));
	buf_done(&text);
	return r;
}

static enum res
write_all(int fd, struct str s)
{
	while (s.len > 0) {
		ssize_t n = write(fd, s.ptr, s.len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return RES_IO;
		s = str_skip(s, (size_t)n);
	}
	return RES_OK;
}

/* A new file beside the old one, complete on disk before it gets the name. */
static enum res
replace(int folder_fd, struct str text)
{
	struct stat st;
	(void)unlinkat(folder_fd, NEW_FILE, 0);
	int fd = openat(folder_fd, NEW_FILE,
	    O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0640);
	if (fd < 0)
		return RES_IO;
	enum res r = write_all(fd, text);
	/* as root: the daemon's user must be able to read it */
	if (r == RES_OK && geteuid() == 0 &&
	    (fstat(folder_fd, &st) != 0 ||
		fchown(fd, st.st_uid, st.st_gid) != 0))
		r = RES_IO;
	if (r == RES_OK && fsync(fd) != 0)
		r = RES_IO;
	close(fd);
	if (r == RES_OK &&
	    renameat(folder_fd, NEW_FILE, folder_fd, KEYSTATE_FILE) != 0)
		r = RES_IO;
	if (r == RES_OK && fsync(folder_fd) != 0)
		r = RES_IO;
	if (r != RES_OK) {
		int saved = errno;
		(void)unlinkat(folder_fd, NEW_FILE, 0);
		errno = saved;
	}
	return r;
}

enum res
keystate_write(int folder_fd, const char *folder, const struct keystate *s,
    struct err *err)
{
	struct buf text;
	buf_init(&text, KEYSTATE_MAX_FILE);
	buf_add_c(&text, "# written by hanaper key; SELECTOR STATE SINCE "
			 "[SEEN]\n");
	for (size_t i = 0; i < s->count; i++) {
		const struct keystate_line *l = &s->lines[i];
		buf_addf(&text, "%.*s %s %lld", STR_ARG(l->selector),
		    key_state_word(l->state), (long long)l->since_s);
		if (l->seen_s != 0)
			buf_addf(&text, " %lld", (long long)l->seen_s);
		buf_add_char(&text, '\n');
	}
	enum res r =
	    s->count <= KEYSTATE_MAX_LINES ? text.error : RES_LIMIT;
	if (r == RES_OK)
		r = replace(folder_fd, buf_str(&text));
	if (r != RES_OK)
		err_set(err, "%s/" KEYSTATE_FILE ": cannot write: %s", folder,
		    r == RES_IO ? strerror(errno) : res_text(r));
	buf_done(&text);
	return r;
}

const struct keystate_line *
keystate_find(const struct keystate *s, struct str selector)
{
	for (size_t i = 0; i < s->count; i++)
		if (str_eq(s->lines[i].selector, selector))
			return &s->lines[i];
	return NULL;
}
