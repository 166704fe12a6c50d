#include "cli/cli.h"
#include "dns/unbound.h"
#include "dns/zone.h"

enum res
cli_resolver(const struct config *c, const char *zone, struct err *err,
    struct resolver **out)
{
	if (zone == NULL && c->zone_file.len != 0)
		zone = c->zone_file.ptr;
	if (zone != NULL)
		return zone_open(zone, false, err, out);
	struct unbound_options o = {
		.nameservers = c->nameservers.items,
		.nameserver_count = c->nameservers.count,
		.dnssec = c->dnssec == DNSSEC_SETTING_OFF ? DNSSEC_OFF
		    : c->dnssec == DNSSEC_SETTING_ON ? DNSSEC_ON : DNSSEC_AUTO,
	};
	return unbound_new(&o, err, out, NULL);
}
