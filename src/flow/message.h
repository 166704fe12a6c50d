/* One session and its messages, without libmilter (design §3). Drivers: the
 * milter, `hanaper verify|explain`, tests. Stages may be entered only in
 * order; a call out of order is RES_INVALID and ends in a tempfail.
 *
 *   session_new → (message_begin → rcpt* → header* → end_of_header → body* →
 *   finish | abort)* → session_free
 *
 * A session is used by one thread at a time (not always the same). Errors
 * before the end of message are kept and answered there. */
#ifndef FLOW_MESSAGE_H
#define FLOW_MESSAGE_H

#include "auth/arc_verify.h"
#include "auth/dkim_verify.h"
#include "auth/dmarc.h"
#include "auth/iprev.h"
#include "auth/spf.h"
#include "flow/env.h"

struct session;
struct message;

/* The client, as the MTA tells. Texts may be empty. Copied. */
struct session_facts {
	struct ip client;        /* IP_NONE: local or unknown */
	struct str client_name;  /* verified name or "" */
	struct str client_ptr;   /* unverified PTR name */
	struct str helo;
	struct str daemon_name;  /* {daemon_name} */
	struct str hostname;     /* {j} */
	bool leading_space;      /* SMFIP_HDR_LEADSPC was granted */
	/* What the MTA does not let us do with a message. */
	bool no_insert, no_change, no_hold;
};

/* Takes references of config; NULL without memory. */
struct session *session_new(const struct flow_env *env);
void session_free(struct session **s);
void session_set_facts(struct session *s, const struct session_facts *f);
/* HELO may come again. */
void session_set_helo(struct session *s, struct str helo);

struct envelope {
	struct str mail_from;    /* as given, with or without <> */
	const struct str *args;  /* ESMTP parameters */
	size_t arg_count;
	struct str auth;         /* {auth_authen}: login name; empty: none */
	struct str auth_type;
	struct str tls;          /* "TLSv1.3 cipher bits" or empty */
};

enum flow_edit_kind { EDIT_KIND_INSERT, EDIT_KIND_CHANGE, EDIT_KIND_DELETE };
struct flow_edit {
	enum flow_edit_kind kind;
	unsigned index;  /* INSERT: position 0 = top; else 1-based occurrence */
	const char *name;
	const char *value; /* with its leading space; LF folds; NULL for DELETE */
};
#define FLOW_MAX_EDITS 100

enum reply_kind { REPLY_ACCEPT, REPLY_TEMPFAIL, REPLY_REJECT };

/* What to tell the MTA: data, no calls. Lives until the next message begins
 * or the session ends. */
struct decision {
	enum reply_kind reply;
	const char *code;        /* "451", "550"; NULL for accept */
	const char *enhanced;    /* "4.3.0" */
	const char *text;        /* one line, no '%', printable, <= 400 bytes */
	const char *quarantine;  /* reason for MTA hold, or NULL */
	size_t edit_count;       /* in the order to be applied */
	const struct flow_edit *edits;
	/* for log, CLI and tests */
	bool outbound;
	const char *direction;   /* "in", "out", "seen" */
	struct str decision_id;
	struct str results;      /* Authentication-Results value written, or the
	                            payload it would have had */
	const struct dkim_result *dkim;
	size_t dkim_count;
	struct arc_result arc;
	bool arc_done;
	struct spf_result spf[2]; /* HELO, MAIL FROM */
	size_t spf_count;
	struct dmarc_result dmarc;
	bool dmarc_done;
	struct iprev_result iprev;
	bool iprev_done;
	uint64_t archive_id;     /* 0: not archived */
	struct str log_line;     /* the one line, already written by finish */
};

/* Begin a message. RES_NOMEM: tempfail at once. */
HN_CHECK enum res message_begin(
    struct session *s, const struct envelope *e, struct message **out);
void message_rcpt(struct message *m, struct str rcpt);
void message_header(struct message *m, struct str name, struct str value);
void message_end_of_header(struct message *m);
void message_body(struct message *m, const char *bytes, size_t len);
/* Judge, sign, archive (blocks until durable), log. Never fails: errors are
 * decisions. `queue_id` may be empty. */
const struct decision *message_finish(struct message *m, struct str queue_id);
/* What was accepted was not passed on after all: an event says so when it was
 * archived. Best effort; waits for the disk. */
void message_withdrawn(struct message *m, const char *why);
/* Frees the message, at any stage; archives nothing if not finished. */
void message_free(struct message **m);

#endif
