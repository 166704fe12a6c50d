#include "flow/token.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/codec.h"
#include "keys/digest.h"

#define MAX_VALUE 256

/* Written under another name first: a half-written secret never counts. */
static enum res
make_secret(const char *path, uint8_t out[TOKEN_SECRET_LEN])
{
	char temp[4096];
	if (digest_random(out, TOKEN_SECRET_LEN) != RES_OK)
		return RES_IO;
	snprintf(temp, sizeof temp, "%s.new", path);
	int fd = open(temp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0)
		return RES_IO;
	bool good = write(fd, out, TOKEN_SECRET_LEN) == TOKEN_SECRET_LEN &&
	    fsync(fd) == 0;
	close(fd);
	if (good && rename(temp, path) == 0)
		return RES_OK;
	int saved = errno;
	(void)unlink(temp);
	errno = saved;
	return RES_IO;
}

enum res
token_secret(const char *dir, uint8_t out[TOKEN_SECRET_LEN])
{
	char path[4096];
	if (snprintf(path, sizeof path, "%s/token.key", dir) >=
	    (int)sizeof path)
		return RES_LIMIT;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? make_secret(path, out) : RES_IO;
	ssize_t n = read(fd, out, TOKEN_SECRET_LEN);
	close(fd);
	return n == TOKEN_SECRET_LEN ? RES_OK : make_secret(path, out);
}

static enum res
mac_of(struct arena *a, const uint8_t secret[TOKEN_SECRET_LEN],
    struct str text, struct str *out)
{
	uint8_t mac[DIGEST_LEN];
	struct buf b64;
	enum res r =
	    digest_hmac(str_of(secret, TOKEN_SECRET_LEN), text, mac);
	if (r != RES_OK)
		return r;
	buf_init(&b64, 64);
	base64_encode(&b64, mac, sizeof mac);
	*out = arena_dup(a, buf_str(&b64));
	buf_done(&b64);
	return out->ptr != NULL ? RES_OK : RES_NOMEM;
}

struct str
token_make(struct arena *a, const uint8_t secret[TOKEN_SECRET_LEN],
    struct str id, int64_t now_s)
{
	struct str mac;
	struct str text =
	    arena_printf(a, "1 %.*s %lld", STR_ARG(id), (long long)now_s);
	if (text.ptr == NULL || mac_of(a, secret, text, &mac) != RES_OK)
		return STR_EMPTY;
	return arena_printf(a, " %.*s %.*s", STR_ARG(text), STR_ARG(mac));
}

enum res
token_check(struct arena *a, const uint8_t secret[TOKEN_SECRET_LEN],
    struct str value, int64_t now_s, struct str *out_id)
{
	struct str rest, version, id, seconds, mac;
	uint64_t made;
	value = str_trim(value);
	size_t end = str_rchr(value, ' ');
	if (value.len > MAX_VALUE || end == SIZE_MAX)
		return RES_DENIED;
	struct str text = str_sub(value, 0, end), given = str_skip(value, end + 1);
	if (mac_of(a, secret, text, &mac) != RES_OK || mac.len != given.len ||
	    !digest_equal(mac.ptr, given.ptr, mac.len))
		return RES_DENIED;
	rest = text;
	if (!str_split(&rest, ' ', &version) || !str_eq(version, STR("1")) ||
	    !str_split(&rest, ' ', &id) || !str_split(&rest, ' ', &seconds) ||
	    str_to_u64(seconds, INT64_MAX, &made) != RES_OK)
		return RES_DENIED;
	if ((int64_t)made > now_s + 60 ||
	    now_s - (int64_t)made > TOKEN_MAX_AGE_S)
		return RES_DENIED;
	*out_id = id;
	return RES_OK;
}
