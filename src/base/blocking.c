#include "base/blocking.h"

#include <stddef.h>

static void (*listener)(int by);

void
blocking_listen(void (*changed)(int by))
{
	listener = changed;
}

void
blocking_begin(void)
{
	if (listener != NULL)
		listener(1);
}

void
blocking_end(void)
{
	if (listener != NULL)
		listener(-1);
}
