#include "milter/callbacks.h"

#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "milter/reply.h"

#define MAX_ARGS 64 /* ESMTP parameters looked at */

static struct milter *self;

/* --- negotiation --- */

/* What we ask for when it is offered: no replies, so that an MTA sends all of
 * an envelope, and all of a message, at once. What stands in the way is kept
 * and answered at end of message. libmilter itself answers for us when the
 * MTA lacks one of them. */
static const unsigned long wanted_steps = SMFIP_HDR_LEADSPC |
    SMFIP_NOUNKNOWN | SMFIP_NODATA | SMFIP_NR_CONN | SMFIP_NR_HELO |
    SMFIP_NR_MAIL | SMFIP_NR_RCPT | SMFIP_NR_HDR | SMFIP_NR_EOH |
    SMFIP_NR_BODY;
static const unsigned long wanted_actions = SMFIF_ADDHDRS | SMFIF_CHGHDRS |
    SMFIF_QUARANTINE | SMFIF_SETSYMLIST;

/* Lists replace the MTA's own (MIL-03): what is looked at, and nothing more,
 * as libmilter keeps them for each connection. */
static const struct {
	int stage;
	const char *names;
} macros[] = {
	{ SMFIM_CONNECT, "j {daemon_name} {client_addr} {client_ptr}" },
	{ SMFIM_ENVFROM, "{auth_type} {auth_authen} {tls_version} {cipher} "
			 "{cipher_bits}" },
	{ SMFIM_EOM, "i" },
};

/* Mail that needs what was not granted is put off, before it is archived:
 * the log says why, once. */
static void
warn_of_missing(unsigned long actions)
{
	bool add = (actions & SMFIF_ADDHDRS) != 0,
	     change = (actions & SMFIF_CHGHDRS) != 0;
	if ((!add || !change) && !atomic_exchange(&self->told_missing, true))
		log_warning("the MTA does not let us %s header fields: mail "
			    "that needs it is answered 451",
		    add ? "change" : change ? "add" : "add or change");
}

static sfsistat
on_negotiate(SMFICTX *ctx, unsigned long offered_actions,
    unsigned long offered_steps, unsigned long f2, unsigned long f3,
    unsigned long *actions, unsigned long *steps, unsigned long *pf2,
    unsigned long *pf3)
{
	(void)f2;
	(void)f3;
	*actions = wanted_actions & offered_actions;
	*steps = wanted_steps & offered_steps;
	*pf2 = *pf3 = 0;
	atomic_store(&self->last_leading_space,
	    (*steps & SMFIP_HDR_LEADSPC) != 0);
	atomic_store(&self->last_no_reply, *steps);
	atomic_store(&self->last_actions, *actions);
	warn_of_missing(*actions);
	struct connection *c = connection_new(self, ctx);
	if (c == NULL)
		return SMFIS_REJECT;
	c->leading_space = (*steps & SMFIP_HDR_LEADSPC) != 0;
	c->no_reply = *steps;
	c->actions = *actions;
	smfi_setpriv(ctx, c);
	if ((*actions & SMFIF_SETSYMLIST) == 0)
		return SMFIS_CONTINUE;
	for (size_t i = 0; i < sizeof macros / sizeof *macros; i++)
		if (smfi_setsymlist(ctx, macros[i].stage,
			(char *)(uintptr_t)macros[i].names) != MI_SUCCESS)
			log_warning("the MTA was not asked for: %s",
			    macros[i].names);
	return SMFIS_CONTINUE;
}

/* Without memory for a connection as with it: a reply that the MTA does not
 * wait for would be taken for that to a later step. */
static sfsistat
go_on(const struct connection *c, unsigned long no_reply)
{
	unsigned long granted = c != NULL ? c->no_reply :
					    atomic_load(&self->last_no_reply);
	return (granted & no_reply) != 0 ? SMFIS_NOREPLY : SMFIS_CONTINUE;
}

static struct str
macro(SMFICTX *ctx, const char *name)
{
	return str_c(smfi_getsymval(ctx, (char *)(uintptr_t)name));
}

/* --- connection --- */

/* Postfix says "unknown", Sendmail "[192.0.2.1]" when there is no name. */
static struct str
host_name(struct str name)
{
	if (str_case_eq(name, STR("unknown")) || str_starts(name, STR("[")))
		return STR_EMPTY;
	return name;
}

static sfsistat
on_connect(SMFICTX *ctx, char *name, _SOCK_ADDR *address)
{
	struct connection *c = smfi_getpriv(ctx);
	if (c == NULL) { /* follows on a QUIT_NC */
		c = connection_new(self, ctx);
		if (c == NULL)
			return go_on(c, SMFIP_NR_CONN);
		smfi_setpriv(ctx, c);
	}
	struct session_facts f = {
		.client_name = host_name(str_c(name)),
		.client_ptr = host_name(macro(ctx, "{client_ptr}")),
		.daemon_name = macro(ctx, "{daemon_name}"),
		.hostname = macro(ctx, "j"),
		.leading_space = c->leading_space,
		.no_insert = (c->actions & SMFIF_ADDHDRS) == 0,
		.no_change = (c->actions & SMFIF_CHGHDRS) == 0,
		.no_hold = (c->actions & SMFIF_QUARANTINE) == 0,
	};
	struct ip ip = { .family = IP_NONE };
	if ((address == NULL || ip_from_sockaddr(address, &ip) != RES_OK) &&
	    ip_parse(macro(ctx, "{client_addr}"), &ip) != RES_OK)
		ip.family = IP_NONE;
	f.client = ip;
	connection_open(self, c, &f);
	return go_on(c, SMFIP_NR_CONN);
}

static sfsistat
on_helo(SMFICTX *ctx, char *name)
{
	struct connection *c = smfi_getpriv(ctx);
	if (c != NULL && c->session != NULL)
		session_set_helo(c->session, str_c(name));
	return go_on(c, SMFIP_NR_HELO);
}

/* --- envelope --- */

/* "TLSv1.3 TLS_AES_256_GCM_SHA384 256", or nothing. */
static struct str
tls_text(SMFICTX *ctx, char *to, size_t room)
{
	struct str version = macro(ctx, "{tls_version}"),
		   cipher = macro(ctx, "{cipher}"),
		   bits = macro(ctx, "{cipher_bits}");
	if (version.len == 0)
		return STR_EMPTY;
	int n = snprintf(to, room, "%.*s %.*s %.*s", STR_ARG(version),
	    STR_ARG(cipher), STR_ARG(bits));
	return n > 0 && (size_t)n < room ? str_trim(str_of(to, (size_t)n)) :
					   version;
}

static sfsistat
on_mail(SMFICTX *ctx, char **argv)
{
	struct connection *c = smfi_getpriv(ctx);
	char tls[256];
	struct str args[MAX_ARGS];
	struct envelope e = { .mail_from = str_c(argv[0]), .args = args };
	if (c == NULL)
		return go_on(c, SMFIP_NR_MAIL);
	if (argv[0] != NULL)
		while (e.arg_count < MAX_ARGS && argv[e.arg_count + 1] != NULL) {
			args[e.arg_count] = str_c(argv[e.arg_count + 1]);
			e.arg_count++;
		}
	e.auth = macro(ctx, "{auth_authen}");
	e.auth_type = macro(ctx, "{auth_type}");
	e.tls = tls_text(ctx, tls, sizeof tls);
	transaction_begin(self, c, &e);
	return go_on(c, SMFIP_NR_MAIL);
}

static sfsistat
on_rcpt(SMFICTX *ctx, char **argv)
{
	struct connection *c = smfi_getpriv(ctx);
	/* no marked step: a message that is sent again may have others */
	if (c != NULL && c->message != NULL && !c->refused)
		message_rcpt(c->message, str_c(argv[0]));
	return go_on(c, SMFIP_NR_RCPT);
}

/* --- content --- */

static sfsistat
on_header(SMFICTX *ctx, char *name, char *value)
{
	struct connection *c = smfi_getpriv(ctx);
	if (c != NULL && step_begin(self, c, str_c(value))) {
		message_header(c->message, str_c(name), str_c(value));
		step_end(self, c);
	}
	return go_on(c, SMFIP_NR_HDR);
}

static sfsistat
on_end_of_header(SMFICTX *ctx)
{
	struct connection *c = smfi_getpriv(ctx);
	if (c != NULL && step_begin(self, c, STR("header"))) {
		message_end_of_header(c->message);
		step_end(self, c);
	}
	return go_on(c, SMFIP_NR_EOH);
}

static sfsistat
on_body(SMFICTX *ctx, unsigned char *bytes, size_t len)
{
	struct connection *c = smfi_getpriv(ctx);
	if (c != NULL && step_begin(self, c, str_of(bytes, len))) {
		message_body(c->message, (const char *)bytes, len);
		step_end(self, c);
	}
	return go_on(c, SMFIP_NR_BODY);
}

/* The answer to a message that could not begin. */
static sfsistat
put_off(SMFICTX *ctx, struct connection *c)
{
	bool stopping = c->stopping;
	transaction_end(self, c);
	if (stopping)
		return reply_tempfail(ctx, "421", "4.3.2",
		    "The mail filter is being stopped, try again later");
	return reply_tempfail(ctx, "451", "4.3.0",
	    "The mail filter cannot take more messages, try again later");
}

static sfsistat
on_end_of_message(SMFICTX *ctx)
{
	struct connection *c = smfi_getpriv(ctx);
	if (c == NULL)
		return SMFIS_TEMPFAIL;
	if (c->message == NULL)
		return put_off(ctx, c);
	if (!step_begin(self, c, STR("end"))) {
		transaction_end(self, c);
		return reply_reject(ctx, "554", "5.6.0",
		    "This message cannot be processed");
	}
	answering_begin(self, c);
	const struct decision *d =
	    message_finish(c->message, macro(ctx, "i"));
	answering_end(self, c);
	step_end(self, c);
	sfsistat status = reply_decision(ctx, d, c->leading_space);
	if (d->reply == REPLY_ACCEPT && status != SMFIS_CONTINUE)
		message_withdrawn(c->message, "the MTA was gone, or did not "
		    "take our changes, before it had our answer");
	transaction_end(self, c);
	return status;
}

/* --- the end, at any time --- */

static sfsistat
on_abort(SMFICTX *ctx)
{
	struct connection *c = smfi_getpriv(ctx);
	if (c != NULL)
		transaction_end(self, c);
	return SMFIS_CONTINUE;
}

static sfsistat
on_close(SMFICTX *ctx)
{
	struct connection *c = smfi_getpriv(ctx);
	smfi_setpriv(ctx, NULL);
	connection_free(self, &c);
	return SMFIS_CONTINUE;
}

void
callbacks_describe(struct milter *m, struct smfiDesc *out)
{
	static char name[] = "hanaper";
	self = m;
	*out = (struct smfiDesc){
		.xxfi_name = name,
		.xxfi_version = SMFI_VERSION,
		.xxfi_flags = wanted_actions,
		.xxfi_connect = on_connect,
		.xxfi_helo = on_helo,
		.xxfi_envfrom = on_mail,
		.xxfi_envrcpt = on_rcpt,
		.xxfi_header = on_header,
		.xxfi_eoh = on_end_of_header,
		.xxfi_body = on_body,
		.xxfi_eom = on_end_of_message,
		.xxfi_abort = on_abort,
		.xxfi_close = on_close,
		.xxfi_negotiate = on_negotiate,
	};
}
