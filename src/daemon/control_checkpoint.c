/* Signing the archive's trees on demand: a record for each family. */
#include "daemon/control.h"

static void
put_note(void *context, const char *family, enum res r, struct str note)
{
	struct control_call *call = context;
	fields_text(call->answer, "family", str_c(family));
	if (r == RES_OK)
		fields_text(call->answer, "note", note);
	else
		fields_text(call->answer, "problem", str_c(r == RES_AGAIN ?
		    "the signer is not there, or a new shard was begun: try "
		    "again" : res_text(r)));
	fields_end(call->answer);
}

enum res
control_checkpoint(struct control_call *call, struct err *err)
{
	if (call->env->store == NULL) {
		err_set(err, "the archive is off");
		return RES_UNSUPPORTED;
	}
	/* what is missing is told by family */
	(void)store_checkpoint(call->env->store, put_note, call);
	(void)store_checkpoint_left(call->env->store, put_note, call);
	return RES_OK;
}
