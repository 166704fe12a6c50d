/* The mains of the two unprivileged processes. Their control socket is
 * IPC_CHILD_FD; they leave when the supervisor closes it. */
#ifndef DAEMON_ROLES_H
#define DAEMON_ROLES_H

/* Private keys in memory, signatures on request; no files, no network. */
_Noreturn void signer_role(void);
/* libmilter, DNS, archive; no private keys. */
_Noreturn void milter_role(void);

#endif
