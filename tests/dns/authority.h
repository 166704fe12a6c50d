/* A small name server for tests: one thread, UDP and TCP on 127.0.0.1. What it
 * says is decided by the first label of the name asked for; see authority.c. */
#ifndef TESTS_DNS_AUTHORITY_H
#define TESTS_DNS_AUTHORITY_H

struct authority;

struct authority *authority_new(void);
void authority_free(struct authority **a);
/* "127.0.0.1@PORT" */
const char *authority_address(const struct authority *a);
/* Questions seen whose name begins with `label`. */
unsigned authority_seen(struct authority *a, const char *label);

#endif
