#include "dns/name.h"

bool
dns_name_ok(struct str name)
{
	if (name.len == 0 || name.len > DNS_MAX_NAME)
		return false;
	size_t label = 0;
	for (size_t i = 0; i < name.len; i++) {
		unsigned char c = (unsigned char)name.ptr[i];
		if (c == '.') {
			if (label == 0)
				return false;
			label = 0;
			continue;
		}
		if (c < 0x20 || c > 0x7e || ++label > DNS_MAX_LABEL)
			return false;
	}
	return label > 0;
}

struct str
dns_name_chop(struct str name)
{
	if (name.len > 0 && name.ptr[name.len - 1] == '.')
		name.len--;
	return name;
}
