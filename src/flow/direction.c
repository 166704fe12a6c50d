/* Who is ours (design §3, §8 "who is ours"). Never by what the message says
 * about itself: by the client's address, its login, the MTA's listener. */
#include "flow/state.h"

static bool
in_list(const struct strlist *list, struct str s)
{
	for (size_t i = 0; i < list->count; i++)
		if (str_case_eq(list->items[i], s))
			return true;
	return false;
}

static bool
in_nets(const struct netlist *list, const struct ip *ip)
{
	for (size_t i = 0; i < list->count; i++)
		if (ip_net_contains(&list->items[i], ip))
			return true;
	return false;
}

static void
set(struct message *m, enum direction d, const char *why)
{
	m->direction = d;
	m->direction_why = why;
}

/* Why this client is trusted, or NULL. */
static const char *
trust(const struct message *m)
{
	const struct config *c = m->config;
	const struct session_facts *f = &m->session->facts;
	if (m->auth.len != 0 && c->trust_authenticated)
		return "authenticated";
	if (f->daemon_name.len != 0 &&
	    in_list(&c->trusted_daemons, f->daemon_name))
		return "trusted daemon";
	if (f->client.family == IP_NONE)
		return "local submission";
	if (in_nets(&c->trusted_networks, &f->client))
		return "trusted network";
	return NULL;
}

void
direction_decide(struct message *m)
{
	enum run_mode mode = m->session->env->mode;
	const char *why = trust(m);
	m->trusted = why != NULL;
	if (mode == MODE_AUTO)
		mode = m->config->mode;
	if (mode == MODE_SIGN)
		set(m, DIRECTION_OUT, "mode = sign");
	else if (mode == MODE_VERIFY)
		set(m, DIRECTION_IN, "mode = verify");
	else if (why != NULL)
		set(m, DIRECTION_OUT, why);
	else
		set(m, DIRECTION_IN, "client not trusted");
}

bool
direction_is_relay(const struct message *m, const struct ip *client)
{
	return in_nets(&m->config->trusted_relays, client);
}
