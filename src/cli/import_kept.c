/* What an import keeps besides messages: bad ones, as files in the folder
 * `aside`, and how far each source was read. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sysexits.h>
#include <unistd.h>

#include "archive/store/io.h"
#include "base/codec.h"
#include "cli/importer.h"
#include "keys/digest.h"

#define PRINT_BYTES 4096 /* at both ends of what was read, to know it again */

/* --- aside ----------------------------------------------------------------- */

/* [offset, end) of `in` to a new file; durable. */
static bool
copy_range(int in, uint64_t offset, uint64_t end, const char *path)
{
	static char bytes[65536];
	bool good = true;
	int out = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (out < 0)
		return false;
	while (good && offset < end) {
		size_t want = end - offset < sizeof bytes ?
		    (size_t)(end - offset) : sizeof bytes;
		ssize_t n = pread(in, bytes, want, (off_t)offset);
		if (n == 0)
			break;
		good = n > 0 && write(out, bytes, (size_t)n) == n;
		offset += n > 0 ? (uint64_t)n : 0;
	}
	good = fsync(out) == 0 && good;
	return close(out) == 0 && good;
}

int
importer_set_aside(struct importer *im, const char *source, int fd,
    uint64_t offset, uint64_t end, const char *why)
{
	char path[PATH_MAX];
	uint8_t hash[DIGEST_LEN];
	const char *name = strrchr(source, '/');
	name = name != NULL ? name + 1 : source;
	int in = fd >= 0 ? fd : open(source, O_RDONLY | O_CLOEXEC);
	/* sources in different folders have the same names */
	enum res r = digest_sha256(source, strlen(source), hash);
	if (r == RES_OK)
		r = io_path(path, "%s/%.100s.%08" PRIx32 ".%" PRIu64,
		    im->aside, name, get_le32(hash), offset);
	errno = 0;
	bool good = r == RES_OK && in >= 0 &&
	    (mkdir(im->aside, 0700) == 0 || errno == EEXIST) &&
	    copy_range(in, offset, end, path);
	if (fd < 0 && in >= 0)
		close(in);
	if (!good)
		return cli_fail(EX_CANTCREAT,
		    "%s: at %" PRIu64 ": %s, and cannot be kept in %s: %s",
		    source, offset, why, im->aside, strerror(errno));
	im->bad++;
	fprintf(stderr, "hanaper: %s: at %" PRIu64 ": %s; kept in %s\n",
	    source, offset, why, path);
	return EX_OK;
}

/* --- how far --------------------------------------------------------------- */

/* The first and the last bytes before `offset`, hashed. */
static enum res
fingerprint(int fd, uint64_t offset, uint8_t out[DIGEST_LEN])
{
	static char bytes[2 * PRINT_BYTES];
	size_t n = offset < PRINT_BYTES ? (size_t)offset : PRINT_BYTES;
	if (pread(fd, bytes, n, 0) != (ssize_t)n ||
	    pread(fd, bytes + n, n, (off_t)(offset - n)) != (ssize_t)n)
		return RES_CORRUPT;
	return digest_sha256(bytes, 2 * n, out);
}

/* The text to find in the file that remembers `source`, and its name. */
static enum res
describe(const char *source, int fd, uint64_t offset, char name[65],
    struct buf *out)
{
	uint8_t hash[DIGEST_LEN], print[DIGEST_LEN];
	struct buf hex;
	enum res r = digest_sha256(source, strlen(source), hash);
	if (r == RES_OK)
		r = fingerprint(fd, offset, print);
	if (r != RES_OK)
		return r;
	buf_init(&hex, 65);
	hex_encode(&hex, hash, DIGEST_LEN);
	if (buf_cstr(&hex) == NULL)
		return RES_NOMEM;
	memcpy(name, hex.ptr, 64);
	name[64] = '\0';
	buf_done(&hex);
	buf_addf(out, "%" PRIu64 "\n", offset);
	hex_encode(out, print, DIGEST_LEN);
	buf_addf(out, "\n%s\n", source);
	return out->error;
}

uint64_t
importer_recall(struct importer *im, const char *source, int fd)
{
	char path[PATH_MAX], name[65], line[32], from[5] = "";
	struct buf now;
	uint64_t offset = 0;
	struct stat st;
	buf_init(&now, PATH_MAX + 256);
	if (describe(source, fd, 0, name, &now) != RES_OK ||
	    io_path(path, "%s/import/%s", im->path, name) != RES_OK) {
		buf_done(&now);
		return 0;
	}
	FILE *f = fopen(path, "rb");
	if (f != NULL && fgets(line, sizeof line, f) != NULL &&
	    str_to_u64(str_trim(str_c(line)), INT64_MAX, &offset) == RES_OK) {
		static char text[PATH_MAX + 256];
		rewind(f);
		size_t n = fread(text, 1, sizeof text, f);
		buf_reset(&now);
		if (fstat(fd, &st) != 0 || (uint64_t)st.st_size < offset ||
		    describe(source, fd, offset, name, &now) != RES_OK ||
		    !str_eq(buf_str(&now), str_of(text, n)))
			offset = 0;
		/* more has come, but it does not begin with a message */
		else if ((uint64_t)st.st_size > offset &&
		    (pread(fd, from, sizeof from, (off_t)offset) != 5 ||
			memcmp(from, "From ", 5) != 0))
			offset = 0;
	}
	if (f != NULL)
		fclose(f);
	buf_done(&now);
	return offset;
}

int
importer_remember(
    struct importer *im, const char *source, int fd, uint64_t offset)
{
	char dir[PATH_MAX], name[65];
	struct buf text;
	buf_init(&text, PATH_MAX + 256);
	enum res r = describe(source, fd, offset, name, &text);
	if (r == RES_OK)
		r = io_path(dir, "%s/import", im->path);
	if (r == RES_OK)
		r = io_put_file(
		    &archive_io_system, dir, name, text.ptr, text.len);
	buf_done(&text);
	return r == RES_OK ? EX_OK : importer_fail(source, NULL, r);
}
