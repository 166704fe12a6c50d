#include "archive/store/netfs.h"

#include <string.h>

enum netfs
netfs_of(uint64_t type, const char **out_name)
{
	/* linux/magic.h has most of them, and no two versions the same */
	static const struct {
		uint32_t type;
		enum netfs kind;
		const char *name;
	} rows[] = {
		{ 0x00006969, NETFS_REFUSED, "NFS" },
		{ 0x0000517b, NETFS_REFUSED, "SMB" },
		{ 0xff534d42, NETFS_REFUSED, "CIFS" },
		{ 0xfe534d42, NETFS_REFUSED, "SMB" },
		{ 0x0000564c, NETFS_REFUSED, "NCP" },
		{ 0x5346414f, NETFS_REFUSED, "AFS" },
		{ 0x6b414653, NETFS_REFUSED, "AFS" },
		{ 0x73757245, NETFS_REFUSED, "Coda" },
		{ 0x01021997, NETFS_UNSURE, "9p" },
		{ 0x65735546, NETFS_UNSURE, "FUSE" },
		{ 0x00c36400, NETFS_UNSURE, "Ceph" },
		{ 0x0bd00bd0, NETFS_UNSURE, "Lustre" },
	};
	*out_name = "";
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
		/* f_type is signed, and of 32 bits on some machines */
		if ((uint32_t)type == rows[i].type) {
			*out_name = rows[i].name;
			return rows[i].kind;
		}
	return NETFS_LOCAL;
}

enum netfs
netfs_at(const struct archive_io *io, const char *path, const char **out_name)
{
	char at[PATH_MAX];
	uint64_t type;
	*out_name = "";
	if (io_path(at, "%s", path) != RES_OK)
		return NETFS_LOCAL; /* opening it fails, and says so */
	while (io->fs_type(io, at, &type) != 0) {
		char *slash = strrchr(at, '/');
		if (slash == NULL || strcmp(at, "/") == 0)
			return NETFS_LOCAL;
		slash[slash == at] = '\0';
	}
	return netfs_of(type, out_name);
}
