#include "config/value.h"

#include <sys/un.h>

bool
value_parse_port_host(struct str s, uint16_t *out_port, struct str *out_host)
{
	uint64_t port;
	size_t at = str_chr(s, '@');
	struct str host = at != SIZE_MAX ? str_skip(s, at + 1) : STR_EMPTY;
	if (at == SIZE_MAX ||
	    str_to_u64(str_sub(s, 0, at), 65535, &port) != RES_OK)
		return false;
	if (str_starts(host, STR("[")) && str_ends(host, STR("]")))
		host = str_sub(host, 1, host.len - 2);
	struct ip ip;
	if (ip_parse(host, &ip) != RES_OK && !value_is_domain(host))
		return false;
	*out_port = (uint16_t)port;
	*out_host = host;
	return true;
}

static bool
parse_mode(struct str s, mode_t *out)
{
	mode_t mode = 0;
	if (s.len < 3 || s.len > 4)
		return false;
	for (size_t i = 0; i < s.len; i++) {
		if (s.ptr[i] < '0' || s.ptr[i] > '7')
			return false;
		mode = mode * 8 + (mode_t)(s.ptr[i] - '0');
	}
	if (mode > 0777)
		return false;
	*out = mode;
	return true;
}

static bool
parse_unix(
    struct str rest, struct str path, struct listen_address *l, struct err *why)
{
	struct str item;
	*l = (struct listen_address){ .is_unix = true,
		.path = path,
		.mode = 0660,
		.group = STR("postfix") };
	if (!str_starts(path, STR("/")) ||
	    path.len >= sizeof(((struct sockaddr_un *)0)->sun_path)) {
		err_set(why,
		    "'%.*s' is not an absolute path of less than %zu bytes",
		    STR_ARG(path), sizeof(((struct sockaddr_un *)0)->sun_path));
		return false;
	}
	while (value_next(&rest, &item)) {
		if (str_starts(item, STR("mode=")) &&
		    parse_mode(str_skip(item, 5), &l->mode))
			continue;
		if (str_starts(item, STR("group="))) {
			l->group = str_skip(item, 6);
			continue;
		}
		err_set(why, "'%.*s' is not mode=0660 or group=NAME",
		    STR_ARG(item));
		return false;
	}
	return true;
}

enum res
value_parse_listen(struct arena *a, struct str text, struct listen_address *out,
    struct err *why)
{
	struct str copy = arena_dup(a, text), first;
	if (copy.ptr == NULL)
		return RES_NOMEM;
	struct listen_address l = { .mode = 0 };
	bool ok = false;
	(void)value_next(&copy, &first);
	size_t colon = str_chr(first, ':');
	struct str scheme = str_sub(first, 0, colon);
	struct str rest =
	    colon != SIZE_MAX ? str_skip(first, colon + 1) : STR_EMPTY;
	if (value_word("unix local", scheme) >= 0) {
		if (!parse_unix(copy, rest, &l, why))
			return RES_SYNTAX;
		ok = true;
	} else if (value_word("inet inet6", scheme) >= 0 && copy.len == 0) {
		ok = value_parse_port_host(rest, &l.port, &l.host);
	}
	if (!ok) {
		err_set(why,
		    "'%.*s' is not unix:PATH [mode=0660] [group=NAME] or "
		    "inet:PORT@HOST",
		    STR_ARG(text));
		return RES_SYNTAX;
	}
	*out = l;
	return RES_OK;
}
