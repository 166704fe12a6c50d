#include "milter/command.h"

#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "milter/reply.h"

#define MAX_ARGS 64 /* ESMTP parameters looked at */

typedef enum command_after command_fn(
    struct milter *m, struct connection *c, struct str data, struct buf *out);

/* --- pieces of data --- */

/* Take one text off; false when there is none with its NUL. */
static bool
take_text(struct str *data, struct str *out)
{
	size_t end = str_chr(*data, '\0');
	if (end == SIZE_MAX)
		return false;
	*out = str_sub(*data, 0, end);
	*data = str_skip(*data, end + 1);
	return true;
}

static enum command_after
go_on(const struct connection *c, uint32_t no_reply, struct buf *out)
{
	if ((c->steps & no_reply) == 0)
		wire_simple(out, REPLY_CODE_CONTINUE);
	return COMMAND_GO_ON;
}

static enum command_after
tempfail(struct buf *out)
{
	wire_simple(out, REPLY_CODE_TEMPFAIL);
	return COMMAND_GO_ON;
}

static struct str
macro(const struct connection *c, const char *name)
{
	return macros_get(c->macros, str_c(name));
}

/* --- negotiation --- */

/* What we ask for when it is offered. Without a reply where we never decide:
 * errors are kept and answered at end of message. */
#define WANTED_STEPS                                                   \
	(WIRE_LEADING_SPACE | WIRE_NO_UNKNOWN | WIRE_NO_DATA |         \
	    WIRE_NR_HELO | WIRE_NR_RCPT | WIRE_NR_HEADER |             \
	    WIRE_NR_END_HEADER | WIRE_NR_BODY)
#define WANTED_ACTIONS                                                 \
	(WIRE_ADD_HEADERS | WIRE_CHANGE_HEADERS | WIRE_QUARANTINE |    \
	    WIRE_SYMBOL_LIST)

/* Lists replace the MTA's own (MIL-03): everything is named. By the
 * protocol's number of a stage. */
static const struct {
	uint32_t stage;
	const char *names;
} wanted_macros[] = {
	{ 0 /* connect */, "j _ {daemon_name} {daemon_addr} {daemon_port} "
		"{client_addr} {client_name} {client_ptr} v" },
	{ 1 /* HELO */, "{tls_version} {cipher} {cipher_bits} "
		"{cert_subject} {cert_issuer} {client_ptr}" },
	{ 2 /* MAIL */, "i {auth_type} {auth_authen} {auth_author} "
		"{tls_version} {cipher} {cipher_bits} {mail_addr} "
		"{daemon_name} {client_ptr}" },
	{ 3 /* RCPT */, "i {rcpt_addr} {rcpt_host} {rcpt_mailer}" },
	{ 6 /* end of header */, "i" },
	{ 5 /* end of message */, "i {auth_type} {auth_authen} {mail_addr}" },
};

/* Mail that needs what was not granted is put off, before it is archived:
 * the log says why, once. */
static void
warn_of_missing(struct milter *m, uint32_t actions)
{
	bool add = (actions & WIRE_ADD_HEADERS) != 0,
	     change = (actions & WIRE_CHANGE_HEADERS) != 0;
	if ((!add || !change) && !atomic_exchange(&m->told_missing, true))
		log_warning("the MTA does not let us %s header fields: mail "
			    "that needs it is answered 451",
		    add ? "change" : change ? "add" : "add or change");
}

static enum command_after
negotiate(
    struct milter *m, struct connection *c, struct str data, struct buf *out)
{
	(void)m;
	if (c->negotiated || data.len < 12)
		return COMMAND_CLOSE;
	uint32_t version = wire_get32(data.ptr);
	if (version < WIRE_VERSION_MIN) {
		log_warning("an MTA speaks version %u of the milter protocol, "
			    "which is too old", (unsigned)version);
		return COMMAND_CLOSE;
	}
	c->negotiated = true;
	c->actions = wire_get32(data.ptr + 4) & WANTED_ACTIONS;
	c->steps = wire_get32(data.ptr + 8) & WANTED_STEPS;
	warn_of_missing(m, c->actions);
	size_t mark = wire_open(out, WIRE_NEGOTIATE);
	wire_add32(out, version < WIRE_VERSION ? version : WIRE_VERSION);
	wire_add32(out, c->actions);
	wire_add32(out, c->steps);
	if ((c->actions & WIRE_SYMBOL_LIST) != 0)
		for (size_t i = 0;
		     i < sizeof wanted_macros / sizeof *wanted_macros; i++) {
			wire_add32(out, wanted_macros[i].stage);
			wire_add_text(out, str_c(wanted_macros[i].names));
		}
	wire_close(out, mark);
	return COMMAND_GO_ON;
}

static enum command_after
take_macros(
    struct milter *m, struct connection *c, struct str data, struct buf *out)
{
	(void)m;
	(void)out;
	if (data.len > 0)
		macros_set(&c->macros, data.ptr[0], str_skip(data, 1));
	return COMMAND_GO_ON;
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

/* A letter for the family, a port, the address; "U" alone when unknown. */
static bool
take_address(struct str data, struct ip *out)
{
	char family = data.len > 0 ? data.ptr[0] : '\0';
	struct str text;
	out->family = IP_NONE;
	if (family == 'U' || family == 'L')
		return true;
	if (data.len < 3 || (family != '4' && family != '6'))
		return false;
	data = str_skip(data, 3);
	if (!take_text(&data, &text))
		return false;
	if (str_starts(text, STR("IPv6:"))) /* Sendmail's way */
		text = str_skip(text, 5);
	if (ip_parse(text, out) != RES_OK)
		out->family = IP_NONE;
	return true;
}

static enum command_after
client(
    struct milter *m, struct connection *c, struct str data, struct buf *out)
{
	struct str name;
	struct ip ip = { .family = IP_NONE };
	if (!take_text(&data, &name) || !take_address(data, &ip))
		return COMMAND_CLOSE;
	if (ip.family == IP_NONE &&
	    ip_parse(macro(c, "client_addr"), &ip) != RES_OK)
		ip.family = IP_NONE;
	struct session_facts f = {
		.client = ip,
		.client_name = host_name(name),
		.client_ptr = host_name(macro(c, "client_ptr")),
		.daemon_name = macro(c, "daemon_name"),
		.hostname = macro(c, "j"),
		.leading_space = (c->steps & WIRE_LEADING_SPACE) != 0,
		.no_insert = (c->actions & WIRE_ADD_HEADERS) == 0,
		.no_change = (c->actions & WIRE_CHANGE_HEADERS) == 0,
		.no_hold = (c->actions & WIRE_QUARANTINE) == 0,
	};
	bool open = connection_open(m, c, &f);
	macros_forget(&c->macros, "C"); /* flow has its copies */
	return open ? go_on(c, 0, out) : tempfail(out);
}

static enum command_after
helo(struct milter *m, struct connection *c, struct str data, struct buf *out)
{
	struct str name;
	(void)m;
	if (!take_text(&data, &name))
		return COMMAND_CLOSE;
	if (c->session != NULL)
		session_set_helo(c->session, name);
	return go_on(c, WIRE_NR_HELO, out);
}

/* --- envelope --- */

/* "TLSv1.3 TLS_AES_256_GCM_SHA384 256", or nothing. */
static struct str
tls_text(const struct connection *c, char *to, size_t room)
{
	struct str version = macro(c, "tls_version"),
		   cipher = macro(c, "cipher"), bits = macro(c, "cipher_bits");
	if (version.len == 0)
		return STR_EMPTY;
	int n = snprintf(to, room, "%.*s %.*s %.*s", STR_ARG(version),
	    STR_ARG(cipher), STR_ARG(bits));
	return n > 0 && (size_t)n < room ? str_trim(str_of(to, (size_t)n)) :
					   version;
}

static enum command_after
mail(struct milter *m, struct connection *c, struct str data, struct buf *out)
{
	char tls[256];
	struct str args[MAX_ARGS];
	struct envelope e = { .args = args };
	if (!take_text(&data, &e.mail_from))
		return COMMAND_CLOSE;
	if (c->session == NULL)
		return tempfail(out);
	if (!transaction_begin(m, c)) {
		reply_text(out, "421", "4.3.2",
		    "The mail filter is being stopped, try again later");
		return COMMAND_GO_ON;
	}
	while (e.arg_count < MAX_ARGS && take_text(&data, &args[e.arg_count]))
		e.arg_count++;
	e.auth = macro(c, "auth_authen");
	e.auth_type = macro(c, "auth_type");
	e.tls = tls_text(c, tls, sizeof tls);
	if (message_begin(c->session, &e, &c->message) == RES_OK)
		return go_on(c, 0, out);
	reply_text(out, "451", "4.3.0", "The mail filter is out of memory");
	return COMMAND_ANSWERED;
}

static enum command_after
rcpt(struct milter *m, struct connection *c, struct str data, struct buf *out)
{
	struct str to;
	(void)m;
	if (!take_text(&data, &to))
		return COMMAND_CLOSE;
	/* no marked step: a message that is sent again may have others */
	if (c->message != NULL && !c->refused)
		message_rcpt(c->message, to);
	return go_on(c, WIRE_NR_RCPT, out);
}

static enum command_after
smtp_data(
    struct milter *m, struct connection *c, struct str data, struct buf *out)
{
	(void)m;
	(void)data;
	return go_on(c, WIRE_NR_DATA, out);
}

static enum command_after
unknown(
    struct milter *m, struct connection *c, struct str data, struct buf *out)
{
	(void)m;
	(void)data;
	return go_on(c, WIRE_NR_UNKNOWN, out);
}

/* --- content --- */

static enum command_after
header(
    struct milter *m, struct connection *c, struct str data, struct buf *out)
{
	struct str name, value;
	if (!take_text(&data, &name) || !take_text(&data, &value))
		return COMMAND_CLOSE;
	if (step_begin(m, c, value)) {
		message_header(c->message, name, value);
		step_end(m, c);
	}
	return go_on(c, WIRE_NR_HEADER, out);
}

static enum command_after
end_of_header(
    struct milter *m, struct connection *c, struct str data, struct buf *out)
{
	(void)data;
	if (step_begin(m, c, STR("header"))) {
		message_end_of_header(c->message);
		step_end(m, c);
	}
	return go_on(c, WIRE_NR_END_HEADER, out);
}

static void
push_body(struct milter *m, struct connection *c, struct str data)
{
	if (step_begin(m, c, data)) {
		message_body(c->message, data.ptr, data.len);
		step_end(m, c);
	}
}

static enum command_after
body(struct milter *m, struct connection *c, struct str data, struct buf *out)
{
	push_body(m, c, data);
	return go_on(c, WIRE_NR_BODY, out);
}

static enum command_after
end_of_message(
    struct milter *m, struct connection *c, struct str data, struct buf *out)
{
	if (c->message == NULL)
		return tempfail(out);
	if (data.len > 0)
		push_body(m, c, data);
	if (!step_begin(m, c, STR("end"))) {
		reply_text(out, "554", "5.6.0",
		    "This message cannot be processed");
		return COMMAND_ANSWERED;
	}
	answering_begin(m, c);
	const struct decision *d = message_finish(c->message, macro(c, "i"));
	answering_end(m, c);
	step_end(m, c);
	reply_decision(out, d, c->actions, c->steps);
	return COMMAND_ANSWERED;
}

/* --- the end, at any time --- */

static enum command_after
abort_message(
    struct milter *m, struct connection *c, struct str data, struct buf *out)
{
	(void)data;
	(void)out;
	transaction_end(m, c);
	return COMMAND_GO_ON;
}

static enum command_after
quit_next(
    struct milter *m, struct connection *c, struct str data, struct buf *out)
{
	(void)data;
	(void)out;
	connection_reset(m, c);
	return COMMAND_GO_ON;
}

static enum command_after
quit(struct milter *m, struct connection *c, struct str data, struct buf *out)
{
	(void)m;
	(void)c;
	(void)data;
	(void)out;
	return COMMAND_CLOSE;
}

static const struct {
	enum wire_command what;
	command_fn *take;
} commands[] = {
	{ WIRE_HEADER, header },
	{ WIRE_MACROS, take_macros },
	{ WIRE_BODY, body },
	{ WIRE_RCPT, rcpt },
	{ WIRE_MAIL, mail },
	{ WIRE_END_OF_HEADER, end_of_header },
	{ WIRE_END, end_of_message },
	{ WIRE_ABORT, abort_message },
	{ WIRE_CONNECT, client },
	{ WIRE_HELO, helo },
	{ WIRE_NEGOTIATE, negotiate },
	{ WIRE_QUIT, quit },
	{ WIRE_QUIT_NEXT, quit_next },
	{ WIRE_DATA, smtp_data },
	{ WIRE_UNKNOWN, unknown },
};

enum command_after
command_take(struct milter *m, struct connection *c, char what,
    struct str data, struct buf *out)
{
	if (!c->negotiated && what != WIRE_NEGOTIATE && what != WIRE_ABORT)
		return COMMAND_CLOSE;
	for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
		if (commands[i].what == (enum wire_command)what)
			return commands[i].take(m, c, data, out);
	log_warning("the MTA says what is not of the milter protocol (0x%02x)",
	    (unsigned char)what);
	return COMMAND_CLOSE;
}
