/* hanaper verify: all methods over message files, by the same path that mail
 * takes through the daemon. */
#include <stdio.h>
#include <string.h>
#include <sysexits.h>

#include "base/json.h"
#include "cli/offline.h"

/* --- output --------------------------------------------------------------- */

static bool
is_pass(const struct decision *d)
{
	bool pass = d->reply == REPLY_ACCEPT && d->dkim_count != 0;
	for (size_t i = 0; i < d->dkim_count; i++)
		pass = pass && d->dkim[i].result == AUTH_PASS;
	for (size_t i = 0; i < d->spf_count; i++)
		pass = pass && d->spf[i].result == AUTH_PASS;
	/* no chain and no DMARC record are nothing that could fail */
	if (d->arc_done && d->arc.result != AUTH_NONE)
		pass = pass && d->arc.result == AUTH_PASS;
	if (d->dmarc_done && d->dmarc.result != AUTH_NONE)
		pass = pass && d->dmarc.result == AUTH_PASS;
	return pass;
}

static void
json_dkim(struct json *j, const struct dkim_result *r)
{
	json_open(j, '{');
	json_key_c(j, "result", auth_result_word(r->result));
	json_key_str(j, "d", r->d);
	json_key_str(j, "s", r->s);
	json_key_str(j, "a", r->a);
	json_key_str(j, "i", r->i);
	json_key_c(j, "reason", r->reason);
	json_key_str(j, "diagnosis", r->diagnosis);
	json_key_int(j, "key_bits", r->key_bits);
	json_key_bool(j, "testing", r->testing);
	json_close(j, '}');
}

static void
json_rest(struct json *j, const struct decision *d)
{
	/* what was not judged is null, but there */
	json_key(j, "arc");
	json_open(j, '{');
	json_key_c(j, "result",
	    d->arc_done ? auth_result_word(d->arc.result) : NULL);
	json_key_int(j, "i", d->arc.instances);
	json_key_int(j, "oldest_pass", d->arc.oldest_pass);
	json_key_c(j, "reason", d->arc.reason);
	json_close(j, '}');
	json_key(j, "spf");
	json_open(j, '[');
	for (size_t i = 0; i < d->spf_count; i++) {
		const struct spf_result *r = &d->spf[i];
		json_open(j, '{');
		json_key_c(j, "result", auth_result_word(r->result));
		json_key_str(j, "domain", r->domain);
		json_key_c(j, "identity",
		    r->identity == SPF_HELO ? "helo" : "mailfrom");
		json_key_c(j, "reason", r->reason);
		json_key_str(j, "explanation", r->explanation);
		json_close(j, '}');
	}
	json_close(j, ']');
	json_key(j, "dmarc");
	json_open(j, '{');
	json_key_c(j, "result",
	    d->dmarc_done ? auth_result_word(d->dmarc.result) : NULL);
	json_key_c(j, "policy", d->dmarc.has_record ?
	    dmarc_policy_word(d->dmarc.policy) : NULL);
	json_key_str(j, "domain", d->dmarc.from);
	json_key_str(j, "record_domain", d->dmarc.record_domain);
	json_key_str(j, "org_domain", d->dmarc.org_domain);
	json_key_c(j, "reason", d->dmarc.reason);
	json_close(j, '}');
}

static void
print_json(const char *file, const struct decision *d)
{
	struct buf out;
	struct json j;
	buf_init(&out, (size_t)16 << 20);
	json_init(&j, &out);
	json_open(&j, '{');
	json_key_c(&j, "file", file);
	json_key_str(&j, "authentication_results", str_trim(d->results));
	json_key(&j, "dkim");
	json_open(&j, '[');
	for (size_t i = 0; i < d->dkim_count; i++)
		json_dkim(&j, &d->dkim[i]);
	json_close(&j, ']');
	json_rest(&j, d);
	json_key_c(&j, "refused", d->text);
	json_close(&j, '}');
	printf("%.*s\n", (int)out.len, out.ptr);
	buf_done(&out);
}

static void
print_text(const char *file, size_t files, const struct decision *d)
{
	if (files > 1)
		printf("%s\n", file);
	if (d->results.len != 0)
		printf("Authentication-Results:%.*s\n", (int)d->results.len,
		    d->results.ptr);
	for (size_t i = 0; i < d->dkim_count; i++)
		if (d->dkim[i].diagnosis.len != 0)
			printf("dkim %zu: %.*s\n", i + 1,
			    STR_ARG(d->dkim[i].diagnosis));
	if (d->reply != REPLY_ACCEPT)
		printf("refused: %s %s %s\n", d->code, d->enhanced, d->text);
}

/* --- the command -------------------------------------------------------------- */

static const struct option options[] = {
	OFFLINE_LONG,
	{ "json", no_argument, NULL, 'j' },
	{ NULL, 0, NULL, 0 },
};

static int
verify_file(struct offline *o, const char *file, size_t files, bool json)
{
	int status = EX_OK;
	const struct decision *d = offline_judge(o, file, &status);
	if (d == NULL)
		return status;
	if (json)
		print_json(file, d);
	else
		print_text(file, files, d);
	status = is_pass(d) ? EX_OK : 1;
	offline_next(o);
	return status;
}

int
cmd_verify(int argc, char **argv)
{
	struct offline o = { .mode = MODE_VERIFY };
	static char standard[] = "-";
	static char *const only_standard[] = { standard };
	bool json = false;
	int c;
	while ((c = getopt_long(argc, argv, OFFLINE_SHORT, options, NULL)) != -1)
		if (c == 'j')
			json = true;
		else if (!offline_option(&o, c, optarg))
			return cli_usage("verify", OFFLINE_USAGE
			    " [--json] [FILE ...]");
	int status = offline_prepare(&o);
	size_t files = (size_t)(argc - optind);
	char *const *names = argv + optind;
	if (files == 0) {
		files = 1;
		names = only_standard;
	}
	bool ready = status == EX_OK;
	for (size_t i = 0; ready && i < files; i++) {
		int one = verify_file(&o, names[i], files, json);
		/* an error outweighs "no pass" */
		if (one > status)
			status = one;
	}
	offline_done(&o);
	return status;
}
