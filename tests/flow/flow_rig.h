/* What flow's tests share: an environment over a zone in memory, and one call
 * that sends a message text through a session. */
#ifndef TESTS_FLOW_RIG_H
#define TESTS_FLOW_RIG_H

#include "dns/zone.h"
#include "flow/env.h"
#include "flow/message.h"
#include "flow/published.h"
#include "keys/keyring.h"
#include "hn_test.h"

struct rig {
	struct flow_env env;
	struct flow_counters counters;
	struct session *session;
	struct message *message;
	const struct decision *decision;
};

struct mail {
	const char *ip, *helo, *from, *auth, *rcpt, *daemon;
	const char *rcpt2; /* NULL: only one */
	const char *text;  /* CRLF */
	size_t text_len;   /* 0: strlen */
	size_t chunk;      /* body bytes a push; 0: all */
};

#define RIG_CLOCK 1700000000 /* seconds */

/* `config` and `zone` are texts; NULL: empty. */
void rig_open(struct rig *r, const char *config, const char *zone);
/* Give it a fresh Ed25519 or RSA key; returns the TXT data of its record. */
char *rig_add_key(struct rig *r, enum key_type type, const char *domain,
    const char *selector);
/* Replace the configuration; ends the last message, too. */
void rig_config(struct rig *r, const char *config);
/* Replace the zone; ends the last message, too. */
void rig_zone(struct rig *r, const char *zone);
/* Send; r->decision lives until the next send or rig_close. */
void rig_send(struct rig *r, const struct mail *m);
void rig_close(struct rig *r);

/* The value of the n-th inserted field of this name, or NULL. */
const char *rig_inserted(const struct rig *r, const char *name, unsigned n);
/* The message with the decision's edits applied, as the MTA would; malloc'd. */
char *rig_edited(const struct rig *r, const char *text);

#endif
