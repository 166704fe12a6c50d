#include "cli/offline.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include "dns/unbound.h"
#include "dns/zone.h"
#include "flow/file.h"
#include "flow/keyfiles.h"
#include "flow/published.h"
#include "keys/keyring.h"

bool
offline_option(struct offline *o, int option, const char *argument)
{
	switch (option) {
	case 'c':
		o->settings.path = argument;
		return true;
	case 'o':
		if (cli_settings_add(&o->settings, argument))
			return true;
		cli_fail(EX_USAGE, "-o %s: not NAME=VALUE", argument);
		return false;
	case 'z':
		o->zone = argument;
		return true;
	case 'i':
		o->ip = argument;
		return true;
	case 'h':
		o->helo = argument;
		return true;
	case 'f':
		o->from = argument;
		return true;
	case 'r':
		if (o->rcpt_count == OFFLINE_MAX_RCPTS)
			return false;
		o->rcpts[o->rcpt_count++] = argument;
		return true;
	case 'a':
		o->auth = argument;
		return true;
	case 't':
		o->clock = argument;
		return true;
	}
	return false;
}

int
offline_clock(struct offline *o)
{
	uint64_t seconds;
	o->env.clock = CLOCK_SYSTEM;
	o->env.judge_age = true;
	if (o->clock == NULL)
		return EX_OK;
	if (strcmp(o->clock, "none") == 0) {
		o->env.judge_age = false;
		return EX_OK;
	}
	if (str_to_u64(str_c(o->clock), INT64_MAX / 1000000, &seconds) !=
	    RES_OK)
		return cli_fail(EX_USAGE, "--clock %s: give seconds since "
		    "1970, or none", o->clock);
	o->env.clock = (struct clock){ (int64_t)seconds * 1000000 };
	return EX_OK;
}

static int
open_resolver(struct offline *o)
{
	struct err err = { "" };
	const struct config *c = o->env.config;
	enum res r;
	const char *zone = o->zone;
	if (zone == NULL && c->zone_file.len != 0)
		zone = c->zone_file.ptr;
	if (zone != NULL) {
		r = zone_open(zone, false, &err, &o->env.resolver);
	} else {
		struct unbound_options options = {
			.nameservers = c->nameservers.items,
			.nameserver_count = c->nameservers.count,
			.dnssec = DNSSEC_OFF,
		};
		r = unbound_new(&options, &err, &o->env.resolver, NULL);
	}
	if (r == RES_OK)
		return EX_OK;
	return cli_fail(zone != NULL && r != RES_IO ? EX_DATAERR :
	    cli_status(r), "%s", err.text[0] != '\0' ? err.text : res_text(r));
}

static int
set_facts(struct offline *o)
{
	o->facts = (struct session_facts){ .helo = str_c(o->helo),
		.leading_space = true };
	if (o->ip != NULL &&
	    ip_parse(str_c(o->ip), &o->facts.client) != RES_OK)
		return cli_fail(EX_USAGE, "--ip %s: not an IP address", o->ip);
	return EX_OK;
}

/* Without keys outbound mail is explained as unsigned; keys_error then says
 * why the daemon may see it in another way. */
static void
open_keys(struct offline *o)
{
	struct err *err = &o->keys_error;
	struct keydir dir;
	struct arena *a = arena_new(0);
	enum res r = RES_NOMEM;
	if (o->mode == MODE_VERIFY || o->env.config->mode == MODE_VERIFY) {
		arena_free(&a);
		return;
	}
	if (a != NULL)
		r = keyfiles_open(o->env.config, a, err, &dir);
	if (r == RES_OK)
		r = keyring_from_keydir(&dir, err, &o->env.signer);
	if (r == RES_OK)
		o->env.published = published_new(NULL);
	else if (err->text[0] == '\0')
		err_set(err, "%s", res_text(r));
	arena_free(&a);
}

int
offline_prepare(struct offline *o)
{
	int status = EX_OK;
	o->env.config = cli_settings_load(&o->settings, &status);
	if (o->env.config == NULL)
		return status;
	o->env.counters = &o->counters;
	o->env.keys = key_cache_new(0); /* without memory there is none */
	o->env.mode = o->mode;
	o->env.quiet = true;
	status = offline_clock(o);
	if (status == EX_OK)
		status = set_facts(o);
	if (status == EX_OK)
		status = open_resolver(o);
	if (status == EX_OK)
		open_keys(o);
	return status;
}

static bool
begin(struct offline *o)
{
	struct envelope e = { .mail_from = str_c(o->from),
		.auth = str_c(o->auth) };
	o->session = session_new(&o->env);
	if (o->session == NULL)
		return false;
	session_set_facts(o->session, &o->facts);
	if (message_begin(o->session, &e, &o->message) != RES_OK) {
		o->message = NULL;
		return false;
	}
	for (size_t i = 0; i < o->rcpt_count; i++)
		message_rcpt(o->message, str_c(o->rcpts[i]));
	return true;
}

const struct decision *
offline_judge(struct offline *o, const char *file, int *out_status)
{
	bool standard = strcmp(file, "-") == 0;
	int fd = standard ? STDIN_FILENO : open(file, O_RDONLY | O_CLOEXEC);
	if (fd < 0) {
		*out_status = cli_fail(errno == EACCES ? EX_NOPERM : EX_NOINPUT,
		    "%s: %s", file, strerror(errno));
		return NULL;
	}
	enum res r = begin(o) ? file_feed(o->message, fd, NULL) : RES_NOMEM;
	int saved = errno;
	if (!standard)
		close(fd);
	if (r == RES_OK)
		return message_finish(o->message, STR_EMPTY);
	*out_status = cli_fail(cli_status(r), "%s: %s", file,
	    r == RES_IO ? strerror(saved) : res_text(r));
	offline_next(o);
	return NULL;
}

void
offline_next(struct offline *o)
{
	message_free(&o->message);
	session_free(&o->session);
}

void
offline_done(struct offline *o)
{
	offline_next(o);
	key_cache_free(&o->env.keys);
	signer_free(&o->env.signer);
	published_free(&o->env.published);
	resolver_free(&o->env.resolver);
	config_unref(&o->env.config);
}
