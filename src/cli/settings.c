#include <errno.h>
#include <sysexits.h>
#include <unistd.h>

#include "cli/cli.h"

bool
cli_settings_add(struct cli_settings *s, const char *text)
{
	struct str all = str_c(text);
	size_t at = str_chr(all, '=');
	if (at == SIZE_MAX || at == 0 || s->count == CLI_MAX_SETTINGS)
		return false;
	s->items[s->count++] = (struct config_setting){
		str_trim(str_sub(all, 0, at)), str_trim(str_skip(all, at + 1)) };
	return true;
}

struct config *
cli_settings_load(const struct cli_settings *s, int *out_status)
{
	struct config *config = NULL;
	struct err err = { "" };
	const char *path = s->path;
	if (path == NULL &&
	    (access(CONFIG_DEFAULT_PATH, F_OK) == 0 || errno != ENOENT))
		path = CONFIG_DEFAULT_PATH;
	enum res r =
	    config_load_with(path, s->items, s->count, &err, &config);
	if (r == RES_OK)
		return config;
	*out_status = cli_fail(EX_CONFIG, "%s",
	    err.text[0] != '\0' ? err.text : res_text(r));
	return NULL;
}

struct config *
cli_config(const char *path, int *out_status)
{
	struct cli_settings s = { .path = path };
	return cli_settings_load(&s, out_status);
}
