#include "helper.h"

#include <string.h>

#include "auth/authres.h"
#include "dns/psl.h"
#include "mail/address.h"
#include "mail/domain.h"

void
run_from_domain(struct options *o)
{
	struct from_domains f;
	struct buf b;
	struct json j;
	need(
	    address_from_value(o->arena, file_read(o->arena, only_file(o)), &f),
	    "address_from_value");
	buf_init(&b, MAX_OUTPUT);
	json_init(&j, &b);
	json_open(&j, '{');
	json_key_c(&j, "state", from_state_text(f.state));
	json_key(&j, "domains");
	json_open(&j, '[');
	for (size_t i = 0; i < f.count; i++)
		json_str(&j, f.domains[i]);
	json_close(&j, ']');
	json_close(&j, '}');
	json_finish(&b);
}

static void
put_item(struct json *j, const struct authres_item *item)
{
	json_open(j, '{');
	json_key_str(j, "method", item->method);
	json_key_int(j, "method_version", item->version);
	json_key_str(j, "result", item->result);
	json_key_str(j, "reason", item->reason);
	json_key_str(j, "comment", item->comment);
	json_key(j, "properties");
	json_open(j, '[');
	for (size_t i = 0; i < item->property_count; i++) {
		json_open(j, '[');
		json_str(j, item->properties[i].ptype);
		json_str(j, item->properties[i].property);
		json_str(j, item->properties[i].value);
		json_close(j, ']');
	}
	json_close(j, ']');
	json_close(j, '}');
}

void
run_authres(struct options *o)
{
	const char *mode = option(o, "mode");
	struct authres_field f;
	struct buf b;
	struct json j;
	enum res r = authres_parse(o->arena, file_read(o->arena, only_file(o)),
	    mode != NULL && strcmp(mode, "lenient") == 0 ? AUTHRES_LENIENT
							 : AUTHRES_STRICT,
	    &f);
	buf_init(&b, MAX_OUTPUT);
	json_init(&j, &b);
	json_open(&j, '{');
	json_key_bool(&j, "valid", r == RES_OK);
	if (r == RES_OK) {
		json_key_str(&j, "authserv_id", f.id);
		json_key_int(&j, "version", f.version);
		json_key(&j, "results");
		json_open(&j, '[');
		for (size_t i = 0; i < f.count; i++)
			put_item(&j, &f.items[i]);
		json_close(&j, ']');
	}
	json_close(&j, '}');
	json_finish(&b);
}

void
run_psl(struct options *o)
{
	struct str normal, org = { NULL, 0 };
	struct buf b;
	struct json j;
	if (domain_normalize(
		o->arena, str_c(option_needed(o, "domain")), &normal) == RES_OK)
		org = psl_organizational(normal);
	buf_init(&b, MAX_OUTPUT);
	json_init(&j, &b);
	json_open(&j, '{');
	json_key_int(&j, "labels", org.ptr == NULL ? 0 : domain_labels(org));
	json_close(&j, '}');
	json_finish(&b);
}
