#include "milter/macros.h"

#include <stdlib.h>
#include <string.h>

/* The latest is first. */
struct macros {
	struct macros *next;
	size_t len;
	char command;
	char text[]; /* name NUL value NUL … */
};

void
macros_forget(struct macros **list, const char *commands)
{
	while (*list != NULL) {
		struct macros *m = *list;
		if (commands == NULL || strchr(commands, m->command) != NULL) {
			*list = m->next;
			free(m);
		} else {
			list = &m->next;
		}
	}
}

void
macros_set(struct macros **list, char command, struct str text)
{
	char one[] = { command, '\0' };
	macros_forget(list, one);
	if (text.len == 0 || text.ptr[text.len - 1] != '\0')
		return;
	struct macros *m = malloc(sizeof *m + text.len);
	if (m == NULL)
		return;
	m->len = text.len;
	m->command = command;
	memcpy(m->text, text.ptr, text.len);
	m->next = *list;
	*list = m;
}

static struct str
bare(struct str name)
{
	if (name.len >= 2 && name.ptr[0] == '{' &&
	    name.ptr[name.len - 1] == '}')
		return str_sub(name, 1, name.len - 2);
	return name;
}

struct str
macros_get(const struct macros *list, struct str name)
{
	name = bare(name);
	for (const struct macros *m = list; m != NULL; m = m->next)
		for (size_t at = 0; at < m->len;) {
			struct str key = str_c(m->text + at);
			at += key.len + 1;
			if (at >= m->len)
				break; /* a name without a value */
			struct str value = str_c(m->text + at);
			at += value.len + 1;
			if (str_eq(bare(key), name))
				return value;
		}
	return STR_EMPTY;
}
