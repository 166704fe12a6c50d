#include "flow/published.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "auth/key_record.h"
#include "base/codec.h"
#include "keys/digest.h"
#include "mail/taglist.h"

#define MAX_KEYS  65536 /* remembered; beyond it only the DNS answers */
#define MAX_FILE  ((size_t)4096)
#define FILE_NAME "%.*s._domainkey.%.*s"

struct seen {
	uint8_t key[DIGEST_LEN]; /* of name and public key */
	bool fitted;             /* once, in this process or before it */
	enum published_state last;
};

struct published {
	pthread_mutex_t lock;
	int dir_fd; /* -1: memory only */
	struct seen *items;
	size_t count, cap;
};

const char *
published_state_text(enum published_state s)
{
	switch (s) {
	case PUBLISHED_YES:
		return "published";
	case PUBLISHED_BEFORE:
		return "seen before";
	case PUBLISHED_UNKNOWN:
		return "key record cannot be looked up";
	case PUBLISHED_ABSENT:
		return "key record is not published";
	case PUBLISHED_DIFFERENT:
		return "published key record is another key";
	}
	return "";
}

struct published *
published_new(const char *dir)
{
	struct published *p = calloc(1, sizeof *p);
	if (p == NULL)
		return NULL;
	pthread_mutex_init(&p->lock, NULL);
	p->dir_fd = -1;
	if (dir != NULL && (mkdir(dir, 0750) == 0 || errno == EEXIST))
		p->dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return p;
}

void
published_free(struct published **pp)
{
	struct published *p = *pp;
	if (p == NULL)
		return;
	if (p->dir_fd >= 0)
		close(p->dir_fd);
	pthread_mutex_destroy(&p->lock);
	free(p->items);
	free(p);
	*pp = NULL;
}

struct str
published_name(struct arena *a, const struct signing_key *key)
{
	return arena_printf(
	    a, FILE_NAME, STR_ARG(key->selector), STR_ARG(key->domain));
}

/* --- what was seen ------------------------------------------------------- */

static bool
file_says(int dir_fd, const char *name, struct str p)
{
	char text[MAX_FILE];
	int fd = dir_fd >= 0 ? openat(dir_fd, name, O_RDONLY | O_CLOEXEC) : -1;
	if (fd < 0)
		return false;
	ssize_t n = read(fd, text, sizeof text);
	close(fd);
	return n > 0 && str_eq(str_trim(str_of(text, (size_t)n)), p);
}

static void
write_file(int dir_fd, struct arena *a, const char *name, struct str p)
{
	struct str temp = arena_printf(a, ".%s.new", name);
	if (dir_fd < 0 || temp.ptr == NULL)
		return;
	int fd = openat(dir_fd, temp.ptr,
	    O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0640);
	if (fd < 0)
		return;
	/* a lost file only means that the DNS is asked first next time */
	bool good = write(fd, p.ptr, p.len) == (ssize_t)p.len;
	close(fd);
	if (!good || renameat(dir_fd, temp.ptr, dir_fd, name) != 0)
		unlinkat(dir_fd, temp.ptr, 0);
}

/* The remembered entry, made when there is none; NULL when full. Under lock. */
static struct seen *
entry(struct published *p, const uint8_t key[DIGEST_LEN])
{
	for (size_t i = 0; i < p->count; i++)
		if (memcmp(p->items[i].key, key, DIGEST_LEN) == 0)
			return &p->items[i];
	if (p->count == p->cap) {
		size_t cap = p->cap != 0 ? 2 * p->cap : 16;
		struct seen *more = cap <= MAX_KEYS ?
		    realloc(p->items, cap * sizeof *more) : NULL;
		if (more == NULL)
			return NULL;
		p->items = more;
		p->cap = cap;
	}
	struct seen *s = &p->items[p->count++];
	*s = (struct seen){ .fitted = false, .last = PUBLISHED_YES };
	memcpy(s->key, key, DIGEST_LEN);
	return s;
}

/* --- what the DNS says --------------------------------------------------- */

static bool
same_key(struct str text, struct str public_der)
{
	struct taglist tags;
	if (taglist_parse(text, true, &tags) != RES_OK)
		return false;
	struct str p = taglist_get(&tags, "p");
	struct buf der;
	buf_init(&der, DNS_MAX_TXT);
	bool same = p.ptr != NULL && p.len != 0 &&
	    base64_decode(p, true, &der) == RES_OK &&
	    str_eq(buf_str(&der), public_der);
	buf_done(&der);
	return same;
}

/* Receivers must be able to use it as well: an Ed25519 key without k= is none,
 * nor is one for other services or hashes. */
static bool
record_fits(struct arena *a, struct str text, const struct signing_key *key,
    struct published_record *out)
{
	struct key_record record;
	if (key_record_parse(a, text, &record) != RES_OK)
		return false;
	out->why = record.reason;
	if (record.state == KEY_RECORD_OK)
		out->why = record.type != key->type ? "k= is another type" :
						      "another key";
	if (!same_key(text, key->public_der) ||
	    record.state != KEY_RECORD_OK || record.type != key->type)
		return false;
	out->why = NULL;
	out->testing = record.testing;
	return true;
}

void
published_ask(struct arena *a, struct dns_session *dns,
    const struct signing_key *key, struct published_record *out)
{
	struct str name = published_name(a, key);
	*out = (struct published_record){ .state = PUBLISHED_UNKNOWN };
	if (name.ptr == NULL)
		return;
	const struct dns_answer *answer = dns_session_get(dns, name, DNS_TXT);
	out->ttl_s = answer->ttl;
	out->count = answer->count;
	if (dns_status_temporary(answer->status)) {
		out->why = answer->detail != NULL ?
		    answer->detail : dns_status_text(answer->status);
		return;
	}
	out->state = answer->status == DNS_OK ? PUBLISHED_DIFFERENT :
						PUBLISHED_ABSENT;
	for (size_t i = 0; i < answer->count; i++)
		if (record_fits(a, answer->records[i].data, key, out)) {
			out->state = PUBLISHED_YES;
			return;
		}
}

enum published_state
published_look(struct published *p, struct arena *a, struct dns_session *dns,
    const struct signing_key *key, bool *out_changed)
{
	struct str name = published_name(a, key);
	uint8_t digest[DIGEST_LEN];
	struct str parts[2] = { name, key->public_der };
	struct buf b64;
	*out_changed = false;
	if (name.ptr == NULL ||
	    digest_sha256_parts(parts, 2, digest) != RES_OK)
		return PUBLISHED_UNKNOWN;
	struct published_record record;
	published_ask(a, dns, key, &record);
	enum published_state state = record.state;
	buf_init(&b64, MAX_FILE);
	base64_encode(&b64, key->public_der.ptr, key->public_der.len);
	pthread_mutex_lock(&p->lock);
	struct seen *s = entry(p, digest);
	if (s != NULL && state == PUBLISHED_YES && !s->fitted) {
		s->fitted = true;
		write_file(p->dir_fd, a, name.ptr, buf_str(&b64));
	}
	if (state == PUBLISHED_UNKNOWN &&
	    ((s != NULL && s->fitted) ||
		file_says(p->dir_fd, name.ptr, buf_str(&b64))))
		state = PUBLISHED_BEFORE;
	if (s != NULL) {
		*out_changed = s->last != state;
		s->last = state;
	}
	pthread_mutex_unlock(&p->lock);
	buf_done(&b64);
	return state;
}
