/* A small name server for tests: one thread, UDP and TCP on 127.0.0.1. What it
 * says is decided by the first label of the name asked for; see authority.c. */
#ifndef TESTS_DNS_AUTHORITY_H
#define TESTS_DNS_AUTHORITY_H

struct authority;

/* With an `anchor` the root zone is signed by a new key ("." DNSKEY, "signed."
 * and "forged." TXT, the last one wrongly); its DNSKEY goes to that file. */
struct authority *authority_new(const char *anchor);
void authority_free(struct authority **a);
/* "127.0.0.1@PORT" */
const char *authority_address(const struct authority *a);
/* Questions seen whose name begins with `label`. */
unsigned authority_seen(struct authority *a, const char *label);

#endif
