#include "dns/psl.h"

#include <libpsl.h>
#include <pthread.h>

#include "base/hash.h"
#include "dns/name.h"

/* Debian's list (package publicsuffix), or the one libpsl was built with;
 * read once, never changed, used by all threads. */
static psl_ctx_t *list;
static pthread_once_t list_once = PTHREAD_ONCE_INIT;

static void
list_load(void)
{
	list = psl_latest(NULL);
}

/* libpsl wants a C string; a name has at most 253 bytes. */
static bool
as_cstr(struct str s, char out[DNS_MAX_NAME + 1])
{
	if (!dns_name_ok(s))
		return false;
	memcpy(out, s.ptr, s.len);
	out[s.len] = '\0';
	return true;
}

bool
psl_is_public_suffix_name(struct str domain)
{
	char name[DNS_MAX_NAME + 1];
	pthread_once(&list_once, list_load);
	return list != NULL && as_cstr(domain, name) &&
	    psl_is_public_suffix(list, name) != 0;
}

/* Asked for each signature, and mail comes from the same domains again and
 * again: each thread remembers some answers by the keyed hash of the name. */
#define REMEMBERED 64
static _Thread_local struct {
	uint64_t hash;
	bool known, suffix;
} answers[REMEMBERED];

bool
psl_is_registry_suffix(struct str domain)
{
	char name[DNS_MAX_NAME + 1];
	uint64_t hash = hash_bytes(domain);
	size_t i = hash % REMEMBERED;
	pthread_once(&list_once, list_load);
	if (answers[i].known && answers[i].hash == hash)
		return answers[i].suffix;
	answers[i].hash = hash;
	answers[i].known = true;
	answers[i].suffix = list != NULL && as_cstr(domain, name) &&
	    psl_is_public_suffix2(list, name, PSL_TYPE_ICANN) != 0;
	return answers[i].suffix;
}

struct str
psl_organizational(struct str domain)
{
	char name[DNS_MAX_NAME + 1];
	pthread_once(&list_once, list_load);
	if (list == NULL || !as_cstr(domain, name))
		return STR_EMPTY;
	const char *org = psl_registrable_domain(list, name);
	if (org == NULL)
		return STR_EMPTY;
	return str_skip(domain, (size_t)(org - name));
}
