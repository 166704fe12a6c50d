/* hanaper archive: what its subcommands share. */
#ifndef CLI_ARCHIVE_H
#define CLI_ARCHIVE_H

#include <getopt.h>

#include "archive/search/search.h"
#include "base/json.h"
#include "cli/cli.h"
#include "cli/control.h"

/* Options of every subcommand: `--dir DIR`, or the archive_dir of the
 * configuration (`-c CONFIG`, `-o NAME=VALUE`). */
struct archive_place {
	struct cli_settings settings;
	const char *dir;
	bool unrecorded; /* reading goes on when no event can be written */
};
#define ARCHIVE_PLACE_USAGE "[--dir DIR | -c CONFIG [-o NAME=VALUE]]"
#define ARCHIVE_PLACE_SHORT "c:o:"
#define ARCHIVE_PLACE_LONG { "dir", required_argument, NULL, 'd' }
/* For those that show mail. */
#define ARCHIVE_READ_LONG \
	ARCHIVE_PLACE_LONG, { "unrecorded", no_argument, NULL, 0x100 }
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
/* "id" and "time" of a message, the first members of an open object. */
void archive_json_head(struct json *j, uint64_t id, int64_t time_us);
/* Write all of it to standard output; EX_IOERR when that fails. */
int archive_print(struct buf *b);
/* "2026-11-30 17:03:05" UTC. */
void archive_put_time(struct buf *out, int64_t us);

/* --- what the owner of the store does, or the daemon for him --- */

/* Begin a request of flow/keeping.h about the store in `dir`. */
void archive_keeping_begin(
    struct buf *request, const char *command, const char *dir);
/* Have the daemon that has the store do it, else do it ourselves, as the
 * store's owner. `request` is used up. Returns EX_OK or, after a complaint,
 * how to exit. */
int archive_keeping(const struct archive_place *p, const char *command,
    const char *dir, struct buf *request, struct arena *a,
    struct control_answer *out);
/* An event of the audit family, written by the daemon or, as the store's owner,
 * by us. Not EX_OK after a complaint. */
struct archive_event {
	const char *action;
	struct str query, reason;
	const uint64_t *ids;
	size_t id_count;
};
int archive_write_event(const struct archive_place *p, const char *dir,
    const struct archive_event *e);
/* Write down that somebody reads: before anything is shown. Not EX_OK after a
 * complaint: then nothing may be shown. With p->unrecorded the system's log
 * has it instead. */
int archive_event(const struct archive_place *p, const char *action,
    const char *dir, struct str query, const uint64_t *ids, size_t count);

int archive_audit_main(int argc, char **argv);
int archive_erase_main(int argc, char **argv);
int archive_expire_main(int argc, char **argv);
int archive_hold_main(int argc, char **argv);
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
