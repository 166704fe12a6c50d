/* libopendkim doing the same work, its keys from memory. */
#include <dkim.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#include "engine.h"

#define CHUNK 65535

static DKIM_LIB *lib;
static const char *record, *pem;

static DKIM_CBSTAT
key_lookup(DKIM *dkim, DKIM_SIGINFO *sig, unsigned char *out, size_t len)
{
	(void)dkim;
	(void)sig;
	snprintf((char *)out, len, "%s", record);
	return DKIM_CBSTAT_CONTINUE;
}

bool
peer_open(const struct engine *e)
{
	lib = dkim_init(NULL, NULL);
	record = e->record;
	pem = e->pem;
	if (lib == NULL)
		return false;
	dkim_set_key_lookup(lib, key_lookup);
	return true;
}

void
peer_close(void)
{
	if (lib != NULL)
		dkim_close(lib);
}

static void
feed(DKIM *d, const struct bench_mail *m)
{
	for (size_t i = 0; i < m->field_count; i++) {
		char field[4096];
		int n = snprintf(field, sizeof field, "%s:%s",
		    m->fields[i].name.ptr, m->fields[i].value.ptr);
		dkim_header(d, (unsigned char *)field, (size_t)n);
	}
	if (dkim_eoh(d) != DKIM_STAT_OK)
		exit(1);
	for (size_t at = 0; at < m->body_len; at += CHUNK)
		dkim_body(d, (unsigned char *)m->body + at,
		    m->body_len - at < CHUNK ? m->body_len - at : CHUNK);
}

void
peer_sign(const struct bench_mail *m)
{
	DKIM_STAT status;
	unsigned char value[4096];
	DKIM *d = dkim_sign(lib, (const unsigned char *)"bench", NULL,
	    (dkim_sigkey_t)(uintptr_t)pem, (const unsigned char *)"s1",
	    (const unsigned char *)"bench.example", DKIM_CANON_RELAXED,
	    DKIM_CANON_RELAXED, DKIM_SIGN_RSASHA256, -1, &status);
	if (d == NULL)
		exit(1);
	feed(d, m);
	if (dkim_eom(d, NULL) != DKIM_STAT_OK ||
	    dkim_getsighdr(d, value, sizeof value, 0) != DKIM_STAT_OK) {
		fputs("bench: libopendkim does not sign\n", stderr);
		exit(1);
	}
	dkim_free(d);
}

void
peer_verify(const struct bench_mail *m)
{
	DKIM_STAT status;
	bool test;
	DKIM *d = dkim_verify(lib, (const unsigned char *)"bench", NULL, &status);
	if (d == NULL)
		exit(1);
	feed(d, m);
	if (dkim_eom(d, &test) != DKIM_STAT_OK) {
		fputs("bench: libopendkim does not verify\n", stderr);
		exit(1);
	}
	dkim_free(d);
}
