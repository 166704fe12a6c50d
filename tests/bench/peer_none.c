/* Where configure found no libopendkim. */
#include "engine.h"

bool
peer_open(const struct engine *e)
{
	(void)e;
	return false;
}

void
peer_close(void)
{
}

void
peer_sign(const struct bench_mail *m)
{
	(void)m;
}

void
peer_verify(const struct bench_mail *m)
{
	(void)m;
}
