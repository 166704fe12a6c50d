/* What flow's files share about one session and one message. Private to the
 * floor; the stages are in message.h.
 *
 *   message.c   stages, and the order of work at end of message
 *   direction.c who is ours
 *   verify.c    inbound: which verdicts, begun early, finished late
 *   reinject.c  mail that comes back with our token
 *   relay.c     whose mail a trusted relay brings
 *   sign.c      outbound: which keys, whether they are published, the fields
 *   seal.c      ARC sets for mail that leaves again
 *   results.c   the Authentication-Results field of the verdicts
 *   judge.c     from verdicts to policy's questions
 *   edits.c     the list of edits, its cap, forged fields, the header after
 *   keep_rule.c is it archived, and in which family
 *   keep.c      the archive's record of the message
 *   trace.c     everything the decision rested on, as one record
 *   remember.c  the decision store's entry
 *   aggregate_row.c  what reports to the author's domain count
 *   report.c    the one log line */
#ifndef FLOW_STATE_H
#define FLOW_STATE_H

#include "archive/store/store.h"
#include "auth/bodyhash.h"
#include "dns/session.h"
#include "flow/message.h"
#include "flow/policy.h"
#include "mail/address.h"
#include "mail/header.h"

struct session {
	const struct flow_env *env;
	struct config *config;     /* our reference: rules of this moment */
	struct arena *arena;       /* facts */
	struct session_facts facts;
};

enum stage {
	STAGE_ENVELOPE,
	STAGE_HEADER,
	STAGE_BODY,
	STAGE_DONE,
};

/* An edit list under construction: deletes and changes come first, then
 * inserts, each in the order added. */
struct edit_list {
	struct flow_edit *items;
	size_t count, cap;
	bool over; /* more than FLOW_MAX_EDITS: nothing is sent */
	bool nomem;
};

/* Why a message is refused whatever the verdicts say; the first one stays. */
struct refusal {
	enum reply_kind reply; /* REPLY_ACCEPT: none */
	const char *code, *enhanced, *text;
	const char *word; /* for log and counters: "limit", "internal", … */
};

enum direction { DIRECTION_IN, DIRECTION_OUT };

/* Chosen key and what its field is made with. */
struct signing {
	const struct signing_key *key;
	struct str identity; /* i= of the sign_table rule */
	enum canon header_canon, body_canon;
	size_t body_index;   /* of its body hash */
};
#define FLOW_MAX_SIGNATURES 8

/* What the archive does with it, and by which setting. */
struct keep_choice {
	bool kept;
	struct str family, why;
};

struct message {
	struct session *session;
	const struct config *config;
	struct arena *arena;
	enum stage stage;
	enum direction direction;
	const char *direction_why; /* "authenticated", "trusted network", … */
	bool trusted;              /* the client is, whatever mode says */
	bool seen;                 /* judged before (reinject.c) */
	struct str first_id;       /* of the decision it was judged by */
	enum auth_result recalled_arc; /* seen: the chain at arrival */
	bool recalled_arc_temporary;
	int64_t begin_mono_us, time_us;
	struct refusal refusal;

	/* envelope */
	struct str mail_from, sender_local, sender_domain, auth, auth_type, tls;
	struct str queue_id, id;
	const struct str *args;
	size_t arg_count;
	struct str *rcpts;
	size_t rcpt_count, rcpt_cap;

	struct header *header;
	struct from_domains from;
	struct dns_session *dns;
	struct bodyhash_set *hashes;
	uint64_t bytes, header_bytes; /* header with its empty line, and all */
	struct sink *body;         /* from end of header on */

	/* inbound */
	struct dkim_verify *dkim_verify;
	struct arc_verify *arc_verify;
	/* outbound */
	struct manifest *manifest; /* holds the keys' memory */
	struct signing signings[FLOW_MAX_SIGNATURES];
	size_t signing_count, signed_count;
	size_t seal_body_index;
	bool long_body_line;       /* a later hop would break it */
	const char *unsigned_why;  /* NULL: to be signed */
	const struct signing_key *seal_key; /* NULL: not to be sealed */
	bool sealed;
	struct ip client;          /* whose mail it is (relay.c) */
	struct str helo;           /* its name */

	struct keep_choice keep;
	struct spool *spool;       /* NULL: not archived */
	struct edit_list edits;
	struct str payload;        /* results without our id: archive, AAR */
	struct policy_decision policy;
	struct decision decision;
};

#define FLOW_MAX_RCPTS 100000

/* Keep the first refusal; later ones are ignored. */
void message_refuse(struct message *m, enum reply_kind reply, const char *code,
    const char *enhanced, const char *word, const char *text);
/* Out of memory or a fault of ours: on_internal_error decides. */
void message_internal(struct message *m, const char *what);

/* "accept", "quarantine", "hold", "tempfail" or "reject". */
const char *message_disposition(const struct message *m);

/* remember.c: the decision store's entry; never waits. */
void remember(struct message *m);

/* direction.c */
void direction_decide(struct message *m);
bool direction_is_relay(const struct message *m, const struct ip *client);

/* relay.c: sets the client whose mail this is and the name it gave; IP_NONE
 * and nothing when a relay's Received fields do not tell. */
void relay_find(struct message *m);

/* verify.c */
void verify_begin(struct message *m);
void verify_finish(struct message *m);
/* Only the chain's structure, of mail that was judged before. */
void verify_chain_begin(struct message *m);
void verify_chain_finish(struct message *m);

/* reinject.c: sets `seen` from the token; adds one. */
void reinject_recognize(struct message *m);
void reinject_mark(struct message *m);

/* seal.c */
void seal_begin(struct message *m);
void seal_finish(struct message *m);

/* judge.c: fills policy and reply from the verdicts. */
void judge_message(struct message *m);
void judge_match_facts(struct message *m, struct match_facts *out);

/* sign.c */
void sign_begin(struct message *m);
void sign_finish(struct message *m);
/* A signer that is away is a tempfail, the rest a fault of ours. */
void sign_failed(struct message *m, enum res r, const char *what);

/* results.c: sets decision.results to the field's value; ptr NULL without
 * memory. *out_payload is the part behind the id. */
struct str results_make(struct message *m, struct str *out_payload);
struct str results_authserv_id(const struct message *m);

/* edits.c */
void edits_add(struct message *m, enum flow_edit_kind kind, unsigned index,
    const char *name, struct str value);
/* Delete the fields that pretend to be ours, highest occurrence first. */
void edits_strip_forged(struct message *m);
/* Whether an edit so far deletes or changes it. */
bool edits_touch(const struct message *m, const struct field *f);
/* The header as the MTA will have it after the deletes and changes so far;
 * the message's own when there are none. NULL without memory. */
struct header *edits_header_after(struct message *m);

/* The optional Received-SPF field (RFC 7208 §9.1); ptr NULL when there is
 * nothing to say. */
struct str results_received_spf(struct message *m);

/* keep_rule.c: may this message be kept, as far as can be told at end of
 * header? And is it, when everything is known: fills m->keep. */
bool keep_wanted(const struct message *m);
void keep_choose(struct message *m);

/* keep.c: when it is kept */
void keep_begin(struct message *m);
void keep_finish(struct message *m); /* blocks until durable */

/* report.c */
void report_line(struct message *m);

#endif
