/* Evaluates many SPF cases in one run, for spf_random.py. Standard input:
 *
 *   zone BYTES                      then so many bytes of zone file text
 *   check IP TAB HELO TAB FROM      "-" is empty
 *
 * For each check one line: result TAB mechanism TAB explanation TAB reason. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "auth/spf.h"
#include "dns/zone.h"

#define MAX_LINE 4096

static struct resolver *
read_zone(const char *size)
{
	size_t n = (size_t)strtoul(size, NULL, 10);
	char *text = malloc(n + 1);
	struct err err = { "" };
	struct resolver *r = NULL;
	if (text == NULL || fread(text, 1, n, stdin) != n)
		exit(66);
	if (zone_from_text(str_of(text, n), "zone", false, &err, &r) !=
	    RES_OK) {
		fprintf(stderr, "%s\n", err.text);
		exit(65);
	}
	free(text);
	return r;
}

static struct str
word(struct str *rest)
{
	struct str w = STR_EMPTY;
	if (!str_split(rest, '\t', &w) || w.len == 0)
		exit(65);
	return str_eq(w, STR("-")) ? STR_EMPTY : w;
}

static void
check(struct resolver *r, struct str line)
{
	struct dns_limits limits = { .lookup_us = 5000000,
		.budget_us = 20000000 };
	struct arena *a = arena_new(0);
	struct spf_request rq = { .receiver = STR("receiver.example"),
		.now_s = 1000000000,
		.void_limit = 2 };
	struct spf_result s;
	if (ip_parse(word(&line), &rq.client) != RES_OK)
		exit(65);
	rq.helo = word(&line);
	rq.mail_from = word(&line);
	struct dns_session *dns = dns_session_new(a, r, &limits);
	if (dns == NULL || spf_check(a, dns, &rq, SPF_MAILFROM, &s) != RES_OK)
		exit(70);
	printf("%s\t%.*s\t%.*s\t%s\n", auth_result_word(s.result),
	    STR_ARG(s.mechanism), STR_ARG(s.explanation),
	    s.reason != NULL ? s.reason : "");
	arena_free(&a);
}

int
main(void)
{
	char line[MAX_LINE];
	struct resolver *r = NULL;
	while (fgets(line, sizeof(line), stdin) != NULL) {
		line[strcspn(line, "\n")] = '\0';
		if (strncmp(line, "zone ", 5) == 0) {
			resolver_free(&r);
			r = read_zone(line + 5);
		} else if (strncmp(line, "check ", 6) == 0 && r != NULL) {
			check(r, str_c(line + 6));
		} else {
			return 64;
		}
	}
	resolver_free(&r);
	return 0;
}
