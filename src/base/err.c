#include "base/err.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void
err_set(struct err *e, const char *fmt, ...)
{
	if (e == NULL || e->text[0] != '\0')
		return;
	va_list ap;
	va_start(ap, fmt);
	int n = vsnprintf(e->text, sizeof e->text, fmt, ap);
	va_end(ap);
	if (n >= (int)sizeof e->text)
		memcpy(e->text + sizeof e->text - 4, "...", 4);
	for (char *p = e->text; *p != '\0'; p++)
		if ((unsigned char)*p < 0x20 || *p == 0x7f)
			*p = '?';
}

void
err_clear(struct err *e)
{
	e->text[0] = '\0';
}
