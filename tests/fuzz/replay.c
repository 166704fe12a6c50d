/* Runs a fuzz target over the files of its corpus, so that `make check`
 * repeats what fuzzing once found. Prints TAP. The corpus is the directory
 * named by the first argument, or $SRCDIR/tests/fuzz/corpus/NAME for the
 * program fuzz_NAME. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MAX_FILE ((size_t)4 << 20)

static int
run_file(const char *path, char *room)
{
	FILE *f = fopen(path, "rb");
	if (f == NULL)
		return -1;
	size_t len = fread(room, 1, MAX_FILE, f);
	fclose(f);
	/* of its own size, so that a read behind the end is noticed */
	uint8_t *data = malloc(len > 0 ? len : 1);
	if (data == NULL)
		return -1;
	memcpy(data, room, len);
	int r = LLVMFuzzerTestOneInput(data, len);
	free(data);
	return r;
}

int
main(int argc, char **argv)
{
	char folder[4096], path[8192];
	const char *name = strstr(argv[0], "fuzz_");
	for (const char *p = name; p != NULL; p = strstr(p + 1, "fuzz_"))
		name = p;
	const char *top = getenv("SRCDIR");
	if (argc > 1)
		snprintf(folder, sizeof folder, "%s", argv[1]);
	else
		snprintf(folder, sizeof folder, "%s/tests/fuzz/corpus/%s",
		    top != NULL ? top : ".", name != NULL ? name + 5 : "");
	char *room = malloc(MAX_FILE);
	struct dirent **entries;
	int count = scandir(folder, &entries, NULL, alphasort), tests = 0;
	if (count < 0 || room == NULL) {
		printf("Bail out! no corpus in %s\n", folder);
		return 1;
	}
	/* the empty input belongs to every corpus */
	(void)LLVMFuzzerTestOneInput((const uint8_t *)"", 0);
	printf("ok %d - the empty input\n", ++tests);
	for (int i = 0; i < count; i++) {
		if (entries[i]->d_name[0] != '.') {
			snprintf(path, sizeof path, "%s/%s", folder,
			    entries[i]->d_name);
			int r = run_file(path, room);
			printf("%s %d - %s\n", r == 0 ? "ok" : "not ok",
			    ++tests, entries[i]->d_name);
		}
		free(entries[i]);
	}
	free(entries);
	free(room);
	printf("1..%d\n", tests);
	return 0;
}
