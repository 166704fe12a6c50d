/* Log files, packed ones too, line by line. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sysexits.h>
#include <time.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/maillog.h"
#include "cli/spawn.h"

static const struct {
	const char *end, *program;
} packers[] = { { ".gz", "gzip" }, { ".xz", "xz" }, { ".bz2", "bzip2" },
	{ ".zst", "zstd" } };

/* `program` -dc with the file as its input: no name it could take for an
 * option. */
static int
unpack(const char *program, const char *path, int in, struct maillog_file *m)
{
	char name[16], how[] = "-dc";
	char *const argv[] = { name, how, NULL };
	int ends[2];
	memcpy(name, program, strlen(program) + 1);
	if (pipe2(ends, O_CLOEXEC) != 0)
		return cli_fail(EX_OSERR, "%s: %s", path, strerror(errno));
	int rc = spawn_program(program, argv, in, ends[1], &m->child);
	close(ends[1]);
	m->f = rc == 0 ? fdopen(ends[0], "rb") : NULL;
	if (m->f != NULL)
		return EX_OK;
	close(ends[0]);
	return cli_fail(EX_OSERR, "%s: cannot run %s: %s", path, program,
	    strerror(rc != 0 ? rc : errno));
}

int
maillog_open(const char *path, struct maillog_file *out)
{
	struct maillog_file m = { .written_s = (int64_t)time(NULL) };
	struct stat st;
	int status = EX_OK;
	m.line = malloc(MAILLOG_MAX_LINE);
	if (m.line == NULL)
		return cli_fail(EX_OSERR, "out of memory");
	const char *program = NULL;
	for (size_t i = 0; i < sizeof packers / sizeof *packers; i++)
		if (str_ends(str_c(path), str_c(packers[i].end)))
			program = packers[i].program;
	int fd = strcmp(path, "-") == 0 ? dup(STDIN_FILENO) :
					  open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) != 0) {
		status = cli_fail(errno == EACCES ? EX_NOPERM : EX_NOINPUT,
		    "%s: %s", path, strerror(errno));
	} else {
		if (S_ISREG(st.st_mode))
			m.written_s = (int64_t)st.st_mtime;
		if (program != NULL)
			status = unpack(program, path, fd, &m);
		else
			m.f = fdopen(fd, "rb");
		if (m.f == NULL && status == EX_OK)
			status = cli_fail(EX_OSERR, "%s: %s", path,
			    strerror(errno));
	}
	if (fd >= 0 && (program != NULL || m.f == NULL))
		close(fd);
	if (status == EX_OK)
		*out = m;
	else
		free(m.line);
	return status;
}

bool
maillog_next(struct maillog_file *m, struct str *out_line)
{
	size_t n = 0;
	int c;
	while ((c = getc_unlocked(m->f)) != EOF && c != '\n')
		if (n < MAILLOG_MAX_LINE)
			m->line[n++] = (char)c;
	*out_line = str_of(m->line, n);
	return c != EOF || n > 0;
}

void
maillog_drop(struct maillog_file *m)
{
	int ended;
	fclose(m->f);
	free(m->line);
	if (m->child != 0)
		(void)waitpid(m->child, &ended, 0);
}

int
maillog_close(struct maillog_file *m, const char *path)
{
	int status = EX_OK, ended;
	bool bad = ferror(m->f) != 0;
	fclose(m->f);
	free(m->line);
	if (m->child != 0 &&
	    (waitpid(m->child, &ended, 0) < 0 || !WIFEXITED(ended) ||
		WEXITSTATUS(ended) != 0))
		bad = true;
	if (bad)
		status = cli_fail(
		    EX_DATAERR, "%s: not all of it can be read", path);
	return status;
}
