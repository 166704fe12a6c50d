/* What the files of the conformance helper share; helper.c says what each
 * kind takes and prints. */
#ifndef TESTS_CONFORMANCE_HELPER_H
#define TESTS_CONFORMANCE_HELPER_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/str.h"
#include "dns/session.h"

#define MAX_OPTIONS 32
#define MAX_OUTPUT  ((size_t)16 << 20)

struct options {
	size_t count;
	const char *names[MAX_OPTIONS], *values[MAX_OPTIONS];
	int file_count;
	char **files;
	struct arena *arena;
};

/* Say what is wrong and exit. */
_Noreturn void die(int status, const char *what, const char *detail);
/* Exit 70 unless RES_OK; exit 70 when NULL. */
void need(enum res r, const char *what);
void *have(void *p);

/* The value of --name, or NULL; exits 64 when it is needed. */
const char *option(const struct options *o, const char *name);
const char *option_needed(const struct options *o, const char *name);
int64_t option_number(
    const struct options *o, const char *name, int64_t fallback);
/* "A:B:C" to an array; NULL when not given. */
const struct str *option_list(
    const struct options *o, const char *name, size_t *out_count);

/* The one FILE; all of its bytes. */
const char *only_file(const struct options *o);
struct str file_read(struct arena *a, const char *path);
/* A resolver over --zone. */
struct dns_session *session_open(const struct options *o);
/* Print what was built and free it. */
void json_finish(struct buf *b);

/* helper_policy.c */
void run_spf(struct options *o);
void run_dmarc(struct options *o);
void run_dmarc_record(struct options *o);
void run_dmarc_reports(struct options *o);
/* helper_mail.c */
void run_from_domain(struct options *o);
void run_authres(struct options *o);
void run_psl(struct options *o);
/* helper_mime.c */
void run_mime(struct options *o);
void run_charset(struct options *o);
void run_html(struct options *o);
void run_mbox(struct options *o);

#endif
