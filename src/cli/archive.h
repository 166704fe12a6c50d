/* hanaper archive: what its subcommands share. */
#ifndef CLI_ARCHIVE_H
#define CLI_ARCHIVE_H

#include <getopt.h>

#include "archive/search.h"
#include "cli/cli.h"

/* Options of every subcommand: `--dir DIR`, or the archive_dir of the
 * configuration (`-c CONFIG`, `-o NAME=VALUE`). */
struct archive_place {
	struct cli_settings settings;
	const char *dir;
};
#define ARCHIVE_PLACE_USAGE "[--dir DIR | -c CONFIG [-o NAME=VALUE]]"
#define ARCHIVE_PLACE_SHORT "c:o:"
#define ARCHIVE_PLACE_LONG { "dir", required_argument, NULL, 'd' }
/* Whether `c` is one of them; *out_status is not EX_OK when it is wrong. */
bool archive_place_option(
    struct archive_place *p, int c, const char *value, int *out_status);

/* NULL after a complaint; *out_status says how to exit. */
const char *archive_place_path(
    const struct archive_place *p, struct arena *a, int *out_status);
struct archive_reader *archive_place_open(
    const struct archive_place *p, struct arena *a, int *out_status);

/* The words of argv[from…] as one query; NULL after a complaint. */
struct query *archive_query(struct arena *a, int argc, char **argv, int from,
    int *out_status);
/* "hanaper: searched 3 shards, …" on standard error. */
void archive_say_coverage(const struct search_coverage *c);
/* Nothing may be missing from what the coverage describes. */
bool archive_is_complete(const struct search_coverage *c);

/* Append hostile text for a terminal, on one line (cli/safe.h). */
void archive_put_safe(struct buf *out, struct str text);
/* Write all of it to standard output; EX_IOERR when that fails. */
int archive_print(struct buf *b);
/* "2026-11-30 17:03:05" UTC. */
void archive_put_time(struct buf *out, int64_t us);

int archive_search_main(int argc, char **argv);
int archive_list_main(int argc, char **argv);
int archive_show_main(int argc, char **argv);
int archive_export_main(int argc, char **argv);
int archive_import_main(int argc, char **argv);
int archive_add_main(int argc, char **argv);
int archive_backup_main(int argc, char **argv);
int archive_checkpoint_main(int argc, char **argv);
int archive_key_main(int argc, char **argv);
int archive_prove_main(int argc, char **argv);
int archive_verify_main(int argc, char **argv);
int archive_restore_main(int argc, char **argv);
int archive_reconcile_main(int argc, char **argv);
int archive_rescue_main(int argc, char **argv);
int archive_whatif_main(int argc, char **argv);
int archive_resend_main(int argc, char **argv);
int archive_stats_main(int argc, char **argv);
int archive_reindex_main(int argc, char **argv);

#endif
