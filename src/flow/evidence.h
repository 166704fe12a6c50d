/* A resolver that knows only the DNS answers kept with an archived message
 * (EVIDENCE, archive.md §3). A question that is not among them is answered
 * with a temporary error and counted: nothing may be concluded from what was
 * not asked then. One message, one thread. */
#ifndef FLOW_EVIDENCE_H
#define FLOW_EVIDENCE_H

#include "base/buf.h"
#include "dns/dns.h"

/* Change the text of a TXT answer before it is used, into `out`, which is
 * empty. False: it stays as it was. */
typedef bool (*evidence_edit)(
    void *context, struct str name, struct str text, struct buf *out);

struct evidence_options {
	struct str record;   /* decoded EVIDENCE; lives as long as the resolver */
	evidence_edit edit;  /* may be NULL */
	void *context;
};

/* RES_CORRUPT: the record is damaged. */
HN_CHECK enum res evidence_open(
    const struct evidence_options *o, struct resolver **out);
/* Answers waited for that were not among those kept. */
size_t evidence_missing(const struct resolver *r);
/* The first of them, "name TYPE"; empty: none. */
struct str evidence_first_missing(const struct resolver *r);

#endif
