#include "daemon/notify.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"

void
notify_send(const char *state)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	const char *name = getenv("NOTIFY_SOCKET");
	if (name == NULL || (name[0] != '/' && name[0] != '@'))
		return;
	size_t len = strlen(name);
	if (len >= sizeof to.sun_path)
		return;
	memcpy(to.sun_path, name, len);
	if (name[0] == '@') /* the abstract name space */
		to.sun_path[0] = '\0';
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return;
	socklen_t size =
	    (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len);
	(void)!sendto(fd, state, strlen(state), MSG_NOSIGNAL,
	    (struct sockaddr *)&to, size);
	close(fd);
}

void
notify_reloading(void)
{
	char text[64];
	snprintf(text, sizeof text, "RELOADING=1\nMONOTONIC_USEC=%lld",
	    (long long)clock_mono_us());
	notify_send(text);
}
