#include <errno.h>
#include <sysexits.h>
#include <unistd.h>

#include "cli/cli.h"

struct config *
cli_config(const char *path, int *out_status)
{
	struct config *config = NULL;
	struct err err = { "" };
	enum res r;
	if (path == NULL && access(CONFIG_DEFAULT_PATH, F_OK) != 0 &&
	    errno == ENOENT)
		r = config_default(&config);
	else
		r = config_load(path != NULL ? path : CONFIG_DEFAULT_PATH, &err,
		    &config);
	if (r == RES_OK)
		return config;
	*out_status = cli_fail(EX_CONFIG, "%s",
	    err.text[0] != '\0' ? err.text : res_text(r));
	return NULL;
}
